//! A writer of small TFLite files, and of tables of FlatBuffers.

/// The code of an operator that has a name.
pub const CUSTOM: i32 = 32;

/// A field of a table, or an element.
#[derive(Clone)]
pub enum Field {
    None,
    I8(i8),
    I32(i32),
    U64(u64),
    Bytes(Vec<u8>),
    I32s(Vec<i32>),
    F32s(Vec<f32>),
    Table(Vec<Field>),
    Tables(Vec<Field>),
    /// A vector of so many offsets to one table.
    Repeated(usize, Box<Field>),
}

pub fn text(s: &str) -> Field {
    Field::Bytes(s.as_bytes().to_vec())
}

/// Writes parents before children, so that every offset points forward.
pub fn write(file: &mut Vec<u8>, field: &Field) -> usize {
    file.resize(file.len().next_multiple_of(4), 0);
    let start = file.len();
    match field {
        Field::Bytes(bytes) => {
            file.extend((bytes.len() as u32).to_le_bytes());
            file.extend(bytes);
        }
        Field::I32s(v) => {
            file.extend((v.len() as u32).to_le_bytes());
            v.iter().for_each(|n| file.extend(n.to_le_bytes()));
        }
        Field::F32s(v) => {
            file.extend((v.len() as u32).to_le_bytes());
            v.iter().for_each(|n| file.extend(n.to_le_bytes()));
        }
        Field::Tables(tables) => {
            file.extend((tables.len() as u32).to_le_bytes());
            file.resize(file.len() + 4 * tables.len(), 0);
            for (i, table) in tables.iter().enumerate() {
                refer(file, start + 4 + 4 * i, table);
            }
        }
        Field::Repeated(count, table) => {
            file.extend((*count as u32).to_le_bytes());
            let first = file.len();
            file.resize(first + 4 * count, 0);
            let target = write(file, table);
            for at in (first..).step_by(4).take(*count) {
                file[at..at + 4].copy_from_slice(&((target - at) as u32).to_le_bytes());
            }
        }
        Field::Table(fields) => {
            // Every field takes four bytes after the offset to the vtable, or eight.
            let mut end = 4u16;
            let places = fields.iter().map(|f| {
                let place = end;
                end += if matches!(f, Field::U64(_)) { 8 } else { 4 };
                place
            });
            let places: Vec<u16> = places.collect();
            let vtable = 4 + 2 * fields.len();
            file.extend((vtable as u16).to_le_bytes());
            file.extend(end.to_le_bytes());
            for (f, &place) in fields.iter().zip(&places) {
                let there = !matches!(f, Field::None);
                file.extend(if there { place } else { 0 }.to_le_bytes());
            }
            file.resize(file.len().next_multiple_of(4), 0);
            let table = file.len();
            file.extend(((table - start) as i32).to_le_bytes());
            file.resize(table + usize::from(end), 0);
            for (f, &place) in fields.iter().zip(&places) {
                let at = table + usize::from(place);
                match f {
                    Field::None => {}
                    Field::I8(n) => file[at] = *n as u8,
                    Field::I32(n) => file[at..at + 4].copy_from_slice(&n.to_le_bytes()),
                    Field::U64(n) => file[at..at + 8].copy_from_slice(&n.to_le_bytes()),
                    other => refer(file, at, other),
                }
            }
            return table;
        }
        _ => unreachable!("scalars stand in tables"),
    }
    start
}

/// Writes a field, and its offset to `at`.
pub fn refer(file: &mut Vec<u8>, at: usize, field: &Field) {
    let target = write(file, field);
    file[at..at + 4].copy_from_slice(&((target - at) as u32).to_le_bytes());
}

pub struct TestTensor {
    pub name: &'static str,
    pub kind: i8,
    pub shape: Vec<i32>,
    pub signature: Vec<i32>,
    pub data: Vec<u8>,
    pub scale: Vec<f32>,
}

pub fn tensor(name: &'static str, shape: &[i32]) -> TestTensor {
    TestTensor {
        name,
        kind: 0,
        shape: shape.to_vec(),
        signature: Vec::new(),
        data: Vec::new(),
        scale: Vec::new(),
    }
}

pub fn constant(name: &'static str, shape: &[i32], data: &[f32]) -> TestTensor {
    let data = data.iter().flat_map(|v| v.to_le_bytes()).collect();
    TestTensor {
        data,
        ..tensor(name, shape)
    }
}

pub fn ints(name: &'static str, shape: &[i32], data: &[i32]) -> TestTensor {
    let data = data.iter().flat_map(|v| v.to_le_bytes()).collect();
    TestTensor {
        data,
        kind: 2,
        ..tensor(name, shape)
    }
}

pub struct TestOp {
    pub code: i32,
    pub inputs: Vec<i32>,
    pub outputs: Vec<i32>,
    pub options: Vec<Field>,
}

pub fn op(code: i32, inputs: &[i32], outputs: &[i32], options: &[Field]) -> TestOp {
    TestOp {
        code,
        inputs: inputs.to_vec(),
        outputs: outputs.to_vec(),
        options: options.to_vec(),
    }
}

/// A model of one graph, with a buffer for each constant and an operator code for each operator.
pub fn file(tensors: &[TestTensor], inputs: &[i32], outputs: &[i32], ops: &[TestOp]) -> Vec<u8> {
    described(tensors, inputs, outputs, ops, &[], Field::None)
}

/// [`file`] whose first buffers, from number 1 on, are `more`, with the field `metadata`.
pub fn described(
    tensors: &[TestTensor],
    inputs: &[i32],
    outputs: &[i32],
    ops: &[TestOp],
    more: &[Vec<u8>],
    metadata: Field,
) -> Vec<u8> {
    use Field::*;
    let mut buffers = vec![Table(vec![None])];
    let more = more.iter().map(|data| Table(vec![Bytes(data.clone())]));
    buffers.extend(more);
    let tensors = tensors
        .iter()
        .map(|t| {
            let buffer = if t.data.is_empty() {
                0
            } else {
                buffers.push(Table(vec![Bytes(t.data.clone())]));
                buffers.len() as i32 - 1
            };
            let quantization = if t.scale.is_empty() {
                None
            } else {
                Table(vec![None, None, F32s(t.scale.clone())])
            };
            Table(vec![
                I32s(t.shape.clone()),
                I8(t.kind),
                I32(buffer),
                text(t.name),
                quantization,
                None,
                None,
                I32s(t.signature.clone()),
            ])
        })
        .collect();
    let codes = ops
        .iter()
        .map(|o| {
            let custom = if o.code == CUSTOM {
                text("Scale")
            } else {
                None
            };
            Table(vec![I8(o.code.min(127) as i8), custom, I32(1), I32(o.code)])
        })
        .collect();
    let operators = ops
        .iter()
        .enumerate()
        .map(|(i, o)| {
            Table(vec![
                I32(i as i32),
                I32s(o.inputs.clone()),
                I32s(o.outputs.clone()),
                I8(1),
                match o.code {
                    CUSTOM => None,
                    _ => Table(o.options.clone()),
                },
                match o.code {
                    CUSTOM => o.options[0].clone(),
                    _ => None,
                },
            ])
        })
        .collect();
    let subgraph = Table(vec![
        Tables(tensors),
        I32s(inputs.to_vec()),
        I32s(outputs.to_vec()),
        Tables(operators),
        text("main"),
    ]);
    let model = Table(vec![
        I32(3),
        Tables(codes),
        Tables(vec![subgraph]),
        text("test"),
        Tables(buffers),
        None,
        metadata,
    ]);
    let mut bytes = vec![0; 8];
    bytes[4..8].copy_from_slice(b"TFL3");
    refer(&mut bytes, 0, &model);
    bytes
}

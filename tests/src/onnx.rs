//! Writes small ONNX models. Field numbers are those of `onnx.proto`.

/// The value of an attribute.
pub enum Value<'a> {
    Int(i64),
    Float(f32),
    Text(&'a str),
}

/// A node; its name is that of its first output.
pub struct Node<'a> {
    pub domain: &'a str,
    pub op: &'a str,
    pub inputs: &'a [&'a str],
    pub outputs: &'a [&'a str],
    pub attributes: &'a [(&'a str, Value<'a>)],
}

/// A float32 tensor whose elements lie in a file beside the model.
pub struct Weights<'a> {
    pub name: &'a str,
    pub dims: &'a [usize],
    pub file: &'a str,
    /// In bytes.
    pub offset: usize,
}

/// A tensor whose elements lie in the model.
pub struct Inline<'a> {
    pub name: &'a str,
    pub dims: &'a [usize],
    /// The number of the element type in `onnx.proto`.
    pub kind: i64,
    pub elements: &'a [u8],
}

/// A model of `model_with` with weights in it, and none in other files.
pub fn model_holding(
    nodes: &[Node],
    inputs: &[(&str, &[&str])],
    outputs: &[(&str, &[&str])],
    weights: &[Inline],
) -> Vec<u8> {
    let weights = weights.iter().flat_map(|w| {
        let mut out: Vec<u8> = w.dims.iter().flat_map(|&d| int(1, d as i64)).collect();
        out.extend([int(2, w.kind), text(8, w.name), bytes(9, w.elements)].concat());
        bytes(5, &out)
    });
    model_of(nodes, inputs, outputs, weights.collect())
}

fn initializer(w: &Weights) -> Vec<u8> {
    let mut out: Vec<u8> = w.dims.iter().flat_map(|&d| int(1, d as i64)).collect();
    out.extend([int(2, 1), text(8, w.name), int(14, 1)].concat());
    let length = w.dims.iter().product::<usize>() * 4;
    let entries = [
        ("location", w.file.to_string()),
        ("offset", w.offset.to_string()),
        ("length", length.to_string()),
    ];
    for (key, value) in entries {
        out.extend(bytes(13, &[text(1, key), text(2, &value)].concat()));
    }
    bytes(5, &out)
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn int(field: u64, n: i64) -> Vec<u8> {
    [varint(field << 3), varint(n as u64)].concat()
}

fn bytes(field: u64, b: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(b.len() as u64), b.to_vec()].concat()
}

fn text(field: u64, s: &str) -> Vec<u8> {
    bytes(field, s.as_bytes())
}

fn attribute((name, value): &(&str, Value)) -> Vec<u8> {
    let value = match value {
        Value::Int(n) => [int(3, *n), int(20, 2)].concat(),
        Value::Float(x) => [varint(2 << 3 | 5), x.to_le_bytes().to_vec(), int(20, 1)].concat(),
        Value::Text(s) => [text(4, s), int(20, 3)].concat(),
    };
    bytes(5, &[text(1, name), value].concat())
}

fn node(n: &Node) -> Vec<u8> {
    let mut out: Vec<u8> = n.inputs.iter().flat_map(|i| text(1, i)).collect();
    out.extend(n.outputs.iter().flat_map(|o| text(2, o)));
    out.extend(text(3, n.outputs.first().unwrap_or(&"")));
    out.extend(text(4, n.op));
    out.extend(n.attributes.iter().flat_map(attribute));
    out.extend(text(7, n.domain));
    bytes(1, &out)
}

/// A tensor of floats; a dimension is a number or a name.
fn port(field: u64, name: &str, dims: &[&str]) -> Vec<u8> {
    let dims = dims.iter().flat_map(|d| {
        let dim = d.parse().map_or_else(|_| text(2, d), |n| int(1, n));
        bytes(1, &dim)
    });
    let shape: Vec<u8> = dims.collect();
    let tensor = bytes(1, &[int(1, 1), bytes(2, &shape)].concat());
    bytes(field, &[text(1, name), bytes(2, &tensor)].concat())
}

/// What becomes of a field.
enum Edit {
    Kept,
    Dropped,
    /// A message in its place.
    Changed(Vec<u8>),
}

/// A message with its fields edited; `edit` sees the number and the body of each.
fn edited(message: &[u8], edit: &mut dyn FnMut(u64, &[u8]) -> Option<Edit>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let mut after = rest;
        let key = take_varint(&mut after)?;
        let body = match key & 7 {
            0 => {
                take_varint(&mut after)?;
                &[][..]
            }
            2 => {
                let length = usize::try_from(take_varint(&mut after)?).ok()?;
                let (body, tail) = after.split_at_checked(length)?;
                after = tail;
                body
            }
            _ => return None,
        };
        match edit(key >> 3, body)? {
            Edit::Kept => out.extend(&rest[..rest.len() - after.len()]),
            Edit::Dropped => {}
            Edit::Changed(body) => out.extend(bytes(key >> 3, &body)),
        }
        rest = after;
    }
    Some(out)
}

/// The model in `file` under another version of the standard's operator set.
pub fn restamped(file: &[u8], version: i64) -> Option<Vec<u8>> {
    const OPSET_IMPORT: u64 = 8;
    let standard = |body: &[u8]| body.first() != Some(&(1 << 3 | 2)) || body.get(1) == Some(&0);
    let rest = edited(file, &mut |field, body| {
        Some(match field == OPSET_IMPORT && standard(body) {
            true => Edit::Dropped,
            false => Edit::Kept,
        })
    })?;
    let opset = [text(1, ""), int(2, version)].concat();
    Some([bytes(OPSET_IMPORT, &opset), rest].concat())
}

/// The model in `file` without the dimensions of its tensors: of their shapes it tells the rank alone.
pub fn opened(file: &[u8]) -> Option<Vec<u8>> {
    // The graph; its inputs, outputs and values; type; type of a tensor; shape; dimension.
    const DIMENSIONS: [&[u64]; 6] = [&[7], &[11, 12, 13], &[2], &[1], &[2], &[1]];
    emptied(file, &DIMENSIONS)
}

/// A message without what is in the fields at the end of a path.
fn emptied(message: &[u8], path: &[&[u64]]) -> Option<Vec<u8>> {
    let Some((fields, rest)) = path.split_first() else {
        return Some(Vec::new());
    };
    edited(message, &mut |field, body| {
        Some(match fields.contains(&field) {
            true => Edit::Changed(emptied(body, rest)?),
            false => Edit::Kept,
        })
    })
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let end = rest.iter().position(|b| b & 0x80 == 0)? + 1;
    let (number, tail) = rest.split_at_checked(end)?;
    *rest = tail;
    let parts = number.iter().enumerate();
    Some(parts.fold(0, |n, (i, b)| {
        n | u64::from(b & 0x7f) << (7 * i as u32 % 64)
    }))
}

/// A model with inputs and outputs of float32, which are names with their dimensions.
pub fn model(nodes: &[Node], inputs: &[(&str, &[&str])], outputs: &[(&str, &[&str])]) -> Vec<u8> {
    model_with(nodes, inputs, outputs, &[])
}

/// A model with inputs and outputs of float32, which are names with their dimensions, and with weights in
/// other files.
pub fn model_with(
    nodes: &[Node],
    inputs: &[(&str, &[&str])],
    outputs: &[(&str, &[&str])],
    weights: &[Weights],
) -> Vec<u8> {
    let weights = weights.iter().flat_map(initializer);
    model_of(nodes, inputs, outputs, weights.collect())
}

fn model_of(
    nodes: &[Node],
    inputs: &[(&str, &[&str])],
    outputs: &[(&str, &[&str])],
    initializers: Vec<u8>,
) -> Vec<u8> {
    let mut graph: Vec<u8> = nodes.iter().flat_map(node).collect();
    graph.extend(initializers);
    graph.extend(text(2, "graph"));
    graph.extend(inputs.iter().flat_map(|(n, d)| port(11, n, d)));
    graph.extend(outputs.iter().flat_map(|(n, d)| port(12, n, d)));
    let mut opsets: Vec<&str> = nodes.iter().map(|n| n.domain).chain([""]).collect();
    opsets.sort_unstable();
    opsets.dedup();
    let opsets = opsets.iter().flat_map(|domain| {
        let version = if domain.is_empty() { 17 } else { 1 };
        bytes(8, &[text(1, domain), int(2, version)].concat())
    });
    [int(1, 8), bytes(7, &graph), opsets.collect()].concat()
}

//! From the tables of an ORT file to the messages of ONNX. Slots are those of onnxruntime's `ort.fbs`.

use std::collections::HashMap;

use kilim_core::Metadata;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};

use super::order::in_order;
use crate::flatbuffer::{FlatBuffer, Found, Table};
use crate::onnx::proto::{
    AttributeProto, DimensionProto, Field, GraphProto, Holder, ModelProto, NodeProto, Numbers,
    OperatorSetId, ShapeProto, SparseTensorProto, TensorProto, TensorType, TypeProto, ValueInfo,
    invalid, version,
};

/// The versions of the format that are known. They differ in what says which kernels run the nodes, which is not read.
const VERSIONS: [&str; 3] = ["4", "5", "6"];

/// The model of a file, with at most `depth` graphs in each other.
///
/// # Errors
/// `Unsupported` for other versions and what ONNX has no message for, `InvalidModel` where the file is garbled.
pub fn model<'a>(file: &'a FlatBuffer<'a>, depth: usize) -> Result<ModelProto<'a>> {
    let session = file.root()?;
    let of_format = session.text(0)?;
    if !VERSIONS.contains(&of_format) {
        return Err(unsupported("another version of the ORT format")
            .with_expected(VERSIONS.join(", "))
            .with_got(of_format)
            .with_hint("convert the ONNX model again, by the current onnxruntime"));
    }
    let model = session.table(1)?;
    let model = model.ok_or_else(|| invalid("the file has no model"))?;
    let opsets = model.tables(1)?;
    let opsets = opsets.iter().map(|t| {
        Ok(OperatorSetId {
            domain: t.text(0)?,
            version: t.i64(1)?,
        })
    });
    Ok(ModelProto {
        ir_version: model.i64(0)?,
        opset_import: opsets.collect::<Result<_>>()?,
        graph: model.table(7)?.map(|t| graph(&t, depth)).transpose()?,
        functions: Vec::new(),
        metadata: metadata(&model)?,
    })
}

/// What onnxruntime writes for a model without a version (`kNoVersion` in `core/graph/model.h`).
const NO_VERSION: i64 = i64::MAX;

/// What the file says of itself. The format does not keep the name of the graph.
fn metadata(model: &Table) -> Result<Metadata> {
    let mut metadata = Metadata {
        producer: model.string(2)?,
        producer_version: model.string(3)?,
        domain: model.string(4)?,
        version: match model.i64(5)? {
            NO_VERSION => String::new(),
            number => version(number),
        },
        description: model.string(6)?,
        ..Metadata::default()
    };
    if metadata.description.is_empty() {
        metadata.description = model.string(8)?;
    }
    model.each_table(9, |entry| match entry.string(0)? {
        key if key.is_empty() => Ok(()),
        key => metadata.add(key, entry.string(1)?),
    })?;
    Ok(metadata)
}

/// Finds the data of tensors, from the root table on: those of graphs, at most [`DEPTH`] in each other.
///
/// # Errors
/// `InvalidModel` where the file is garbled, `Limit` where it has more graphs in each other.
pub fn find_data(session: &Table, found: &mut Found) -> Result<()> {
    let model = session.table(1)?;
    let graph = model.map_or(Ok(None), |model| model.table(7))?;
    graph.map_or(Ok(()), |graph| find_in(&graph, DEPTH, found))
}

/// Graphs in each other whose data is looked for.
const DEPTH: usize = 16;

fn find_in(graph: &Table, depth: usize, found: &mut Found) -> Result<()> {
    let depth = deeper(depth)?;
    graph.each_table(0, |tensor| {
        let raw = tensor.vector(RAW_DATA, 1)?;
        found.add(raw.position as u64, raw.len as u64);
        Ok(())
    })?;
    graph.each_table(2, |node| {
        node.each_table(10, |attribute| match attribute.i32(2)? {
            GRAPH => attribute
                .table(7)?
                .map_or(Ok(()), |graph| find_in(&graph, depth, found)),
            _ => Ok(()),
        })
    })
}

/// The slot of a tensor's bytes.
const RAW_DATA: usize = 4;

/// The kind of an attribute that is a graph.
const GRAPH: i32 = 5;

/// One level further inside.
fn deeper(depth: usize) -> Result<usize> {
    depth.checked_sub(1).ok_or_else(|| {
        let message = "the model has too many graphs or types in each other";
        Error::new(ErrorCode::Limit, message)
    })
}

fn all<'a, T>(tables: Vec<Table<'a>>, read: impl Fn(&Table<'a>) -> Result<T>) -> Result<Vec<T>> {
    tables.iter().map(read).collect()
}

fn graph<'a>(table: &Table<'a>, depth: usize) -> Result<GraphProto<'a>> {
    let depth = deeper(depth)?;
    let values = all(table.tables(1)?, |t| value(t, depth))?;
    let known: HashMap<_, _> = values.iter().map(|v| (v.name, v)).collect();
    let ports = |slot: usize| -> Result<Vec<ValueInfo<'a>>> {
        let names = table.texts(slot)?.into_iter();
        let port = |name| match known.get(name) {
            Some(&value) => value.clone(),
            None => ValueInfo { name, kind: None },
        };
        Ok(names.map(port).collect())
    };
    let (inputs, outputs) = (ports(5)?, ports(6)?);
    let nodes = all(table.tables(2)?, |t| node(t, depth))?;
    Ok(GraphProto {
        name: "",
        nodes: in_order(nodes),
        initializers: all(table.tables(0)?, tensor)?,
        sparse_initializers: all(table.tables(7)?, sparse)?,
        inputs,
        outputs,
        value_info: values,
        doc_string: &[],
    })
}

fn node<'a>(table: &Table<'a>, depth: usize) -> Result<(NodeProto<'a>, Vec<&'a str>)> {
    let name = table.text(0)?;
    if table.i32(6)? != 0 {
        let message = "a node that was compiled for an execution provider";
        return Err(unsupported(message).with_node(name));
    }
    let node = NodeProto {
        inputs: table.texts(8)?,
        outputs: table.texts(9)?,
        name,
        op_type: table.text(5)?,
        domain: table.text(2)?,
        overload: "",
        attributes: all(table.tables(10)?, |t| attribute(t, depth))?,
    };
    Ok((node, table.texts(12)?))
}

fn attribute<'a>(table: &Table<'a>, depth: usize) -> Result<AttributeProto<'a>> {
    let name = table.text(0)?;
    let mut attribute = AttributeProto {
        name,
        ..AttributeProto::default()
    };
    match table.i32(2)? {
        1 => attribute.f = Some(table.f32(3)?),
        2 => attribute.i = Some(table.i64(4)?),
        3 => attribute.s = Some(table.vector(5, 1)?.bytes()?),
        4 => attribute.t = table.table(6)?.map(|t| tensor(&t)).transpose()?,
        GRAPH => attribute.g = table.table(7)?.map(|t| graph(&t, depth)).transpose()?,
        6 => {
            let floats = table.vector(8, 4)?.bytes_of(4)?;
            attribute.floats.push(Field::Bytes(floats));
        }
        7 => attribute.ints = ints(table, 9)?,
        8 => attribute.strings = table.byte_strings(10)?,
        kind => {
            let message = format!("the attribute `{name}` of the kind {kind}");
            return Err(unsupported(message));
        }
    }
    Ok(attribute)
}

/// The integers of a vector.
fn ints<'a>(table: &Table<'a>, slot: usize) -> Result<Numbers<'a>> {
    let mut numbers = Numbers::default();
    for n in table.i64s(slot)? {
        numbers.push(Field::Varint(n as u64));
    }
    Ok(numbers)
}

fn tensor<'a>(table: &Table<'a>) -> Result<TensorProto<'a>> {
    let name = table.text(0)?;
    if table.i64_or(6, -1)? >= 0 {
        let message = "the data of a tensor stands in another file, which the format does not name";
        return Err(unsupported(message).with_input(name));
    }
    let raw = table.vector(RAW_DATA, 1)?;
    let here = raw.len > 0 && raw.is_here(1);
    let left_out = match here || raw.len == 0 {
        true => Vec::new(),
        false => vec![raw.len as u64, raw.position as u64],
    };
    Ok(TensorProto {
        dims: ints(table, 2)?,
        data_type: table.i32(3)?.into(),
        name,
        raw_data: here.then(|| raw.bytes()).transpose()?,
        left_out,
        string_data: table.byte_strings(5)?,
        ..TensorProto::default()
    })
}

fn sparse<'a>(table: &Table<'a>) -> Result<SparseTensorProto<'a>> {
    let part = |slot: usize| table.table(slot)?.map(|t| tensor(&t)).transpose();
    Ok(SparseTensorProto {
        values: part(0)?.unwrap_or_default(),
        indices: part(1)?.unwrap_or_default(),
        dims: ints(table, 2)?,
    })
}

fn value<'a>(table: &Table<'a>, depth: usize) -> Result<ValueInfo<'a>> {
    let kind = table.table(2)?.map(|t| kind(&t, depth)).transpose()?;
    Ok(ValueInfo {
        name: table.text(0)?,
        kind: kind.flatten(),
    })
}

/// The type of a value; `None` where the file does not say it.
fn kind<'a>(table: &Table<'a>, depth: usize) -> Result<Option<TypeProto<'a>>> {
    let depth = deeper(depth)?;
    let mut kind_of = TypeProto::default();
    let Some(value) = table.table(2)? else {
        return Ok(None);
    };
    let (holder, slot) = match table.u8(1)? {
        1 => {
            kind_of.tensor = Some(TensorType {
                elem_type: value.i32(0)?.into(),
                shape: value.table(1)?.map(|t| shape(&t)).transpose()?,
            });
            return Ok(Some(kind_of));
        }
        2 => (Holder::Sequence, 0),
        3 => (Holder::Map, 1),
        other => return Err(unsupported(format!("a value of the kind {other}"))),
    };
    let element = value.table(slot)?.map(|t| kind(&t, depth)).transpose()?;
    let element = element.flatten().unwrap_or_default();
    kind_of.holder = Some((holder, Box::new(element)));
    Ok(Some(kind_of))
}

fn shape<'a>(table: &Table<'a>) -> Result<ShapeProto<'a>> {
    let dims = all(table.tables(0)?, |t| {
        let Some(value) = t.table(0)? else {
            return Ok(DimensionProto::default());
        };
        Ok(match value.u8(0)? {
            1 => DimensionProto {
                value: Some(value.i64(1)?),
                param: "",
            },
            2 => DimensionProto {
                value: None,
                param: value.text(2)?,
            },
            _ => DimensionProto::default(),
        })
    });
    Ok(ShapeProto { dims: dims? })
}

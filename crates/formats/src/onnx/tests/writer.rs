//! A writer of small ONNX files.

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::Result;
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;

pub(in crate::onnx) use crate::onnx::apart::varint;
use crate::{ModelFile, load_model};

pub type Bytes = Vec<u8>;

pub fn int(field: u64, n: i64) -> Bytes {
    [varint(field << 3), varint(n as u64)].concat()
}

pub fn float(field: u64, n: f32) -> Bytes {
    [varint(field << 3 | 5), n.to_le_bytes().to_vec()].concat()
}

pub fn bytes(field: u64, b: &[u8]) -> Bytes {
    [varint(field << 3 | 2), varint(b.len() as u64), b.to_vec()].concat()
}

pub fn text(field: u64, s: &str) -> Bytes {
    bytes(field, s.as_bytes())
}

pub fn join(parts: &[Bytes]) -> Bytes {
    parts.concat()
}

pub fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[Bytes]) -> Bytes {
    node_in("", op, inputs, outputs, attributes)
}

pub fn node_in(
    domain: &str,
    op: &str,
    inputs: &[&str],
    outputs: &[&str],
    attributes: &[Bytes],
) -> Bytes {
    let mut m = Vec::new();
    inputs.iter().for_each(|i| m.extend(text(1, i)));
    outputs.iter().for_each(|o| m.extend(text(2, o)));
    m.extend(text(4, op));
    attributes.iter().for_each(|a| m.extend(bytes(5, a)));
    m.extend(text(7, domain));
    bytes(1, &m)
}

pub fn attr_int(name: &str, n: i64) -> Bytes {
    join(&[text(1, name), int(3, n), int(20, 2)])
}

pub fn attr_float(name: &str, n: f32) -> Bytes {
    join(&[text(1, name), float(2, n), int(20, 1)])
}

pub fn attr_text(name: &str, s: &str) -> Bytes {
    join(&[text(1, name), text(4, s), int(20, 3)])
}

pub fn attr_ints(name: &str, list: &[i64]) -> Bytes {
    let list: Vec<Bytes> = list.iter().map(|&n| int(8, n)).collect();
    join(&[text(1, name), join(&list), int(20, 7)])
}

pub fn attr_floats(name: &str, list: &[f32]) -> Bytes {
    let list: Vec<Bytes> = list.iter().map(|&n| float(7, n)).collect();
    join(&[text(1, name), join(&list), int(20, 6)])
}

pub fn attr_texts(name: &str, list: &[&str]) -> Bytes {
    let list: Vec<Bytes> = list.iter().map(|s| text(9, s)).collect();
    join(&[text(1, name), join(&list), int(20, 8)])
}

pub fn attr_graph(name: &str, graph: &[Bytes]) -> Bytes {
    join(&[text(1, name), bytes(6, &join(graph)), int(20, 5)])
}

pub fn attr_tensor(name: &str, tensor: &Bytes) -> Bytes {
    join(&[text(1, name), bytes(5, tensor), int(20, 4)])
}

/// An attribute of a function's node that is one of the function's attributes.
pub fn attr_ref(name: &str, of: &str) -> Bytes {
    join(&[text(1, name), text(21, of)])
}

/// A `TensorProto` with `data` in whatever field.
pub fn tensor(name: &str, data_type: i64, dims: &[i64], data: Bytes) -> Bytes {
    let dims: Vec<Bytes> = dims.iter().map(|&d| int(1, d)).collect();
    join(&[join(&dims), int(2, data_type), text(8, name), data])
}

pub fn floats(name: &str, dims: &[i64], data: &[f32]) -> Bytes {
    let raw: Vec<u8> = data.iter().flat_map(|v| v.to_le_bytes()).collect();
    tensor(name, 1, dims, bytes(9, &raw))
}

pub fn initializer(tensor: &Bytes) -> Bytes {
    bytes(5, tensor)
}

/// A `ValueInfoProto`; a negative dimension is the symbol `n`.
pub fn value(field: u64, name: &str, elem: i64, dims: &[i64]) -> Bytes {
    let dims: Vec<Bytes> = dims
        .iter()
        .map(|&d| bytes(1, &if d < 0 { text(2, "n") } else { int(1, d) }))
        .collect();
    let tensor = join(&[int(1, elem), bytes(2, &join(&dims))]);
    bytes(field, &join(&[text(1, name), bytes(2, &bytes(1, &tensor))]))
}

pub fn input(name: &str, dims: &[i64]) -> Bytes {
    value(11, name, 1, dims)
}

/// An output with a name and neither type nor shape.
pub fn output(name: &str) -> Bytes {
    bytes(12, &text(1, name))
}

pub fn opset(domain: &str, version: i64) -> Bytes {
    bytes(8, &join(&[text(1, domain), int(2, version)]))
}

pub fn model(version: i64, graph: &[Bytes]) -> Bytes {
    model_with(version, graph, &[])
}

pub fn model_with(version: i64, graph: &[Bytes], functions: &[Bytes]) -> Bytes {
    let functions: Vec<Bytes> = functions.iter().map(|f| bytes(25, f)).collect();
    join(&[
        int(1, 8),
        bytes(7, &join(graph)),
        opset("", version),
        opset("local", 1),
        join(&functions),
    ])
}

pub fn load(file: &[u8]) -> Result<Graph> {
    load_limited(file, &Limits::default())
}

pub fn load_limited(file: &[u8], limits: &Limits) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(file)?);
    load_model(&ModelFile::new(bytes, "test.onnx"), limits)
}

/// The operators of a graph, in order.
pub fn ops(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|n| n.op.name()).collect()
}

/// A field without tag and length.
pub fn strip(field: &Bytes) -> Bytes {
    let mut at = 1;
    while field[at] >= 0x80 {
        at += 1;
    }
    field[at + 1..].to_vec()
}

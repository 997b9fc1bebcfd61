//! Graphs, their nodes and what attributes hold.

use kilim_core::error::Result;

use super::{
    Field, Message, Numbers, SparseTensorProto, TensorProto, TypeProto, ValueInfo, decode,
};

#[derive(Clone, Debug, Default)]
pub struct GraphProto<'a> {
    pub name: &'a str,
    pub nodes: Vec<NodeProto<'a>>,
    pub initializers: Vec<TensorProto<'a>>,
    pub sparse_initializers: Vec<SparseTensorProto<'a>>,
    pub inputs: Vec<ValueInfo<'a>>,
    pub outputs: Vec<ValueInfo<'a>>,
    pub value_info: Vec<ValueInfo<'a>>,
    pub doc_string: &'a [u8],
}

impl<'a> Message<'a> for GraphProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.nodes.push(decode(field, depth)?),
            2 => self.name = field.string()?,
            5 => self.initializers.push(decode(field, depth)?),
            10 => self.doc_string = field.bytes()?,
            11 => self.inputs.push(decode(field, depth)?),
            12 => self.outputs.push(decode(field, depth)?),
            13 => self.value_info.push(decode(field, depth)?),
            15 => self.sparse_initializers.push(decode(field, depth)?),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct NodeProto<'a> {
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub name: &'a str,
    pub op_type: &'a str,
    pub domain: &'a str,
    pub overload: &'a str,
    pub attributes: Vec<AttributeProto<'a>>,
}

impl NodeProto<'_> {
    /// Whether it, or a node of the graphs in it, is of the operator `op`.
    pub fn uses(&self, op: &str) -> bool {
        let bodies = self.attributes.iter().filter_map(|a| a.g.as_ref());
        self.op_type == op || bodies.flat_map(|g| &g.nodes).any(|node| node.uses(op))
    }
}

impl<'a> Message<'a> for NodeProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.inputs.push(field.string()?),
            2 => self.outputs.push(field.string()?),
            3 => self.name = field.string()?,
            4 => self.op_type = field.string()?,
            5 => self.attributes.push(decode(field, depth)?),
            7 => self.domain = field.string()?,
            8 => self.overload = field.string()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct AttributeProto<'a> {
    pub name: &'a str,
    /// The name of the enclosing function's attribute that gives the value.
    pub ref_attr_name: &'a str,
    pub f: Option<f32>,
    pub i: Option<i64>,
    pub s: Option<&'a [u8]>,
    pub t: Option<TensorProto<'a>>,
    pub g: Option<GraphProto<'a>>,
    pub sparse_tensor: Option<SparseTensorProto<'a>>,
    pub floats: Numbers<'a>,
    pub ints: Numbers<'a>,
    pub strings: Vec<&'a [u8]>,
    pub kind: Option<TypeProto<'a>>,
}

impl<'a> Message<'a> for AttributeProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.name = field.string()?,
            2 => self.f = Some(field.float()?),
            3 => self.i = Some(field.int()?),
            4 => self.s = Some(field.bytes()?),
            5 => self.t = Some(decode(field, depth)?),
            6 => self.g = Some(decode(field, depth)?),
            7 => self.floats.push(field),
            8 => self.ints.push(field),
            9 => self.strings.push(field.bytes()?),
            14 => self.kind = Some(decode(field, depth)?),
            21 => self.ref_attr_name = field.string()?,
            22 => self.sparse_tensor = Some(decode(field, depth)?),
            _ => {}
        }
        Ok(())
    }
}

//! The messages of `onnx.proto`, as far as they matter at inference. Strings and data borrow from
//! the file.

mod wire;

use kilim_core::error::{Error, ErrorCode, Result};

pub use wire::{Field, Numbers, Reader, invalid};

/// A message that is filled field by field; unknown fields are passed over.
trait Message<'a>: Default {
    /// `depth` is how many messages may still be nested in this one.
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()>;
}

fn decode<'a, M: Message<'a>>(field: Field<'a>, depth: usize) -> Result<M> {
    let depth = depth.checked_sub(1).ok_or_else(|| {
        Error::new(
            ErrorCode::Limit,
            "the model's messages are nested too deeply",
        )
    })?;
    let mut message = M::default();
    let mut reader = Reader::new(field.bytes()?);
    while let Some((number, field)) = reader.field()? {
        message.set(number, field, depth)?;
    }
    Ok(message)
}

/// The fields of `ModelProto` with their wire types.
const MODEL_FIELDS: [(u32, u32); 12] = [
    (1, 0),
    (2, 2),
    (3, 2),
    (4, 2),
    (5, 0),
    (6, 2),
    (7, 2),
    (8, 2),
    (14, 2),
    (20, 2),
    (25, 2),
    (26, 2),
];

/// True where `bytes` begin like a `ModelProto`: its first fields are known ones, and the version
/// of the format stands before the graph. A file cut off later than that is still recognised.
pub fn looks_like_model(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    let mut version = false;
    while let Ok(Some((number, wire))) = reader.tag() {
        if !MODEL_FIELDS.contains(&(number, wire)) {
            return false;
        }
        if number == 7 {
            return version;
        }
        version |= number == 1;
        let passed = match wire {
            0 => reader.varint().map(|_| ()),
            _ => reader
                .varint()
                .and_then(|n| reader.take(usize::try_from(n).unwrap_or(usize::MAX)))
                .map(|_| ()),
        };
        if passed.is_err() {
            return false;
        }
    }
    false
}

#[derive(Clone, Debug, Default)]
pub struct ModelProto<'a> {
    pub ir_version: i64,
    pub graph: Option<GraphProto<'a>>,
    pub opset_import: Vec<OperatorSetId<'a>>,
    pub functions: Vec<FunctionProto<'a>>,
}

impl<'a> ModelProto<'a> {
    /// Decodes a file, with at most `depth` messages nested in each other.
    pub fn decode(bytes: &'a [u8], depth: usize) -> Result<ModelProto<'a>> {
        decode(Field::Bytes(bytes), depth)
    }
}

impl<'a> Message<'a> for ModelProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.ir_version = field.int()?,
            7 => self.graph = Some(decode(field, depth)?),
            8 => self.opset_import.push(decode(field, depth)?),
            25 => self.functions.push(decode(field, depth)?),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct OperatorSetId<'a> {
    pub domain: &'a str,
    pub version: i64,
}

impl<'a> Message<'a> for OperatorSetId<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, _: usize) -> Result<()> {
        match number {
            1 => self.domain = field.string()?,
            2 => self.version = field.int()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct GraphProto<'a> {
    pub name: &'a str,
    pub nodes: Vec<NodeProto<'a>>,
    pub initializers: Vec<TensorProto<'a>>,
    pub sparse_initializers: Vec<SparseTensorProto<'a>>,
    pub inputs: Vec<ValueInfo<'a>>,
    pub outputs: Vec<ValueInfo<'a>>,
    pub value_info: Vec<ValueInfo<'a>>,
}

impl<'a> Message<'a> for GraphProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.nodes.push(decode(field, depth)?),
            2 => self.name = field.string()?,
            5 => self.initializers.push(decode(field, depth)?),
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

#[derive(Clone, Debug, Default)]
pub struct TensorProto<'a> {
    pub dims: Numbers<'a>,
    /// See [`super::tensor::dtype`].
    pub data_type: i64,
    pub name: &'a str,
    pub float_data: Numbers<'a>,
    pub int32_data: Numbers<'a>,
    pub string_data: Vec<&'a [u8]>,
    pub int64_data: Numbers<'a>,
    pub double_data: Numbers<'a>,
    pub uint64_data: Numbers<'a>,
    pub raw_data: Option<&'a [u8]>,
    /// Keys `location`, `offset`, `length`.
    pub external_data: Vec<StringEntry<'a>>,
    /// 1 where the data lies in another file.
    pub data_location: i64,
}

impl<'a> TensorProto<'a> {
    /// Decodes a file that holds one tensor.
    pub fn decode(bytes: &'a [u8]) -> Result<TensorProto<'a>> {
        decode(Field::Bytes(bytes), 2)
    }
}

impl<'a> Message<'a> for TensorProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.dims.push(field),
            2 => self.data_type = field.int()?,
            4 => self.float_data.push(field),
            5 => self.int32_data.push(field),
            6 => self.string_data.push(field.bytes()?),
            7 => self.int64_data.push(field),
            8 => self.name = field.string()?,
            9 => self.raw_data = Some(field.bytes()?),
            10 => self.double_data.push(field),
            11 => self.uint64_data.push(field),
            13 => self.external_data.push(decode(field, depth)?),
            14 => self.data_location = field.int()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct StringEntry<'a> {
    pub key: &'a str,
    pub value: &'a str,
}

impl<'a> Message<'a> for StringEntry<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, _: usize) -> Result<()> {
        match number {
            1 => self.key = field.string()?,
            2 => self.value = field.string()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct SparseTensorProto<'a> {
    /// Has the tensor's name.
    pub values: TensorProto<'a>,
    /// Flat indices `[n]`, or coordinates `[n, rank]`.
    pub indices: TensorProto<'a>,
    pub dims: Numbers<'a>,
}

impl<'a> Message<'a> for SparseTensorProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.values = decode(field, depth)?,
            2 => self.indices = decode(field, depth)?,
            3 => self.dims.push(field),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct ValueInfo<'a> {
    pub name: &'a str,
    pub kind: Option<TypeProto<'a>>,
}

impl<'a> Message<'a> for ValueInfo<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.name = field.string()?,
            2 => self.kind = Some(decode(field, depth)?),
            _ => {}
        }
        Ok(())
    }
}

/// A value's type.
#[derive(Clone, Debug, Default)]
pub struct TypeProto<'a> {
    pub tensor: Option<TensorType<'a>>,
    /// What holds the elements, and their type.
    pub holder: Option<(Holder, Box<TypeProto<'a>>)>,
    /// What the value is if nothing of these.
    pub other: Option<&'static str>,
}

/// What a value of several elements is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Sequence,
    Optional,
    /// The elements are the values; what the keys are is not kept.
    Map,
}

impl<'a> Message<'a> for TypeProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.tensor = Some(decode(field, depth)?),
            4 => self.holder = held(Holder::Sequence, 1, field, depth)?,
            5 => self.holder = held(Holder::Map, 2, field, depth)?,
            7 => self.other = Some("opaque value"),
            8 => self.other = Some("sparse tensor"),
            9 => self.holder = held(Holder::Optional, 1, field, depth)?,
            _ => {}
        }
        Ok(())
    }
}

/// The type in field `element` of a message about a holder.
fn held<'a>(
    holder: Holder,
    element: u32,
    field: Field<'a>,
    depth: usize,
) -> Result<Option<(Holder, Box<TypeProto<'a>>)>> {
    let mut reader = Reader::new(field.bytes()?);
    let mut kind = TypeProto::default();
    while let Some((number, field)) = reader.field()? {
        if number == element {
            kind = decode(field, depth)?;
        }
    }
    Ok(Some((holder, Box::new(kind))))
}

#[derive(Clone, Debug, Default)]
pub struct TensorType<'a> {
    pub elem_type: i64,
    pub shape: Option<ShapeProto<'a>>,
}

impl<'a> Message<'a> for TensorType<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.elem_type = field.int()?,
            2 => self.shape = Some(decode(field, depth)?),
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct ShapeProto<'a> {
    pub dims: Vec<DimensionProto<'a>>,
}

impl<'a> Message<'a> for ShapeProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        if number == 1 {
            self.dims.push(decode(field, depth)?);
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct DimensionProto<'a> {
    pub value: Option<i64>,
    pub param: &'a str,
}

impl<'a> Message<'a> for DimensionProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, _: usize) -> Result<()> {
        match number {
            1 => self.value = Some(field.int()?),
            2 => self.param = field.string()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
pub struct FunctionProto<'a> {
    pub name: &'a str,
    pub domain: &'a str,
    pub overload: &'a str,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    /// Attributes with default values.
    pub attribute_protos: Vec<AttributeProto<'a>>,
    pub nodes: Vec<NodeProto<'a>>,
    pub opset_import: Vec<OperatorSetId<'a>>,
    pub value_info: Vec<ValueInfo<'a>>,
}

impl<'a> Message<'a> for FunctionProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.name = field.string()?,
            4 => self.inputs.push(field.string()?),
            5 => self.outputs.push(field.string()?),
            7 => self.nodes.push(decode(field, depth)?),
            9 => self.opset_import.push(decode(field, depth)?),
            10 => self.domain = field.string()?,
            11 => self.attribute_protos.push(decode(field, depth)?),
            12 => self.value_info.push(decode(field, depth)?),
            13 => self.overload = field.string()?,
            _ => {}
        }
        Ok(())
    }
}

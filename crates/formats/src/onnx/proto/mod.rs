//! The messages of `onnx.proto`, as far as they matter at inference. Strings and data borrow from
//! the file.

mod graph;
mod tensor;
mod types;
mod wire;

use kilim_core::Metadata;
use kilim_core::error::{Error, ErrorCode, Result};

pub use graph::*;
pub use tensor::*;
pub use types::*;
pub use wire::{Field, Numbers, Reader, invalid, wrong_type};

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

/// What a file looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    /// A `ModelProto`, at least up to its graph.
    Model,
    /// The beginning of one, which ends before the graph.
    CutOff,
    Other,
}

impl Look {
    /// Looks at the first fields of a file. A model begins with known fields, and the version of the format
    /// stands before the graph: a file that is cut off later is still recognised.
    pub fn of(bytes: &[u8]) -> Look {
        let mut reader = Reader::new(bytes);
        let mut version = false;
        let cut_off = |version| if version { Look::CutOff } else { Look::Other };
        while let Ok(Some((number, wire))) = reader.tag() {
            if !MODEL_FIELDS.contains(&(number, wire)) {
                return Look::Other;
            }
            if number == 7 {
                return if version { Look::Model } else { Look::Other };
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
                return cut_off(version);
            }
        }
        cut_off(version)
    }
}

#[derive(Clone, Debug, Default)]
pub struct ModelProto<'a> {
    pub ir_version: i64,
    pub graph: Option<GraphProto<'a>>,
    pub opset_import: Vec<OperatorSetId<'a>>,
    pub functions: Vec<FunctionProto<'a>>,
    pub metadata: Metadata,
}

impl<'a> ModelProto<'a> {
    /// Decodes a file, with at most `depth` messages nested in each other.
    pub fn decode(bytes: &'a [u8], depth: usize) -> Result<ModelProto<'a>> {
        let mut model: ModelProto = decode(Field::Bytes(bytes), depth)?;
        if let Some(graph) = &model.graph {
            model.metadata.name = graph.name.to_string();
            if model.metadata.description.is_empty() {
                model.metadata.description = lossy(graph.doc_string);
            }
        }
        Ok(model)
    }
}

impl<'a> Message<'a> for ModelProto<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, depth: usize) -> Result<()> {
        match number {
            1 => self.ir_version = field.int()?,
            2 => self.metadata.producer = lossy(field.bytes()?),
            3 => self.metadata.producer_version = lossy(field.bytes()?),
            4 => self.metadata.domain = lossy(field.bytes()?),
            5 => self.metadata.version = version(field.int()?),
            6 => self.metadata.description = lossy(field.bytes()?),
            7 => self.graph = Some(decode(field, depth)?),
            8 => self.opset_import.push(decode(field, depth)?),
            14 => {
                let StringStringEntry { key, value } = decode(field, depth)?;
                // A key that is empty names nothing.
                if !key.is_empty() {
                    self.metadata.add(lossy(key), lossy(value))?;
                }
            }
            25 => self.functions.push(decode(field, depth)?),
            _ => {}
        }
        Ok(())
    }
}

/// The text that a file says of itself; what is not UTF-8 is replaced, since nothing depends on it.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The version of a model as text; 0 stands for none.
pub fn version(number: i64) -> String {
    match number {
        0 => String::new(),
        number => number.to_string(),
    }
}

/// An entry of the metadata.
#[derive(Default)]
struct StringStringEntry<'a> {
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> Message<'a> for StringStringEntry<'a> {
    fn set(&mut self, number: u32, field: Field<'a>, _: usize) -> Result<()> {
        match number {
            1 => self.key = field.bytes()?,
            2 => self.value = field.bytes()?,
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

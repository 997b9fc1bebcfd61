//! Tensors, dense and sparse.

use kilim_core::error::Result;
use kilim_core::tensor::Tensor;

use super::{Field, Message, Numbers, decode};

#[derive(Clone, Debug, Default, PartialEq)]
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
    /// In the outline of a file, in the place of `raw_data`: its length, and where it lies in the file.
    pub left_out: Vec<u64>,
    /// Keys `location`, `offset`, `length`.
    pub external_data: Vec<StringEntry<'a>>,
    /// 1 where the data lies in another file.
    pub data_location: i64,
    /// The tensor itself, in the place of all fields but the name. No file has it.
    pub made: Option<Tensor>,
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
            9 => match field {
                Field::Varint(number) | Field::Fixed64(number) => self.left_out.push(number),
                _ => self.raw_data = Some(field.bytes()?),
            },
            10 => self.double_data.push(field),
            11 => self.uint64_data.push(field),
            13 => self.external_data.push(decode(field, depth)?),
            14 => self.data_location = field.int()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
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

#[derive(Clone, Debug, Default, PartialEq)]
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

//! Types of values.

use kilim_core::error::Result;

use super::{Field, Message, Reader, decode};

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
    /// What the value is, if neither a tensor nor made of tensors.
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

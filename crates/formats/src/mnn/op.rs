//! An operator while it is brought into the graph.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use super::invalid;
use super::layout::Layout;
use super::schema::OpInfo;
use crate::flatbuffer::{Table, Vector};

/// An operator, and the values that it reads.
pub struct Op<'a> {
    pub info: &'a OpInfo<'a>,
    pub inputs: Vec<Option<ValueId>>,
    /// The layouts of the inputs.
    pub layouts: Vec<Layout>,
}

impl<'a> Op<'a> {
    /// Input `i`.
    ///
    /// # Errors
    /// `InvalidModel` where the operator has fewer.
    pub fn input(&self, i: usize) -> Result<ValueId> {
        self.optional(i)
            .ok_or_else(|| invalid(format!("input {i} is missing")))
    }

    /// Input `i` where it is there.
    pub fn optional(&self, i: usize) -> Option<ValueId> {
        self.inputs.get(i).copied().flatten()
    }

    /// All inputs.
    ///
    /// # Errors
    /// `InvalidModel` where there is none, or one is left out.
    pub fn all(&self) -> Result<Vec<ValueId>> {
        match self.inputs.is_empty() {
            true => Err(invalid("input 0 is missing")),
            false => (0..self.inputs.len()).map(|i| self.input(i)).collect(),
        }
    }

    /// The layout of the first input.
    pub fn layout(&self) -> Layout {
        self.layouts.first().copied().unwrap_or(Layout::Nchw)
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.info.outputs.len()
    }

    /// The parameters, a table of this number in the union `OpParameter`; where the file has none, fields are as the schema has them.
    ///
    /// # Errors
    /// `InvalidModel` where the table is another.
    pub fn params(&self, number: u8) -> Result<Params<'a>> {
        match self.info.main {
            None => Ok(Params(None)),
            Some((found, table)) if found == number => Ok(Params(Some(table))),
            Some((found, _)) => Err(invalid("an operator has the parameters of another")
                .with_expected(format!("table {number}"))
                .with_got(format!("table {found}"))),
        }
    }

    /// Whether the parameters are a table of this number.
    pub fn has_params(&self, number: u8) -> bool {
        self.info.main.is_some_and(|(found, _)| found == number)
    }
}

/// A table of parameters, or none: then every field is left out.
#[derive(Clone, Copy)]
pub struct Params<'a>(pub Option<Table<'a>>);

impl<'a> Params<'a> {
    /// Reads field `slot` as an `i32`.
    pub fn int(&self, slot: usize, default: i32) -> Result<i32> {
        self.0.map_or(Ok(default), |t| t.i32_or(slot, default))
    }

    /// Reads field `slot` as an `i8`, as which the schema stores enumerations.
    pub fn choice(&self, slot: usize) -> Result<i8> {
        self.0.map_or(Ok(0), |t| t.i8(slot))
    }

    /// Reads field `slot` as an `f32`.
    pub fn float(&self, slot: usize, default: f32) -> Result<f32> {
        self.0.map_or(Ok(default), |t| t.f32_or(slot, default))
    }

    /// Reads field `slot` as a truth value.
    pub fn flag(&self, slot: usize, default: bool) -> Result<bool> {
        self.0.map_or(Ok(default), |t| t.bool_or(slot, default))
    }

    /// Reads field `slot` as a size.
    ///
    /// # Errors
    /// `InvalidModel` where it is negative.
    pub fn size(&self, slot: usize, default: i32) -> Result<usize> {
        size(self.int(slot, default)?)
    }

    /// A size that must not be 0: kernels, strides.
    ///
    /// # Errors
    /// `InvalidModel` where it is.
    pub fn positive(&self, slot: usize, default: i32) -> Result<usize> {
        match self.size(slot, default)? {
            0 => Err(invalid("a kernel, a stride or a number of channels is 0")),
            n => Ok(n),
        }
    }

    /// The numbers of a vector, none where it is left out.
    pub fn ints(&self, slot: usize) -> Result<Vec<i64>> {
        let ints = self.0.map_or_else(|| Ok(Vec::new()), |t| t.i32s(slot))?;
        Ok(ints.into_iter().map(i64::from).collect())
    }

    /// The sizes of a vector, none where it is left out.
    ///
    /// # Errors
    /// `InvalidModel` where one is negative.
    pub fn sizes(&self, slot: usize) -> Result<Vec<usize>> {
        let ints = self.0.map_or_else(|| Ok(Vec::new()), |t| t.i32s(slot))?;
        ints.into_iter().map(size).collect()
    }

    /// The numbers of a vector of `int64`, none where it is left out.
    pub fn longs(&self, slot: usize) -> Result<Vec<i64>> {
        self.0.map_or_else(|| Ok(Vec::new()), |t| t.i64s(slot))
    }

    /// The floats of a vector, none where it is left out.
    pub fn floats(&self, slot: usize) -> Result<Vec<f32>> {
        self.0.map_or_else(|| Ok(Vec::new()), |t| t.f32s(slot))
    }

    /// The table in field `slot`.
    pub fn table(&self, slot: usize) -> Result<Option<Params<'a>>> {
        let table = self.0.map_or(Ok(None), |t| t.table(slot))?;
        Ok(table.map(|table| Params(Some(table))))
    }

    /// The vector in field `slot`, of elements of `size` bytes; nothing where it is left out or empty.
    pub fn vector(&self, slot: usize, size: usize) -> Result<Option<Vector<'a>>> {
        let vector = self.0.map(|t| t.vector(slot, size)).transpose()?;
        Ok(vector.filter(|v| v.len > 0))
    }
}

fn size(n: i32) -> Result<usize> {
    usize::try_from(n).map_err(|_| invalid("a size is negative").with_got(n))
}

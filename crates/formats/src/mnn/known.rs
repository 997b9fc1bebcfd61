//! Integers that are known while a model is read: shapes, axes, and what MNN's converter computes of ranks.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::BinaryKind;
use kilim_core::tensor::Tensor;

use super::import::Import;

/// The most numbers that are computed while a model is read.
const MOST: usize = 64;

impl Import<'_> {
    /// The elements of `x`, integers, where they are known.
    pub fn known(&self, x: ValueId) -> Result<Option<Vec<i64>>> {
        self.constant(x).map(|tensor| tensor.to_i64s()).transpose()
    }

    /// `x` as a vector of `int64`: what shapes and axes are given in.
    pub fn vector_of(&mut self, x: ValueId) -> Result<ValueId> {
        if let Some(ints) = self.known(x)? {
            return self.i64s(&ints);
        }
        let x = match self.rank(x)? {
            0 => self.unsqueeze(x, &[0])?,
            _ => x,
        };
        self.cast(x, DType::I64)
    }

    /// `x` as one `int64`, a scalar.
    pub fn scalar_of(&mut self, x: ValueId) -> Result<ValueId> {
        if let Some([n]) = self.known(x)?.as_deref() {
            return self.i64(*n);
        }
        let x = match self.rank(x)? {
            0 => x,
            _ => self.reshape(x, &[])?,
        };
        self.cast(x, DType::I64)
    }

    /// What a function makes of integers that are known, a number with a number or with each of a list. Nothing where one is not known, or
    /// the result is no `int32`.
    pub fn computed(
        &mut self,
        kind: BinaryKind,
        a: ValueId,
        b: ValueId,
    ) -> Result<Option<ValueId>> {
        let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) else {
            return Ok(None);
        };
        let integers = x.dtype() == DType::I32 && y.dtype() == DType::I32;
        let longer = match (x.len(), x.rank()) < (y.len(), y.rank()) {
            true => &y,
            false => &x,
        };
        let shape = longer.shape();
        let fits = x.len() == y.len() || x.len() == 1 || y.len() == 1;
        if !integers || !fits || x.len().max(y.len()) > MOST || shape.len() > 1 {
            return Ok(None);
        }
        let (shape, x, y) = (shape.to_vec(), x.to_i64s()?, y.to_i64s()?);
        let count = shape.iter().product();
        let at = |list: &[i64], i: usize| list.get(i).or(list.first()).copied();
        let numbers = (0..count).map(|i| {
            let (x, y) = (at(&x, i)?, at(&y, i)?);
            let number = match kind {
                BinaryKind::Add => x.checked_add(y),
                BinaryKind::Sub => x.checked_sub(y),
                BinaryKind::Mul => x.checked_mul(y),
                BinaryKind::Max => Some(x.max(y)),
                BinaryKind::Min => Some(x.min(y)),
                _ => None,
            };
            i32::try_from(number?).ok()
        });
        let Some(numbers) = numbers.collect::<Option<Vec<i32>>>() else {
            return Ok(None);
        };
        let tensor = Tensor::from_slice(&shape, &numbers)?;
        Ok(Some(self.tensor_value(tensor)))
    }

    /// A short list that is known in another shape; nothing where it is not known.
    pub fn shaped(&mut self, x: ValueId, shape: &[usize]) -> Result<Option<ValueId>> {
        let tensor = self.constant(x).filter(|tensor| tensor.len() <= MOST);
        let fits = |tensor: &Tensor| tensor.len() == shape.iter().product::<usize>();
        match tensor.filter(fits) {
            Some(tensor) => {
                let tensor = tensor.reshaped(shape)?;
                Ok(Some(self.tensor_value(tensor)))
            }
            None => Ok(None),
        }
    }
}

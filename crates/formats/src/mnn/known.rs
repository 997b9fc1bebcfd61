//! Integers that are known while a model is read: shapes, axes, and what MNN's converter computes of ranks.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::BinaryKind;
use kilim_core::tensor::{Tensor, element_count};

use super::import::Import;

/// The most numbers that are computed while a model is read.
const MOST: usize = 64;

impl Import<'_> {
    /// The elements of `x`, integers, where they are known: of a constant, or of a shape whose dimensions are known.
    pub fn known(&mut self, x: ValueId) -> Result<Option<Vec<i64>>> {
        if let Some(tensor) = self.constant(x) {
            return tensor.to_i64s().map(Some);
        }
        let dims = self.elements(x).unwrap_or_default();
        let ints = dims.iter().map(|dim| i64::try_from(dim.known()?).ok());
        let ints: Option<Vec<i64>> = ints.collect();
        Ok(ints.filter(|ints| {
            self.shape(x)
                .is_some_and(|s| element_count(&s).ok() == Some(ints.len()))
        }))
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
        let integers = [a, b].map(|v| self.dtype(v)) == [Some(DType::I32); 2];
        let (Some(first), Some(second)) = (self.shape(a), self.shape(b)) else {
            return Ok(None);
        };
        let lists =
            [&first, &second].map(|shape| shape.len() < 2 && shape.iter().all(|&n| n <= MOST));
        if !integers || lists.contains(&false) {
            return Ok(None);
        }
        let (Some(x), Some(y)) = (self.known(a)?, self.known(b)?) else {
            return Ok(None);
        };
        if x.len() != y.len() && x.len() != 1 && y.len() != 1 {
            return Ok(None);
        }
        let shape = match (x.len(), first.len()) < (y.len(), second.len()) {
            true => second,
            false => first,
        };
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
                // The sign of the divisor.
                BinaryKind::Mod if y != 0 => x
                    .checked_rem_euclid(y)
                    .map(|rest| if y < 0 && rest != 0 { rest + y } else { rest }),
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

    /// Integers from a first to a last, by steps; nothing where these are not known, or the list is long.
    pub fn counted(&mut self, bounds: [ValueId; 3]) -> Result<Option<ValueId>> {
        if bounds.map(|v| self.dtype(v)) != [Some(DType::I32); 3] {
            return Ok(None);
        }
        let mut numbers = [0; 3];
        for (number, bound) in numbers.iter_mut().zip(bounds) {
            match self.known(bound)?.as_deref() {
                Some(&[n]) => *number = n,
                _ => return Ok(None),
            }
        }
        let [first, last, step] = numbers;
        // What is known of a shape may be any `int64`, though its type is `int32`.
        let steps = last.checked_sub(first).and_then(|n| n.checked_div(step));
        if steps.is_none_or(|n| n >= MOST as i64) {
            return Ok(None);
        }
        let (mut list, mut next) = (Vec::new(), first);
        while (step > 0 && next < last) || (step < 0 && next > last) {
            list.push(next as i32);
            next = next.saturating_add(step);
        }
        let tensor = Tensor::from_slice(&[list.len()], &list)?;
        Ok(Some(self.tensor_value(tensor)))
    }

    /// A short list that is known in another shape; nothing where it is not known.
    pub fn shaped(&mut self, x: ValueId, shape: &[usize]) -> Result<Option<ValueId>> {
        let tensor = self.constant(x).filter(|tensor| tensor.len() <= MOST);
        let fits = |tensor: &Tensor| element_count(shape).ok() == Some(tensor.len());
        match tensor.filter(fits) {
            Some(tensor) => {
                let tensor = tensor.reshaped(shape)?;
                Ok(Some(self.tensor_value(tensor)))
            }
            None => Ok(None),
        }
    }
}

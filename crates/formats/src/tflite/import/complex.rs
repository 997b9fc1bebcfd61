//! Complex tensors: two values each, their real and their imaginary parts.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;

use super::{Import, Op};
use crate::tflite::ops::{MapFn, OnComplex};

impl<'a> Import<'a> {
    /// Makes the first output of `op` complex.
    pub fn set_complex(&mut self, op: &Op, parts: [ValueId; 2]) {
        if let Some(&t) = op.info.outputs.first() {
            self.complex[t] = Some(parts);
        }
    }

    /// The parts of input `i`.
    pub fn complex(&self, op: &Op, i: usize) -> Result<[ValueId; 2]> {
        let parts = op.tensor(i).and_then(|t| self.complex[t]);
        parts.ok_or_else(|| unsupported("real numbers"))
    }

    /// Maps an operator that may be given complex numbers.
    pub(super) fn with_complex(&mut self, op: &Op<'a>, map: MapFn, of: OnComplex) -> Result<()> {
        let given = op.info.inputs.iter().copied().flatten();
        let given: Vec<usize> = given.filter(|&t| self.complex[t].is_some()).collect();
        match of {
            _ if given.is_empty() => map(self, op)?,
            OnComplex::Nothing => return Err(unsupported("complex numbers")),
            OnComplex::EachPart => self.each_part(op, map, &given)?,
            OnComplex::Itself => map(self, op)?,
        }
        let tensors = &self.subgraph.tensors;
        let missing = |&t: &usize| tensors[t].is_complex() && self.complex[t].is_none();
        match op.info.outputs.iter().any(missing) {
            true => Err(unsupported("a complex result")),
            false => Ok(()),
        }
    }

    fn each_part(&mut self, op: &Op<'a>, map: MapFn, given: &[usize]) -> Result<()> {
        let tensors = &self.subgraph.tensors;
        let made = op.info.outputs.iter().copied();
        let made: Vec<usize> = made.filter(|&t| tensors[t].is_complex()).collect();
        let mut parts = vec![Vec::with_capacity(2); made.len()];
        for part in 0..if made.is_empty() { 1 } else { 2 } {
            for t in given {
                self.values[*t] = self.complex[*t].map(|parts| parts[part]);
            }
            for &t in &made {
                self.values[t] = None;
            }
            map(self, op)?;
            for (&t, parts) in made.iter().zip(&mut parts) {
                parts.push(self.value(t)?);
            }
        }
        for (t, parts) in made.into_iter().zip(parts) {
            if let [real, imaginary] = parts[..] {
                self.complex[t] = Some([real, imaginary]);
            }
        }
        Ok(())
    }
}

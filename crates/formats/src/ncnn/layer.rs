//! A layer while it is brought into the graph.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use super::invalid;
use super::params::Params;

/// A layer, and the values that it reads.
pub struct Layer<'a> {
    pub params: &'a Params,
    pub inputs: Vec<ValueId>,
    /// The number of its outputs.
    pub outputs: usize,
}

impl Layer<'_> {
    /// Input `i`.
    ///
    /// # Errors
    /// `InvalidModel` where the layer has fewer.
    pub fn input(&self, i: usize) -> Result<ValueId> {
        let input = self.inputs.get(i).copied();
        input.ok_or_else(|| invalid(format!("input {i} is missing")))
    }

    /// A number that must not be 0: channels, kernels, strides.
    ///
    /// # Errors
    /// `InvalidModel` where it is, or no number.
    pub fn positive(&self, id: i32, default: usize) -> Result<usize> {
        match self.params.count(id, default)? {
            0 => Err(invalid(format!("the parameter {id} must not be 0"))),
            n => Ok(n),
        }
    }
}

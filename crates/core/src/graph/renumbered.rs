//! Operators on data whose axes lie in another order.

use std::sync::Arc;

use super::Operator;
use crate::tensor::Tensor;

/// An operator that does to data what another does to the data's transpose.
pub struct Renumbered {
    pub op: Arc<dyn Operator>,
    /// Inputs behind the data that are others: constants, or left out.
    pub inputs: Vec<(usize, Option<Tensor>)>,
    /// The transposes of its outputs by this are the other's outputs.
    pub perm: Vec<usize>,
}

impl Renumbered {
    /// Whose outputs lie as the data does.
    pub fn new(op: impl Operator, perm: &[usize]) -> Renumbered {
        Renumbered {
            op: Arc::new(op),
            inputs: Vec::new(),
            perm: perm.to_vec(),
        }
    }

    /// The operator with another input; `None` where the numbers do not fit into memory.
    pub fn with_ints(mut self, input: usize, numbers: &[i64]) -> Option<Renumbered> {
        let numbers = Tensor::from_slice(&[numbers.len()], numbers).ok()?;
        self.inputs.push((input, Some(numbers)));
        Some(self)
    }
}

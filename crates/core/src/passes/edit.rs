//! What the passes share: reading constants, making nodes, permutations.

use std::sync::Arc;

use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::tensor::Tensor;

/// A node with one output.
pub fn node(name: &str, op: impl Operator, inputs: Vec<Option<ValueId>>, output: ValueId) -> Node {
    Node {
        name: name.to_string(),
        op: Arc::new(op),
        inputs,
        outputs: vec![output],
    }
}

impl Graph {
    pub(super) fn constant(&self, v: Option<ValueId>) -> Option<&Tensor> {
        v.and_then(|v| self.value(v).constant.as_ref())
    }

    pub(super) fn fact(&self, v: ValueId) -> &Fact {
        &self.value(v).fact
    }

    pub(super) fn is_f32(&self, v: ValueId) -> bool {
        self.value(v).fact.dtype == Some(DType::F32)
    }

    /// The constant of one element that `v` is.
    pub(super) fn scalar(&self, v: Option<ValueId>) -> Option<f64> {
        let tensor = self.constant(v)?;
        if tensor.len() != 1 {
            return None;
        }
        tensor.to_f64s().ok()?.first().copied()
    }

    /// The integers of a constant.
    pub(super) fn ints(&self, v: Option<ValueId>) -> Option<Vec<i64>> {
        self.constant(v)?.to_i64s().ok()
    }

    /// A new `int64` vector.
    pub(super) fn add_ints(&mut self, name: String, ints: &[i64]) -> Result<ValueId> {
        Ok(self.add_constant(name, Tensor::from_slice(&[ints.len()], ints)?))
    }
}

/// The inverse of a permutation.
pub fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; perm.len()];
    for (i, &p) in perm.iter().enumerate() {
        inverse[p] = i;
    }
    inverse
}

/// True where `perm` leaves everything in its place.
pub fn is_identity(perm: &[usize]) -> bool {
    perm.iter().enumerate().all(|(i, &p)| i == p)
}

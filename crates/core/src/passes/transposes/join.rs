//! Operators that join several values dimension by dimension: all of these are brought into the order in
//! which most of the data lies.

use super::super::edit::inverse;
use super::{Pass, START, size};
use crate::dim::Dim;
use crate::error::Result;
use crate::graph::{InferContext, Node, ValueId};
use crate::ops::Unsqueeze;

impl Pass<'_> {
    /// Operators that join several values dimension by dimension: broadcasting ones and Concat.
    pub(super) fn sink_joined(&mut self, node: &Node) -> Result<bool> {
        let [out] = node.outputs[..] else {
            return Ok(false);
        };
        let Some(rank) = self.graph.fact(out).rank() else {
            return Ok(false);
        };
        let inputs: Vec<ValueId> = node.present_inputs().collect();
        if inputs.len() != node.inputs.len() {
            return Ok(false);
        }
        // The order in which most of the data lies.
        let candidate = inputs
            .iter()
            .filter(|&&v| self.held(v).is_some_and(|h| h.perm.len() == rank))
            .max_by_key(|&&v| size(self.graph, v));
        let Some(perm) = candidate
            .and_then(|&v| self.held(v))
            .map(|h| h.perm.clone())
        else {
            return Ok(false);
        };
        let broadcasts = node.op.flow().joins();
        let renumbered = match broadcasts {
            true => Some(node.op.clone()),
            false => (node.op.renumbered(&InferContext::new(&[], 1), &perm)).map(|r| r.op),
        };
        let Some(op) = renumbered else {
            return Ok(false);
        };
        let (mut toll, mut block) = (0u64, 0u64);
        for &v in &inputs {
            let Some(r) = self.graph.fact(v).rank() else {
                return Ok(false);
            };
            if !broadcasts && r != rank || r > rank {
                return Ok(false);
            }
            block = block.saturating_add(self.price_of_order(v));
            if r == rank {
                toll = toll.saturating_add(self.price_untransposed(v, &perm));
            } else if !self.fits_any_order(v) {
                toll = toll.saturating_add(size(self.graph, v) + START);
            }
        }
        if !self.worth(toll, block, &[out], &perm) {
            return Ok(false);
        }
        let mut turned = Vec::with_capacity(inputs.len());
        for (i, &v) in inputs.iter().enumerate() {
            let name = format!("{}/{i}", node.name);
            turned.push(Some(self.aligned(v, rank, &perm, &name)?));
        }
        self.emit(node, op, turned, &perm);
        Ok(true)
    }

    /// True where `v` has at most one dimension that is not 1, so that any order of it is a view.
    fn fits_any_order(&self, v: ValueId) -> bool {
        let shape = &self.graph.fact(v).shape;
        let constant = self.graph.value(v).constant.is_some();
        constant
            || shape.as_ref().is_some_and(|s| {
                let large = s.0.iter().filter(|&d| *d != Dim::Known(1));
                large.count() <= 1
            })
    }

    /// `v`, broadcast to `rank` dimensions, in the order that `perm` undoes.
    fn aligned(&mut self, v: ValueId, rank: usize, perm: &[usize], name: &str) -> Result<ValueId> {
        let shape = self.graph.fact(v).shape.clone();
        let missing = rank - shape.as_ref().map_or(rank, |s| s.rank());
        if shape.is_some_and(|s| s.elements() == Some(1)) && missing > 0 {
            self.carry_out(v)?;
            return Ok(v);
        }
        if let Some(tensor) = &self.graph.value(v).constant {
            if tensor.len() == 1 && missing > 0 {
                return Ok(v);
            }
            let mut dims = vec![1; missing];
            dims.extend_from_slice(tensor.shape());
            let turned = tensor.reshaped(&dims)?.permuted(&inverse(perm))?;
            // Leading ones come back by broadcasting, but the operand with all dimensions is another.
            let ones = turned.shape().iter().take_while(|&&d| d == 1).count();
            let turned = if missing > 0 {
                turned.reshaped(&turned.shape()[ones.min(rank)..])?
            } else {
                turned
            };
            return Ok(self.graph.add_constant(format!("{name}/turned"), turned));
        }
        if missing == 0 {
            return self.untransposed(v, perm, name);
        }
        self.carry_out(v)?;
        let axes: Vec<i64> = (0..missing as i64).collect();
        let axes = self.graph.add_ints(format!("{name}/axes"), &axes)?;
        let mut fact = self.graph.fact(v).clone();
        if let Some(shape) = &mut fact.shape {
            shape.0.splice(0..0, vec![Dim::Known(1); missing]);
        }
        let wide = self.graph.add_value(format!("{name}/wide"), fact);
        let inputs = vec![Some(v), Some(axes)];
        self.patch.push(super::node(
            &format!("{name}/wide"),
            Unsqueeze,
            inputs,
            wide,
        ));
        self.untransposed(wide, perm, name)
    }
}

//! Operators with their axes renumbered, so that they work on the source of a transpose.

use std::sync::Arc;

use super::super::edit::inverse;
use super::Pass;
use super::sink::maps;
use crate::error::Result;
use crate::graph::{Node, Operator, ValueId};
use crate::ops::{
    BatchNorm, Expand, LayerNorm, LpNorm, Pad, Resize, RmsNorm, Slice, Softmax, Split, Tile,
    normalize_axes, normalize_axis,
};
use crate::order::sort_indices;
use crate::tensor::Tensor;

/// An operator with its axes renumbered: itself, and the inputs that are not data.
pub(super) struct Renumbered {
    pub(super) op: Arc<dyn Operator>,
    pub(super) inputs: Vec<Option<ValueId>>,
}

impl Pass<'_> {
    /// The node for data whose transpose by `perm` is its first input now.
    pub(super) fn renumbered(&mut self, node: &Node, perm: &[usize]) -> Result<Option<Renumbered>> {
        let rank = perm.len();
        let op = &*node.op;
        let axis_of = |axis: i64| normalize_axis(axis, rank).map(|a| perm[a] as i64);
        let mut inputs = node.inputs.clone();
        let same = |inputs| {
            Ok(Some(Renumbered {
                op: node.op.clone(),
                inputs,
            }))
        };
        macro_rules! with {
            ($op:expr) => {
                Ok(Some(Renumbered {
                    op: Arc::new($op),
                    inputs,
                }))
            };
        }
        if maps(self.graph, node) {
            return same(inputs);
        }
        if let Some(op) = op.downcast_ref::<Softmax>() {
            let axis = axis_of(op.axis)?;
            return with!(Softmax { axis, ..op.clone() });
        }
        if let Some(op) = op.downcast_ref::<BatchNorm>() {
            let channels = match op.channels_last {
                true => perm[rank - 1],
                false if rank > 1 => perm[1],
                false => return Ok(None),
            };
            if channels != 1 && channels + 1 != rank {
                return Ok(None);
            }
            return with!(BatchNorm {
                channels_last: channels != 1,
                ..op.clone()
            });
        }
        if let Some(op) = op.downcast_ref::<LpNorm>() {
            let axis = axis_of(op.axis)?;
            return with!(LpNorm { axis, ..op.clone() });
        }
        if let Some(op) = op.downcast_ref::<Split>() {
            let axis = axis_of(op.axis)?;
            return with!(Split { axis });
        }
        if op.is::<LayerNorm>() || op.is::<RmsNorm>() {
            let axis = op
                .downcast_ref::<LayerNorm>()
                .map(|o| o.axis)
                .or(op.downcast_ref::<RmsNorm>().map(|o| o.axis));
            let last = axis.is_some_and(|a| normalize_axis(a, rank).is_ok_and(|a| a + 1 == rank));
            return if last && perm[rank - 1] + 1 == rank && node.outputs.len() == 1 {
                same(inputs)
            } else {
                Ok(None)
            };
        }
        if op.is::<Slice>() {
            let Some(axes) = self.axes(node, 3, rank) else {
                return Ok(None);
            };
            let axes: Vec<i64> = axes.iter().map(|&a| perm[a] as i64).collect();
            inputs.resize(inputs.len().max(4), None);
            inputs[3] = Some(self.graph.add_ints(format!("{}/axes", node.name), &axes)?);
            return same(inputs);
        }
        if op.is::<Pad>() {
            let Some(axes) = self.axes(node, 3, rank) else {
                return Ok(None);
            };
            let Some(pads) = self.graph.ints(node.input(1)) else {
                return Ok(None);
            };
            if pads.len() != 2 * axes.len() {
                return Ok(None);
            }
            let mut all = vec![0; 2 * rank];
            for (i, &a) in axes.iter().enumerate() {
                all[perm[a]] = pads[i];
                all[rank + perm[a]] = pads[axes.len() + i];
            }
            inputs[1] = Some(self.graph.add_ints(format!("{}/pads", node.name), &all)?);
            inputs.truncate(3);
            return same(inputs);
        }
        if op.is::<Tile>() || op.is::<Expand>() {
            let Some(counts) = self.graph.ints(node.input(1)).filter(|c| c.len() == rank) else {
                return Ok(None);
            };
            let counts: Vec<i64> = inverse(perm).iter().map(|&i| counts[i]).collect();
            let name = format!("{}/counts", node.name);
            inputs[1] = Some(self.graph.add_ints(name, &counts)?);
            return same(inputs);
        }
        if let Some(op) = op.downcast_ref::<Resize>() {
            return self.resize(node, op, perm);
        }
        Ok(None)
    }

    /// The axes in input `i`, or all where it is left out (as many as there are starts in a Slice).
    fn axes(&self, node: &Node, i: usize, rank: usize) -> Option<Vec<usize>> {
        let axes = match node.input(i) {
            Some(v) => self.graph.ints(Some(v))?,
            None if node.op.is::<Slice>() => {
                let starts = &self.graph.fact(node.input(1)?).shape;
                let n = starts.as_ref()?.0.first()?.known()?;
                (0..n as i64).collect()
            }
            None => (0..rank as i64).collect(),
        };
        normalize_axes(&axes, rank).ok()
    }

    fn resize(&mut self, node: &Node, op: &Resize, perm: &[usize]) -> Result<Option<Renumbered>> {
        let rank = perm.len();
        let all = (0..rank as i64).collect();
        let Ok(axes) = normalize_axes(op.axes.as_ref().unwrap_or(&all), rank) else {
            return Ok(None);
        };
        if node.input(1).is_some() {
            return Ok(None);
        }
        // Scales or sizes as constants can stand in the order of the axes.
        let mut order: Vec<usize> = (0..axes.len()).collect();
        sort_indices(&mut order, &mut |a, b| perm[axes[a]].cmp(&perm[axes[b]]));
        let mut inputs = node.inputs.clone();
        for i in [2, 3] {
            let Some(v) = node.input(i) else { continue };
            let Some(tensor) = self.graph.constant(Some(v)).cloned() else {
                return Ok(None);
            };
            if tensor.is_empty() {
                continue;
            }
            if tensor.len() != axes.len() {
                return Ok(None);
            }
            let sorted = match tensor.as_slice::<f32>() {
                Ok(s) => {
                    let s: Vec<f32> = order.iter().map(|&i| s[i]).collect();
                    Tensor::from_slice(&[s.len()], &s)?
                }
                Err(_) => {
                    let s = tensor.to_i64s()?;
                    let s: Vec<i64> = order.iter().map(|&i| s[i]).collect();
                    Tensor::from_slice(&[s.len()], &s)?
                }
            };
            let name = format!("{}/{i}", node.name);
            inputs[i] = Some(self.graph.add_constant(name, sorted));
        }
        let axes =
            (axes.len() < rank).then(|| order.iter().map(|&i| perm[axes[i]] as i64).collect());
        Ok(Some(Renumbered {
            op: Arc::new(Resize { axes, ..op.clone() }),
            inputs,
        }))
    }
}

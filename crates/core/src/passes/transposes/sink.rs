//! Lets operators work on data as it lies, their axes renumbered.

use std::sync::Arc;

use super::super::edit::{inverse, is_identity};
use super::super::layout::permuted_fact;
use super::{Held, Pass, START, is_free, size};
use crate::dim::Dim;
use crate::error::Result;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::*;
use crate::order::sort_indices;
use crate::tensor::Tensor;

/// An operator with its axes renumbered: itself, and the inputs that are not data.
struct Renumbered {
    op: Arc<dyn Operator>,
    inputs: Vec<Option<ValueId>>,
}

/// True where tensors are broadcast and combined element by element.
pub(super) fn joins(op: &dyn Operator) -> bool {
    op.is::<Binary>() || op.is::<Where>() || op.is::<QLinearBinary>() || op.is::<QuantizedBinary>()
}

/// True where each element of the first input becomes one of the output, whichever axis it is on.
pub(super) fn maps(graph: &Graph, node: &Node) -> bool {
    let op = &*node.op;
    if op.is::<QuantizeLinear>() || op.is::<DequantizeLinear>() {
        let scale = node.input(1).and_then(|v| graph.fact(v).shape.as_ref());
        return scale.is_some_and(|s| s.elements() == Some(1));
    }
    let several = |r: &Requantize| r.factors.len() > 1;
    op.is::<Unary>()
        || op.is::<TableLookup>()
        || op.is::<AffineQuantize>()
        || op.downcast_ref::<Requantize>().is_some_and(|r| !several(r))
}

impl Pass<'_> {
    /// Puts a node that works on held data into the list, its outputs held in turn; false where it
    /// has to see its inputs in order.
    pub(super) fn sink(&mut self, node: &Node) -> Result<bool> {
        let op = &*node.op;
        if op.is::<Reshape>() || op.is::<Flatten>() || op.is::<Squeeze>() || op.is::<Unsqueeze>() {
            return self.sink_reshape(node);
        }
        if op.is::<MatMul>() || op.is::<Gemm>() {
            return self.sink_product(node);
        }
        if op.is::<Concat>() || joins(op) {
            return self.sink_joined(node);
        }
        if op.is::<Reduce>() || op.is::<ArgReduce>() {
            return self.sink_reduction(node);
        }
        let Some(held) = node.input(0).and_then(|x| self.held(x)).cloned() else {
            return Ok(false);
        };
        let rank = held.perm.len();
        let Some(x) = node.input(0) else {
            return Ok(false);
        };
        if node
            .outputs
            .iter()
            .any(|&v| self.graph.fact(v).rank() != Some(rank))
            || !self.worth(0, self.price_of_order(x), &node.outputs, &held.perm)
        {
            return Ok(false);
        }
        let Some(renumbered) = self.renumbered(node, &held.perm)? else {
            return Ok(false);
        };
        let mut inputs = renumbered.inputs;
        inputs[0] = Some(held.source);
        for &v in inputs.iter().skip(1).flatten() {
            self.carry_out(v)?;
        }
        self.emit(node, renumbered.op, inputs, &held.perm);
        Ok(true)
    }

    /// Appends a node whose outputs lie in the order `perm` undoes.
    fn emit(
        &mut self,
        node: &Node,
        op: Arc<dyn Operator>,
        inputs: Vec<Option<ValueId>>,
        perm: &[usize],
    ) {
        let back = inverse(perm);
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for &v in &node.outputs {
            if is_identity(perm) {
                outputs.push(v);
                continue;
            }
            let fact = permuted_fact(self.graph.fact(v), &back);
            let name = format!("{}/lying", self.graph.value(v).name);
            let lying = self.graph.add_value(name, fact);
            outputs.push(lying);
            let name = format!("{}/order", node.name);
            let held = Held {
                source: lying,
                perm: perm.to_vec(),
                name,
            };
            self.hold(v, held);
        }
        self.nodes.push(Node {
            name: node.name.clone(),
            op,
            inputs,
            outputs,
        });
    }

    /// `node` for data of which its first input is the transpose by `perm`.
    fn renumbered(&mut self, node: &Node, perm: &[usize]) -> Result<Option<Renumbered>> {
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
        if op.is::<Cast>() || op.is::<Clip>() || maps(self.graph, node) {
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

    /// Operators that join several values dimension by dimension: broadcasting ones and Concat.
    fn sink_joined(&mut self, node: &Node) -> Result<bool> {
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
        let concat = node.op.downcast_ref::<Concat>();
        let (mut toll, mut block) = (0u64, 0u64);
        for &v in &inputs {
            let Some(r) = self.graph.fact(v).rank() else {
                return Ok(false);
            };
            if concat.is_some() && r != rank || r > rank {
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
        let op: Arc<dyn Operator> = match concat {
            Some(op) => {
                let Ok(axis) = normalize_axis(op.axis, rank) else {
                    return Ok(false);
                };
                Arc::new(Concat {
                    axis: perm[axis] as i64,
                })
            }
            None => node.op.clone(),
        };
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
        self.nodes.push(super::node(
            &format!("{name}/wide"),
            Unsqueeze,
            inputs,
            wide,
        ));
        self.untransposed(wide, perm, name)
    }

    fn sink_reduction(&mut self, node: &Node) -> Result<bool> {
        let (Some(x), [out]) = (node.input(0), &node.outputs[..]) else {
            return Ok(false);
        };
        let out = *out;
        let Some(held) = self.held(x).cloned() else {
            return Ok(false);
        };
        let rank = held.perm.len();
        let op = &*node.op;
        let (axes, keep) = if let Some(op) = op.downcast_ref::<Reduce>() {
            let axes = match node.input(1) {
                Some(v) => match self.graph.ints(Some(v)) {
                    Some(axes) if !axes.is_empty() => normalize_axes(&axes, rank),
                    _ => return Ok(false),
                },
                None if op.noop_with_empty_axes => return Ok(false),
                None => Ok((0..rank).collect()),
            };
            (axes, op.keep_dims)
        } else if let Some(op) = op.downcast_ref::<ArgReduce>() {
            (normalize_axes(&[op.axis], rank), op.keep_dims)
        } else {
            return Ok(false);
        };
        let Ok(axes) = axes else { return Ok(false) };
        let mut lying: Vec<usize> = axes.iter().map(|&a| held.perm[a]).collect();
        lying.sort_unstable();
        let perm: Vec<usize> = if keep {
            held.perm.clone()
        } else {
            let kept = (0..rank).filter(|d| !axes.contains(d));
            let gone = |p: usize| lying.iter().filter(|&&l| l < p).count();
            kept.map(|d| held.perm[d] - gone(held.perm[d])).collect()
        };
        if !self.worth(0, self.price_of_order(x), &[out], &perm) {
            return Ok(false);
        }
        let mut inputs = vec![Some(held.source)];
        let op: Arc<dyn Operator> = match op.downcast_ref::<ArgReduce>() {
            Some(op) => Arc::new(ArgReduce {
                axis: lying.first().map_or(0, |&a| a as i64),
                ..op.clone()
            }),
            None => {
                let axes: Vec<i64> = lying.iter().map(|&a| a as i64).collect();
                let name = format!("{}/axes", node.name);
                inputs.push(Some(self.graph.add_ints(name, &axes)?));
                node.op.clone()
            }
        };
        self.emit(node, op, inputs, &perm);
        Ok(true)
    }

    /// A transpose of the last two dimensions of an operand is an attribute of the product.
    fn sink_product(&mut self, node: &Node) -> Result<bool> {
        let swaps = |pass: &Self, i: usize| {
            let held = pass.held(node.input(i)?)?;
            let n = held.perm.len();
            let mut swap: Vec<usize> = (0..n).collect();
            if n < 2 {
                return None;
            }
            swap.swap(n - 1, n - 2);
            let moves = !is_free(pass.graph, held.source, &held.perm);
            (held.perm == swap && moves).then_some(held.source)
        };
        let mut inputs = node.inputs.clone();
        let op: Arc<dyn Operator> = if let Some(op) = node.op.downcast_ref::<MatMul>() {
            let Some(b) = swaps(self, 1) else {
                return Ok(false);
            };
            inputs[1] = Some(b);
            Arc::new(MatMul {
                transpose_b: !op.transpose_b,
                ..op.clone()
            })
        } else if let Some(op) = node.op.downcast_ref::<Gemm>() {
            let (a, b) = (swaps(self, 0), swaps(self, 1));
            if a.is_none() && b.is_none() {
                return Ok(false);
            }
            inputs[0] = a.or(inputs[0]);
            inputs[1] = b.or(inputs[1]);
            Arc::new(Gemm {
                transpose_a: op.transpose_a ^ a.is_some(),
                transpose_b: op.transpose_b ^ b.is_some(),
                ..op.clone()
            })
        } else {
            return Ok(false);
        };
        for &v in inputs.iter().flatten() {
            self.carry_out(v)?;
        }
        self.nodes.push(Node {
            op,
            inputs,
            ..node.clone()
        });
        Ok(true)
    }
}

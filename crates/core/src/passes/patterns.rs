//! Finds activations and normalisations that a file spells out in smaller operators.

use super::patch::Patch;
use crate::error::Result;
use crate::graph::{Graph, Node, Operator, ValueId};
use crate::ops::{
    Binary, BinaryKind, Clip, LayerNorm, Reduce, ReduceKind, RmsNorm, Unary, UnaryKind,
};
use crate::tensor::Tensor;

/// Puts activations in the place of `float32` nodes that spell them out. Comes before `fuse`,
/// which would take the pieces apart. Needs inferred facts. True where it found one.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn activations(graph: &mut Graph) -> Result<bool> {
    replace(graph, |graph, patch, node| {
        let g = Finder { graph, patch };
        g.bounded(node)
            .or_else(|| g.product_activation(node))
            .or_else(|| g.hard_sigmoid(node))
            .or_else(|| g.gelu(node))
    })
}

/// Puts normalisations in the place of `float32` nodes that spell them out. Needs inferred facts. True where
/// it found one.
///
/// # Errors
/// Those of [`Patch::finish`].
pub fn normalisations(graph: &mut Graph) -> Result<bool> {
    replace(graph, normalisation)
}

/// Puts the larger operator that `find` says ends at a node in its place. What that leaves without
/// readers is dead code.
fn replace(
    graph: &mut Graph,
    find: impl Fn(&mut Graph, &Patch, &Node) -> Option<Found>,
) -> Result<bool> {
    let mut patch = Patch::start(graph);
    while let Some(mut node) = patch.next_node() {
        if let [out] = node.outputs[..]
            && graph.is_f32(out)
            && let Some((op, inputs)) = find(graph, &patch, &node)
        {
            node.op = op;
            node.inputs = inputs;
            patch.changed = true;
        }
        patch.push(node);
    }
    patch.finish(graph)
}

/// What a node in hand is found to be: an operator and its inputs.
type Found = (std::sync::Arc<dyn Operator>, Vec<Option<ValueId>>);

fn found(op: impl Operator, inputs: &[ValueId]) -> Option<Found> {
    let inputs = inputs.iter().copied().map(Some).collect();
    Some((std::sync::Arc::new(op), inputs))
}

/// Looks for operators among the nodes before the one in hand.
pub(super) struct Finder<'a> {
    pub graph: &'a Graph,
    pub patch: &'a Patch,
}

/// File formats round these constants to half precision at worst.
fn close(value: f64, to: f64) -> bool {
    (value - to).abs() <= 5e-4 * to.abs()
}

impl Finder<'_> {
    /// The inputs of the plain binary operator that writes `v`.
    pub fn binary(&self, v: ValueId, kind: BinaryKind) -> Option<(ValueId, ValueId)> {
        let (op, node) = self.patch.produced_by::<Binary>(Some(v))?;
        (*op == Binary::new(kind)).then(|| Some((node.input(0)?, node.input(1)?)))?
    }

    /// The input of the unary operator that writes `v`.
    pub fn unary(&self, v: ValueId, kind: UnaryKind) -> Option<ValueId> {
        let (op, node) = self.patch.produced_by::<Unary>(Some(v))?;
        (op.0 == kind).then(|| node.input(0))?
    }

    fn scalar(&self, v: ValueId) -> Option<f64> {
        self.graph.scalar(Some(v))
    }

    /// `x` and the constant `c` where `v = x * c`, `x / (1 / c)`.
    pub fn scaled(&self, v: ValueId) -> Option<(ValueId, f64)> {
        if let Some((a, b)) = self.binary(v, BinaryKind::Mul) {
            return match (self.scalar(a), self.scalar(b)) {
                (None, Some(c)) => Some((a, c)),
                (Some(c), None) => Some((b, c)),
                _ => None,
            };
        }
        let (a, b) = self.binary(v, BinaryKind::Div)?;
        Some((a, 1.0 / self.scalar(b)?))
    }

    /// `x` and the constant `c` where `v = x + c`.
    fn shifted(&self, v: ValueId) -> Option<(ValueId, f64)> {
        let (a, b) = self.binary(v, BinaryKind::Add)?;
        match (self.scalar(a), self.scalar(b)) {
            (None, Some(c)) => Some((a, c)),
            (Some(c), None) => Some((b, c)),
            _ => None,
        }
    }

    /// `x` where `v = x^n`, spelled as a power or as products.
    fn power(&self, v: ValueId, n: u32) -> Option<ValueId> {
        if let Some((x, e)) = self.binary(v, BinaryKind::Pow) {
            return self.scalar(e).filter(|&e| e == f64::from(n)).map(|_| x);
        }
        let (a, b) = self.binary(v, BinaryKind::Mul)?;
        match n {
            2 => (a == b).then_some(a),
            _ if self.power(b, n - 1) == Some(a) => Some(a),
            _ => self.power(a, n - 1).filter(|&x| x == b),
        }
    }

    /// `v = 1 / sqrt(x)`.
    fn inverse_root(&self, v: ValueId) -> Option<ValueId> {
        if let Some(root) = self.unary(v, UnaryKind::Reciprocal) {
            return self.unary(root, UnaryKind::Sqrt);
        }
        if let Some((x, e)) = self.binary(v, BinaryKind::Pow) {
            return self.scalar(e).filter(|&e| e == -0.5).map(|_| x);
        }
        let (one, root) = self.binary(v, BinaryKind::Div)?;
        self.scalar(one).filter(|&c| c == 1.0)?;
        self.unary(root, UnaryKind::Sqrt)
    }

    /// Clip with constant bounds.
    fn bounded(&self, node: &Node) -> Option<Found> {
        if !node.op.is::<Clip>() {
            return None;
        }
        let bound = |i: usize, none: f64| match node.input(i) {
            None => Some(none),
            Some(v) => self.scalar(v),
        };
        let min = bound(1, f64::NEG_INFINITY)?;
        let max = bound(2, f64::INFINITY)?;
        let kind = if min == 0.0 && max == f64::INFINITY {
            UnaryKind::Relu
        } else {
            UnaryKind::Clip { min, max }
        };
        found(Unary(kind), &[node.input(0)?])
    }

    /// `x * sigmoid(x)`, `x * hardsigmoid(x)`, `x * tanh(softplus(x))`.
    fn product_activation(&self, node: &Node) -> Option<Found> {
        let (a, b) = as_binary(node, BinaryKind::Mul)?;
        let kind = |x: ValueId, f: ValueId| -> Option<UnaryKind> {
            let (op, inner) = self.patch.produced_by::<Unary>(Some(f))?;
            let y = inner.input(0)?;
            Some(match op.0 {
                UnaryKind::Sigmoid if y == x => UnaryKind::Swish { alpha: 1.0 },
                UnaryKind::Sigmoid => {
                    let (z, alpha) = self.scaled(y).filter(|&(z, _)| z == x)?;
                    let _ = z;
                    UnaryKind::Swish {
                        alpha: alpha as f32,
                    }
                }
                UnaryKind::HardSigmoid { alpha, beta } => {
                    let same = y == x && close(alpha.into(), 1.0 / 6.0) && beta == 0.5;
                    same.then_some(UnaryKind::HardSwish)?
                }
                UnaryKind::Tanh => {
                    self.unary(y, UnaryKind::Softplus).filter(|&z| z == x)?;
                    UnaryKind::Mish
                }
                _ => return None,
            })
        };
        let (x, kind) = kind(a, b)
            .map(|k| (a, k))
            .or_else(|| kind(b, a).map(|k| (b, k)))?;
        found(Unary(kind), &[x])
    }

    /// `clip(x + 3, 0, 6) / 6`, and the product of that with `x`.
    fn hard_sigmoid(&self, node: &Node) -> Option<Found> {
        let (clipped, factor) = match node.op.downcast_ref::<Binary>()? {
            op if *op == Binary::new(BinaryKind::Mul) => {
                let (a, b) = (node.input(0)?, node.input(1)?);
                match (self.scalar(a), self.scalar(b)) {
                    (None, Some(c)) => (a, c),
                    (Some(c), None) => (b, c),
                    _ => return None,
                }
            }
            op if *op == Binary::new(BinaryKind::Div) => {
                (node.input(0)?, 1.0 / self.scalar(node.input(1)?)?)
            }
            _ => return None,
        };
        if !close(factor, 1.0 / 6.0) {
            return None;
        }
        let six = UnaryKind::Clip { min: 0.0, max: 6.0 };
        if let Some(shifted) = self.unary(clipped, six) {
            let (x, _) = self.shifted(shifted).filter(|&(_, c)| c == 3.0)?;
            let kind = UnaryKind::HardSigmoid {
                alpha: 1.0 / 6.0,
                beta: 0.5,
            };
            return found(Unary(kind), &[x]);
        }
        let (a, b) = self.binary(clipped, BinaryKind::Mul)?;
        let of = |x: ValueId, f: ValueId| {
            let (y, _) = self
                .shifted(self.unary(f, six)?)
                .filter(|&(_, c)| c == 3.0)?;
            (y == x).then_some(x)
        };
        let x = of(a, b).or_else(|| of(b, a))?;
        found(Unary(UnaryKind::HardSwish), &[x])
    }

    /// The factors of a product of up to three.
    fn factors(&self, node: &Node) -> Option<Vec<ValueId>> {
        let (a, b) = as_binary(node, BinaryKind::Mul)?;
        let mut all = Vec::with_capacity(4);
        for v in [a, b] {
            match self.binary(v, BinaryKind::Mul) {
                Some((p, q)) => all.extend([p, q]),
                None => all.push(v),
            }
        }
        (all.len() >= 3).then_some(all)
    }

    /// `x / 2 * (1 + erf(x / sqrt(2)))` in any order, and the approximation by tanh.
    fn gelu(&self, node: &Node) -> Option<Found> {
        let factors = self.factors(node).filter(|f| f.len() == 3)?;
        let half = factors.iter().position(|&v| self.scalar(v) == Some(0.5))?;
        let rest: Vec<ValueId> = (0..3).filter(|&i| i != half).map(|i| factors[i]).collect();
        for (x, f) in [(rest[0], rest[1]), (rest[1], rest[0])] {
            let Some((inner, 1.0)) = self.shifted(f) else {
                continue;
            };
            if let Some(scaled) = self.unary(inner, UnaryKind::Erf) {
                let fits = self
                    .scaled(scaled)
                    .is_some_and(|(y, c)| y == x && close(c, std::f64::consts::FRAC_1_SQRT_2));
                if fits {
                    return found(Unary(UnaryKind::Gelu { tanh: false }), &[x]);
                }
            }
            if let Some(argument) = self.unary(inner, UnaryKind::Tanh)
                && self.is_cubic(argument, x)
            {
                return found(Unary(UnaryKind::Gelu { tanh: true }), &[x]);
            }
        }
        None
    }

    /// `v = sqrt(2 / pi) * (x + 0.044715 * x^3)`.
    fn is_cubic(&self, v: ValueId, x: ValueId) -> bool {
        let cubic = || {
            let (sum, c) = self.scaled(v)?;
            let (a, b) = self.binary(sum, BinaryKind::Add)?;
            let cube = if a == x { b } else { a };
            let (p, factor) = self.scaled(cube)?;
            let fits = (a == x || b == x)
                && close(c, (2.0 / std::f64::consts::PI).sqrt())
                && close(factor, 0.044715);
            (fits && self.power(p, 3) == Some(x)).then_some(())
        };
        cubic().is_some()
    }

    /// `x` where `v` is its mean over the last dimension, kept.
    fn mean(&self, v: ValueId) -> Option<ValueId> {
        let (op, node) = self.patch.produced_by::<Reduce>(Some(v))?;
        let x = node.input(0)?;
        let rank = self.graph.fact(x).rank()?;
        let axes = self.graph.ints(node.input(1))?;
        let last = axes == [-1] || axes == [rank as i64 - 1];
        (op.kind == ReduceKind::Mean && op.keep_dims && last).then_some(x)
    }
}

/// The inputs of `node`, if it is this plain binary operator.
pub(super) fn as_binary(node: &Node, kind: BinaryKind) -> Option<(ValueId, ValueId)> {
    let op = node.op.downcast_ref::<Binary>()?;
    (*op == Binary::new(kind)).then(|| Some((node.input(0)?, node.input(1)?)))?
}

/// Layer and root-mean-square normalisation over the last dimension, then their scale and bias.
fn normalisation(graph: &mut Graph, patch: &Patch, node: &Node) -> Option<Found> {
    if let Some(found) = scale_and_bias(graph, patch, node) {
        return Some(found);
    }
    let g = Finder { graph, patch };
    // The dividend, and what stands under the root.
    let (x, radicand) = if let Some((x, root)) = as_binary(node, BinaryKind::Div) {
        (x, g.unary(root, UnaryKind::Sqrt)?)
    } else {
        let (a, b) = as_binary(node, BinaryKind::Mul)?;
        match (g.inverse_root(a), g.inverse_root(b)) {
            (_, Some(v)) => (a, v),
            (Some(v), _) => (b, v),
            _ => return None,
        }
    };
    let (mean_square, epsilon) = g.shifted(radicand)?;
    let square = g.mean(mean_square)?;
    let centred = g.power(square, 2)?;
    let epsilon = epsilon as f32;
    let width = graph.fact(x).shape.as_ref()?.0.last()?.known()?;
    let layer = match g.binary(x, BinaryKind::Sub) {
        Some((y, mean)) if g.mean(mean) == Some(y) => {
            // The deviation may come from a difference of its own.
            let same = x == centred
                || g.binary(centred, BinaryKind::Sub)
                    .is_some_and(|(z, m)| z == y && g.mean(m) == Some(y));
            same.then_some(y)
        }
        _ => None,
    };
    if layer.is_none() && x != centred {
        return None;
    }
    let ones = Tensor::from_slice(&[width], &vec![1f32; width]).ok()?;
    let scale = graph.add_constant(format!("{}/scale", node.name), ones);
    match layer {
        Some(y) => found(LayerNorm { axis: -1, epsilon }, &[y, scale]),
        None => found(RmsNorm { axis: -1, epsilon }, &[x, scale]),
    }
}

/// A product after a normalisation that scales by one, a sum after one without a bias.
fn scale_and_bias(graph: &Graph, patch: &Patch, node: &Node) -> Option<Found> {
    let op = node.op.downcast_ref::<Binary>()?;
    let (a, b) = (node.input(0)?, node.input(1)?);
    let (x, c) = match (patch.producer(Some(a)), patch.producer(Some(b))) {
        (Some(p), _) if is_norm(p) => (a, b),
        (_, Some(p)) if is_norm(p) => (b, a),
        _ => return None,
    };
    let norm = patch.producer(Some(x))?;
    let width = graph.fact(x).shape.as_ref()?.0.last()?.known()?;
    let constant = graph.constant(Some(c))?;
    if patch.uses(x) > 0 || constant.shape() != [width] || norm.outputs.len() != 1 {
        return None;
    }
    let ones = |v: Option<ValueId>| {
        let scale = graph.constant(v).and_then(|t| t.as_slice::<f32>().ok());
        scale.is_some_and(|s| s.iter().all(|&v| v == 1.0))
    };
    let mut inputs = norm.inputs.clone();
    match op {
        op if *op == Binary::new(BinaryKind::Mul) && norm.input(2).is_none() => {
            if !ones(norm.input(1)) {
                return None;
            }
            inputs[1] = Some(c);
        }
        op if *op == Binary::new(BinaryKind::Add) && norm.op.is::<LayerNorm>() => {
            if norm.input(2).is_some() {
                return None;
            }
            inputs.resize(2, None);
            inputs.push(Some(c));
        }
        _ => return None,
    }
    Some((norm.op.clone(), inputs))
}

fn is_norm(node: &Node) -> bool {
    node.op.is::<LayerNorm>() || node.op.is::<RmsNorm>()
}

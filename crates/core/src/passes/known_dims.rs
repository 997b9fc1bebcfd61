//! Shape arithmetic on dimensions when only some are known: `Shape → Gather → Concat → Reshape` with a batch
//! that is not known yet still tells all the others.

use crate::dim::Dim;
use crate::graph::{Axes, Graph, Node, ValueId};
use crate::ids::IdMap;
use crate::ops::{
    Binary, BinaryKind, Cast, Concat, Gather, ShapeOf, Size, Slice, Unary, UnaryKind,
};

/// Longest vector that is followed.
const LONGEST: usize = 64;

/// What is known of small integer values, element by element. Vectors and scalars alike are lists.
#[derive(Default)]
pub struct KnownDims {
    known: IdMap<ValueId, Vec<Dim>>,
}

impl KnownDims {
    /// The elements of `v`; some may be unknown. Negative elements count as unknown.
    pub fn get(&self, graph: &Graph, v: ValueId) -> Option<Vec<Dim>> {
        if let Some(dims) = self.known.get(&v) {
            return Some(dims.clone());
        }
        let tensor = graph.value(v).constant.as_ref()?;
        if tensor.rank() > 1 || tensor.len() > LONGEST || !tensor.dtype().is_integer() {
            return None;
        }
        let dims = tensor.to_i64s().ok()?.into_iter();
        Some(
            dims.map(|n| usize::try_from(n).map_or(Dim::Unknown, Dim::Known))
                .collect(),
        )
    }

    /// Follows one node. Inputs must have been followed before.
    pub fn follow(&mut self, graph: &Graph, node: &Node) {
        let [out] = node.outputs[..] else { return };
        if let Some(dims) = self.compute(graph, node)
            && dims.len() <= LONGEST
        {
            self.known.insert(out, dims);
        }
    }

    fn input(&self, graph: &Graph, node: &Node, i: usize) -> Option<Vec<Dim>> {
        self.get(graph, node.input(i)?)
    }

    fn compute(&self, graph: &Graph, node: &Node) -> Option<Vec<Dim>> {
        let op = &*node.op;
        let shape = |i: usize| graph.fact(node.input(i)?).shape.as_ref();
        if let Some(op) = op.downcast_ref::<ShapeOf>() {
            let dims = &shape(0)?.0;
            let (start, end) = range(dims.len(), op.start, op.end.unwrap_or(i64::MAX));
            return Some(dims.get(start..end)?.to_vec());
        }
        if op.is::<Size>() {
            let one = Dim::Known(1);
            return Some(vec![shape(0)?.0.iter().fold(one, |n, d| n.times(d))]);
        }
        if op.flow().axes == Axes::Regrouped || op.is::<Cast>() || is_identity(node) {
            let integer = graph.fact(node.outputs[0]).dtype?.is_integer();
            // A vector of several elements may become a matrix; a list cannot say so.
            let flat = graph.fact(node.outputs[0]).rank()? <= 1;
            return (integer && flat).then(|| self.input(graph, node, 0))?;
        }
        if op.is::<Gather>() {
            let data = self.input(graph, node, 0)?;
            let indices = graph.constant(node.input(1)).filter(|t| t.rank() <= 1)?;
            let at = |i: i64| {
                let i = if i < 0 { i + data.len() as i64 } else { i };
                data.get(usize::try_from(i).ok()?).cloned()
            };
            return indices.to_i64s().ok()?.into_iter().map(at).collect();
        }
        if op.is::<Slice>() {
            let data = self.input(graph, node, 0)?;
            let start = *graph.ints(node.input(1))?.first()?;
            let end = *graph.ints(node.input(2))?.first()?;
            let step = node
                .input(4)
                .map_or(Some(vec![1]), |v| graph.ints(Some(v)))?;
            let (start, end) = range(data.len(), start, end);
            return (step == [1]).then(|| data.get(start..end).map(<[Dim]>::to_vec))?;
        }
        if op.is::<Concat>() {
            let mut all = Vec::new();
            for v in node.present_inputs() {
                all.extend(self.get(graph, v)?);
            }
            return (graph.fact(node.outputs[0]).rank()? == 1).then_some(all);
        }
        let kind = op.downcast_ref::<Binary>()?.kind;
        let (a, b) = (self.input(graph, node, 0)?, self.input(graph, node, 1)?);
        let len = match (a.len(), b.len()) {
            (n, m) if n == m => n,
            (1, n) | (n, 1) => n,
            _ => return None,
        };
        let element = |i: usize| {
            let (a, b) = (&a[i % a.len()], &b[i % b.len()]);
            match kind {
                BinaryKind::Add => a.plus(b),
                BinaryKind::Mul => a.times(b),
                BinaryKind::Sub if *b == Dim::Known(0) => a.clone(),
                BinaryKind::Sub => a.map(|x| b.known().and_then(|y| x.checked_sub(y))),
                BinaryKind::Div if *b == Dim::Known(1) => a.clone(),
                BinaryKind::Div => a.map(|x| b.known().and_then(|y| x.checked_div(y))),
                _ => Dim::Unknown,
            }
        };
        let arithmetic = matches!(
            kind,
            BinaryKind::Add | BinaryKind::Sub | BinaryKind::Mul | BinaryKind::Div
        );
        let integer = graph.fact(node.outputs[0]).dtype?.is_integer();
        (arithmetic && integer && len > 0).then(|| (0..len).map(element).collect())
    }
}

fn is_identity(node: &Node) -> bool {
    node.op.downcast_ref::<Unary>() == Some(&Unary(UnaryKind::Identity))
}

/// `start..end` of a vector as ONNX counts it.
fn range(len: usize, start: i64, end: i64) -> (usize, usize) {
    let n = len as i64;
    let clamp = |i: i64| if i < 0 { i.saturating_add(n) } else { i }.clamp(0, n) as usize;
    let (start, end) = (clamp(start), clamp(end));
    (start, end.max(start))
}

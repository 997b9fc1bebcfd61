//! Shape arithmetic on dimensions when only some are known: `Shape → Gather → Concat → Reshape` with a batch
//! that is not known yet still tells all the others.

use crate::dim::Dim;
use crate::graph::{Axes, Graph, InferContext, Node, ValueId};
use crate::ids::IdMap;

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

    fn compute(&self, graph: &Graph, node: &Node) -> Option<Vec<Dim>> {
        let out = graph.fact(node.outputs[0]);
        // A vector of several elements may become a matrix; a list cannot say so.
        if !out.dtype?.is_integer() || out.rank()? > 1 {
            return None;
        }
        let known = |v: &Option<ValueId>| v.and_then(|v| self.get(graph, v));
        let elements: Vec<_> = node.inputs.iter().map(known).collect();
        if node.op.flow().axes == Axes::Regrouped {
            return elements.into_iter().next()?;
        }
        let inputs = graph.input_facts(&node.inputs);
        node.op.elements(&InferContext::new(&inputs, 1), &elements)
    }
}

#[cfg(test)]
mod tests {
    use crate::dim::{Dim, Shape};
    use crate::dtype::DType;
    use crate::fact::Fact;
    use crate::graph::{Graph, ValueId};
    use crate::interrupt::Interrupt;
    use crate::ops::{
        Binary, BinaryKind, Concat, Expand, Gather, MatMul, Range, Reshape, ShapeOf, Unsqueeze,
    };
    use crate::passes::infer_graph;
    use crate::tensor::Tensor;

    fn shape(g: &Graph, v: ValueId) -> String {
        g.fact(v).shape.as_ref().unwrap().to_string()
    }

    /// A decoder whose cache grows: keys behind the cache, repeated for the heads of the query, and a mask of positions.
    #[test]
    fn the_length_of_a_cache_that_grows_is_a_sum() {
        let mut g = Graph::new("decoder");
        let symbol = |name: &str| Dim::Symbol(name.into());
        let open = |dims: Vec<Dim>| Fact::new(DType::F32, Shape(dims));
        let heads =
            |n: usize, length: &str| vec![symbol("batch"), n.into(), symbol(length), 8.into()];
        let query = g.add_input("query", open(heads(8, "seq")));
        let new = g.add_input("new", open(heads(4, "seq")));
        let past = g.add_input("past", open(heads(4, "past")));
        let mut number = |n: i64| {
            let tensor = Tensor::scalar(n).unwrap();
            g.add_constant(format!("{n}"), tensor)
        };
        let (zero, one, two) = (number(0), number(1), number(2));
        let mut ints = |ints: &[i64]| g.add_ints("ints".into(), ints).unwrap();
        let (axis, first, groups) = (ints(&[2]), ints(&[0]), ints(&[2]));
        let (merged, last) = (ints(&[0, 8, -1, 8]), ints(&[1]));

        let keys = g.apply("keys", Concat { axis: 2 }, &[past, new]);
        let part = |start, end| ShapeOf {
            start,
            end: Some(end),
        };
        let before = g.apply("before", part(0, 2), &[keys]);
        let behind = g.apply("behind", part(2, 4), &[keys]);
        let wide = g.apply("wide", Concat { axis: 0 }, &[before, groups, behind]);
        let apart = g.apply("apart", Unsqueeze, &[keys, axis]);
        let repeated = g.apply("repeated", Expand, &[apart, wide]);
        let all = g.apply("all", Reshape { allow_zero: false }, &[repeated, merged]);
        let product = MatMul {
            transpose_b: true,
            ..MatMul::default()
        };
        let scores = g.apply("scores", product, &[query, all]);

        let length = |g: &mut Graph, of| {
            let shape = g.apply(
                "shape",
                ShapeOf {
                    start: 0,
                    end: None,
                },
                &[of],
            );
            g.apply("length", Gather { axis: 0 }, &[shape, two])
        };
        let (there, come) = (length(&mut g, past), length(&mut g, new));
        let end = g.apply("end", Binary::new(BinaryKind::Add), &[there, come]);
        let rows = g.apply("rows", Range, &[there, end, one]);
        let columns = g.apply("columns", Range, &[zero, end, one]);
        let again = g.apply("again", Binary::new(BinaryKind::Sub), &[end, there]);
        let as_many = g.apply("as many", Range, &[zero, again, one]);
        let rows = g.apply("of rows", Unsqueeze, &[rows, last]);
        let columns = g.apply("of columns", Unsqueeze, &[columns, first]);
        let mask = Binary::new(BinaryKind::LessOrEqual);
        let mask = g.apply("mask", mask, &[columns, rows]);
        g.outputs = vec![scores, mask, as_many];
        infer_graph(&mut g, &Interrupt::NEVER).unwrap();

        assert_eq!(shape(&g, keys), "[batch, 4, past + seq, 8]");
        assert_eq!(shape(&g, repeated), "[batch, 4, 2, past + seq, 8]");
        assert_eq!(shape(&g, all), "[batch, 8, past + seq, 8]");
        assert_eq!(shape(&g, scores), "[batch, 8, seq, past + seq]");
        assert_eq!(shape(&g, mask), "[seq, past + seq]");
        assert_eq!(shape(&g, as_many), "[seq]");
        let sum = symbol("past").plus(&symbol("seq"));
        assert_eq!(g.fact(mask).shape.as_ref().unwrap().0[1], sum);
    }
}

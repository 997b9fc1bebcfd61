//! Attention whose keys and values are repeated for the heads of the query, as exporters write it for models that share them.

use super::*;
use kilim::core::Node;
use kilim::core::ops::{Attention, Range};
use kilim::{Dim, Shape};

/// Key heads, how often each is repeated, and elements of a key.
const HEADS: usize = 2;
const TIMES: usize = 3;
const SIZE: usize = 4;

/// How a file repeats heads.
#[derive(Clone, Copy, Debug)]
enum Form {
    Expand,
    Tile,
    Gather,
}

/// The dimensions `range` of `x`.
fn part(b: &mut Builder, x: V, range: std::ops::Range<i64>) -> V {
    let (start, end) = (range.start, Some(range.end));
    b.op(ShapeOf { start, end }, &[x])
}

/// `x` `[batch, 2, keys, 4]` with each head three times.
fn repeated(b: &mut Builder, x: V, form: Form) -> V {
    if let Form::Gather = form {
        let heads = b.ints(&[0, 0, 0, 1, 1, 1]);
        return b.op(Gather { axis: 1 }, &[x, heads]);
    }
    let axis = b.ints(&[2]);
    let apart = b.op(Unsqueeze, &[x, axis]);
    let wide = match form {
        Form::Tile => {
            let times = b.ints(&[1, 1, TIMES as i64, 1, 1]);
            b.op(Tile, &[apart, times])
        }
        _ => {
            let (before, behind) = (part(b, x, 0..2), part(b, x, 2..4));
            let times = b.ints(&[TIMES as i64]);
            let shape = b.op(Concat { axis: 0 }, &[before, times, behind]);
            b.op(Expand, &[apart, shape])
        }
    };
    let merged = b.ints(&[0, (HEADS * TIMES) as i64, -1, SIZE as i64]);
    b.op(Reshape { allow_zero: false }, &[wide, merged])
}

/// What a softmax makes of the products of `query` and `key`, and of a mask that is added, times `value`.
fn spelled(b: &mut Builder, query: V, key: V, value: V, mask: Option<V>) -> V {
    let turned = b.transpose(key, &[0, 1, 3, 2]);
    let mut scores = b.op(MatMul::default(), &[query, turned]);
    let scale = b.scalar(0.5);
    scores = b.binary(BinaryKind::Mul, scores, scale);
    if let Some(mask) = mask {
        scores = b.binary(BinaryKind::Add, scores, mask);
    }
    let weights = b.op(softmax(), &[scores]);
    b.op(MatMul::default(), &[weights, value])
}

/// Zero where a key stands at a query or before it, a large negative number behind: `[seq, past + seq]`.
fn mask(b: &mut Builder, past: V, new: V) -> V {
    let two = b.constant(Tensor::scalar(2i64).unwrap());
    let mut length = |x| {
        let (start, end) = (0, None);
        let shape = b.op(ShapeOf { start, end }, &[x]);
        b.op(Gather { axis: 0 }, &[shape, two])
    };
    let (past, new) = (length(past), length(new));
    let [zero, one] = [0i64, 1].map(|n| b.constant(Tensor::scalar(n).unwrap()));
    let [first, last] = [0, 1].map(|axis| b.ints(&[axis]));
    let end = b.binary(BinaryKind::Add, past, new);
    let queries = b.op(Range, &[past, end, one]);
    let keys = b.op(Range, &[zero, end, one]);
    let queries = b.op(Unsqueeze, &[queries, last]);
    let keys = b.op(Unsqueeze, &[keys, first]);
    let seen = b.binary(BinaryKind::LessOrEqual, keys, queries);
    let (none, far) = (b.scalar(0.0), b.scalar(-1e9));
    b.op(Where, &[seen, none, far])
}

/// Attention of six heads to two that grow behind a cache; gives the caches, too.
fn decoder(form: Form) -> Graph {
    let mut b = Builder::new(71);
    let mut input = |name: &str, heads: usize, length: &str| {
        let [batch, length] = ["batch", length].map(|name| Dim::Symbol(name.into()));
        let shape = Shape(vec![batch, heads.into(), length, SIZE.into()]);
        b.g.add_input(name, Fact::new(DType::F32, shape))
    };
    let query = input("query", HEADS * TIMES, "seq");
    let [key, value] = ["key", "value"].map(|name| input(name, HEADS, "seq"));
    let [past_key, past_value] = ["past.key", "past.value"].map(|name| input(name, HEADS, "past"));
    let keys = b.op(Concat { axis: 2 }, &[past_key, key]);
    let values = b.op(Concat { axis: 2 }, &[past_value, value]);
    let mask = mask(&mut b, past_key, key);
    let [all_keys, all_values] = [keys, values].map(|x| repeated(&mut b, x, form));
    let y = spelled(&mut b, query, all_keys, all_values, Some(mask));
    let y = b.transpose(y, &[0, 2, 1, 3]);
    b.g.outputs = vec![y, keys, values];
    b.g
}

/// The only Attention of a graph.
fn attention(g: &Graph) -> &Node {
    let mut found = g.nodes.iter().filter(|node| node.op.is::<Attention>());
    let one = found.next().unwrap_or_else(|| panic!("{:?}", names(g)));
    assert!(found.next().is_none(), "{:?}", names(g));
    one
}

#[test]
fn a_growing_cache_is_read_where_it_is() {
    for form in [Form::Expand, Form::Tile, Form::Gather] {
        let graph = decoder(form);
        let g = optimised(&graph);
        let read = &attention(&g).inputs[1..3];
        assert_eq!(read, [Some(g.outputs[1]), Some(g.outputs[2])], "{form:?}");
        for gone in ["Expand", "Tile", "Softmax"] {
            assert!(!names(&g).contains(&gone), "{form:?}: {:?}", names(&g));
        }
        for (batch, past, seq) in [
            (1, 0, 1),
            (1, 0, 5),
            (2, 0, 3),
            (2, 3, 1),
            (2, 5, 4),
            (1, 1, 1),
        ] {
            let mut random = Random(83);
            let mut tensor = |heads, length| random.floats(&[batch, heads, length, SIZE]);
            let inputs = [
                ("query", tensor(HEADS * TIMES, seq)),
                ("key", tensor(HEADS, seq)),
                ("value", tensor(HEADS, seq)),
                ("past.key", tensor(HEADS, past)),
                ("past.value", tensor(HEADS, past)),
            ];
            let plain = run(&graph, false, &inputs);
            let case = format!("{form:?}, batch {batch}, {seq} behind {past}");
            for without in [None, Some(Rule::FuseAttention)] {
                let fast = run_with(&graph, &inputs, |options| options.without.extend(without));
                assert_alike(&plain, &fast, &format!("{case}, without {without:?}"));
            }
        }
    }
}

/// What is repeated for the six heads `[2, 6, 5, 4]` of a query.
#[derive(Clone, Copy, Debug)]
enum Difference {
    /// One key, five times.
    Keys,
    /// One batch, twice.
    Batch,
    /// All heads behind each other, three times.
    Order,
    /// Keys, each three times in its place.
    Places,
    /// Two key heads three times, three heads of values twice.
    Times,
    /// Heads of keys, not of values.
    ValuesAreWhole,
    /// Heads, by indices in another order.
    Indices,
}

/// Reshapes `x` to `narrow`, repeats it to `wide` and reshapes that to `[2, 6, 5, 4]`.
fn widened(b: &mut Builder, x: V, narrow: &[i64], wide: &[i64]) -> V {
    let [narrow, wide, merged] = [narrow, wide, &[2, 6, 5, 4]].map(|shape| b.ints(shape));
    let reshape = || Reshape { allow_zero: false };
    let apart = b.op(reshape(), &[x, narrow]);
    let wide = b.op(Expand, &[apart, wide]);
    b.op(reshape(), &[wide, merged])
}

/// Keys or values that are repeated, and what they repeat.
fn other(b: &mut Builder, difference: Difference, name: &str) -> (V, V) {
    let values = name == "value";
    let shape = match difference {
        Difference::Keys => [2, 2, 1, 4],
        Difference::Batch => [1, 2, 5, 4],
        Difference::Times if values => [2, 3, 5, 4],
        Difference::ValuesAreWhole if values => [2, 6, 5, 4],
        _ => [2, 2, 5, 4],
    };
    let x = b.input(name, &shape);
    let all = match difference {
        Difference::Keys => widened(b, x, &[2, 2, 1, 1, 4], &[2, 2, 3, 5, 4]),
        Difference::Batch => widened(b, x, &[1, 2, 1, 5, 4], &[2, 2, 3, 5, 4]),
        Difference::Order => widened(b, x, &[2, 1, 2, 5, 4], &[2, 3, 2, 5, 4]),
        Difference::Places => widened(b, x, &[2, 2, 5, 1, 4], &[2, 2, 5, 3, 4]),
        Difference::Times if values => widened(b, x, &[2, 3, 1, 5, 4], &[2, 3, 2, 5, 4]),
        Difference::ValuesAreWhole if values => x,
        Difference::Times | Difference::ValuesAreWhole => {
            widened(b, x, &[2, 2, 1, 5, 4], &[2, 2, 3, 5, 4])
        }
        Difference::Indices => {
            let heads = b.ints(&[0, 1, 0, 1, 0, 1]);
            b.op(Gather { axis: 1 }, &[x, heads])
        }
    };
    (all, x)
}

#[test]
fn what_repeats_something_else_is_read_as_it_is() {
    use Difference::*;
    for difference in [Keys, Batch, Order, Places, Times, ValuesAreWhole, Indices] {
        let mut b = Builder::new(72);
        let query = b.input("query", &[2, 6, 3, 4]);
        let (keys, key) = other(&mut b, difference, "key");
        let (values, value) = other(&mut b, difference, "value");
        let y = spelled(&mut b, query, keys, values, None);
        let g = b.check(&[y], 72);
        let read = attention(&g).inputs[1..3].to_vec();
        assert!(
            !read.contains(&Some(key)),
            "{difference:?}: {:?}",
            names(&g)
        );
        let whole = matches!(difference, ValuesAreWhole);
        assert_eq!(read.contains(&Some(value)), whole, "{difference:?}");
    }
}

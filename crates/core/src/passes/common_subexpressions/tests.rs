mod fitting;
mod pairs;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::optimise;
use super::run;
use crate::backend::DataLayout;
use crate::datum::Form;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::interrupt::Interrupt;
use crate::ops::{
    Binary, BinaryKind, ConstantOfShape, DictVectorizer, Fact, Operator, ShapeOf, Split, Unary,
    UnaryKind,
};
use crate::passes::{ChangeLog, Evaluator, Layout, Passes, Rule, infer_graph};
use crate::tensor::Tensor;

/// Applies all rules; gives those that changed something.
fn apply_all(graph: &mut Graph) -> BTreeSet<Rule> {
    let log = ChangeLog::default();
    let passes = Passes {
        evaluate: Evaluator {
            compute: &|_| None,
            interrupt: &Interrupt::NEVER,
        },
        narrow: &|_| false,
        layout: Layout::Every(DataLayout::ChannelsLast),
        without: &[],
        observer: Some(&log),
    };
    optimise(graph, &passes).unwrap();
    log.changes().iter().map(|change| change.rule).collect()
}

/// The number of nodes that all passes leave of two operators on one input, both outputs of the graph.
fn left_by_passes(input: Fact, operators: [Arc<dyn Operator>; 2]) -> usize {
    let mut graph = Graph::new("test");
    let x = graph.add_input("x", input);
    for (i, operator) in operators.into_iter().enumerate() {
        let y = graph.apply_shared(format!("n{i}"), operator, &[Some(x)]);
        graph.outputs.push(y);
    }
    apply_all(&mut graph);
    graph.nodes.len()
}

#[test]
fn lists_of_keys_that_differ_at_one_place_are_told_apart() {
    let vectorizer = |last: i64| {
        let keys: Vec<i64> = (0..8).chain([last]).collect();
        let keys = Tensor::from_slice(&[9], &keys).unwrap();
        Arc::new(DictVectorizer { keys }) as Arc<dyn Operator>
    };
    let input = || Fact {
        dtype: Some(DType::F32),
        shape: None,
        kind: Form::Map.into(),
    };
    assert_eq!(left_by_passes(input(), [vectorizer(8), vectorizer(9)]), 2);
    assert_eq!(left_by_passes(input(), [vectorizer(8), vectorizer(8)]), 1);
}

#[test]
fn integers_that_are_one_as_float64_are_told_apart() {
    let fill = |value: i64| {
        let value = Tensor::scalar(value).unwrap();
        Arc::new(ConstantOfShape { value }) as Arc<dyn Operator>
    };
    let input = || Fact::new(DType::I64, Shape::fixed(&[2]));
    let large = 1i64 << 53;
    assert_eq!(left_by_passes(input(), [fill(large), fill(large + 1)]), 2);
    assert_eq!(left_by_passes(input(), [fill(large), fill(large)]), 1);
}

/// The number of nodes that merging leaves of one operator on each of two constants.
fn left_on_constants(constants: [Tensor; 2]) -> usize {
    let mut graph = Graph::new("test");
    for constant in constants {
        let x = graph.add_constant("c", constant);
        graph.apply("n", Unary(UnaryKind::Identity), &[x]);
    }
    run(&mut graph).unwrap();
    graph.nodes.len()
}

#[test]
fn small_constants_stand_for_each_other_where_every_bit_is_equal() {
    let floats = |bits: u32| Tensor::from_slice(&[2], &[0.5, f32::from_bits(bits)]).unwrap();
    let nan = 0x7fc0_0001;
    assert_eq!(left_on_constants([floats(nan), floats(nan)]), 1);
    assert_eq!(left_on_constants([floats(nan), floats(nan + 1)]), 2);
    assert_eq!(left_on_constants([floats(0), floats(1 << 31)]), 2);
    let shaped = |shape: &[usize]| Tensor::zeros(DType::F32, shape).unwrap();
    assert_eq!(left_on_constants([shaped(&[2, 1]), shaped(&[1, 2])]), 2);
}

#[test]
fn constants_of_strings_are_compared_by_their_texts() {
    let texts = |texts: [&str; 2]| Tensor::from_texts(&[2], texts.map(Arc::from).to_vec()).unwrap();
    let two = [texts(["a", "b"]), texts(["a", "b"])];
    assert_eq!(left_on_constants(two), 1);
    let moved = [texts(["ab", "c"]), texts(["a", "bc"])];
    assert_eq!(left_on_constants(moved), 2);
}

#[test]
fn large_constants_are_not_read() {
    let zeros = |count: usize| Tensor::zeros(DType::U8, &[count]).unwrap();
    assert_eq!(left_on_constants([zeros(256), zeros(256)]), 1);
    assert_eq!(left_on_constants([zeros(257), zeros(257)]), 2);
    let long = |text: &str| Tensor::from_texts(&[1], vec![Arc::from(text)]).unwrap();
    let text = "a".repeat(257);
    assert_eq!(left_on_constants([long(&text), long(&text)]), 2);
    let many = |count: usize| Tensor::zeros(DType::String, &[count]).unwrap();
    assert_eq!(left_on_constants([many(257), many(257)]), 2);
}

#[test]
fn nodes_with_other_numbers_of_outputs_are_told_apart() {
    let mut graph = Graph::new("test");
    let x = graph.add_input("x", Fact::fixed(DType::F32, &[6]));
    for count in [2, 3, 3, 2] {
        let outputs: Vec<_> = (0..count)
            .map(|_| graph.add_value("y", Fact::default()))
            .collect();
        graph.push("n", Split { axis: 0 }, &[Some(x)], &outputs);
    }
    assert!(run(&mut graph).unwrap());
    let left: Vec<usize> = graph.nodes.iter().map(|n| n.outputs.len()).collect();
    assert_eq!(left, [2, 3]);
    assert!(!run(&mut graph).unwrap());
}

/// Vectorizers whose keys differ in the last one, far behind what a hash depends on.
fn vectorizers(last: impl Iterator<Item = i64>) -> Graph {
    let mut graph = Graph::new("test");
    let x = graph.add_input("x", Fact::default());
    for last in last {
        let keys: Vec<i64> = (0..1000).chain([last]).collect();
        let keys = Tensor::from_slice(&[1001], &keys).unwrap();
        graph.apply("n", DictVectorizer { keys }, &[x]);
    }
    graph
}

#[test]
fn operators_that_are_hashed_alike_are_told_apart() {
    let mut graph = vectorizers([1, 2, 1, 3, 2].into_iter());
    assert!(run(&mut graph).unwrap());
    assert_eq!(graph.nodes.len(), 3);
    let mut graph = vectorizers(0..40);
    assert!(!run(&mut graph).unwrap());
    assert_eq!(graph.nodes.len(), 40);
}

/// Sums of one input with two constants of this shape, which differ in one element at most: whether the passes leave both.
fn sums_stay_two(dtype: DType, count: usize, changed: Option<usize>) -> bool {
    let mut graph = Graph::new("test");
    let x = graph.add_input("x", Fact::fixed(dtype, &[count]));
    let bytes: Vec<u8> = (0..count * dtype.size())
        .map(|i| 1 + (i % 3) as u8)
        .collect();
    let mut tensor = Tensor::from_raw(dtype, &[count], &bytes).unwrap();
    for i in 0..2 {
        if let (1, Some(at)) = (i, changed) {
            let mut bytes = bytes.clone();
            bytes[at * dtype.size()] ^= 4;
            tensor = Tensor::from_raw(dtype, &[count], &bytes).unwrap();
        }
        let c = graph.add_constant(format!("c{i}"), tensor.clone());
        let y = graph.apply(format!("n{i}"), Binary::new(BinaryKind::Sub), &[x, c]);
        graph.outputs.push(y);
    }
    apply_all(&mut graph);
    graph.outputs[0] != graph.outputs[1] && graph.nodes.len() == 2
}

/// Through all rules, whichever element it is and whichever type.
#[test]
fn initialisers_that_differ_in_one_element_are_told_apart() {
    let types = [
        DType::U8,
        DType::I16,
        DType::F16,
        DType::F32,
        DType::I64,
        DType::F64,
    ];
    for dtype in types {
        for count in [1, 2, 7, 64, 100] {
            // The contents of longer constants are not compared.
            let compared = count * dtype.size() <= 256;
            let two = sums_stay_two(dtype, count, None);
            assert_eq!(two, !compared, "{dtype}[{count}]");
            for at in 0..count {
                let two = sums_stay_two(dtype, count, Some(at));
                assert!(two, "{dtype}[{count}] that differ at {at}");
            }
        }
    }
}

#[test]
fn the_same_dimensions_are_computed_once() {
    let named = |name: &str| Fact {
        dtype: Some(DType::F32),
        shape: Some(Shape(vec![Dim::Symbol(name.into()), Dim::Known(4)])),
        kind: Form::Tensor.into(),
    };
    let mut graph = Graph::new("test");
    let [x, z] = ["n", "m"].map(|name| graph.add_input(name, named(name)));
    let y = graph.apply("y", Unary(UnaryKind::Neg), &[x]);
    let whole = ShapeOf {
        start: 0,
        end: None,
    };
    let shapes = [x, y, z].map(|v| graph.apply(format!("shape {v:?}"), whole.clone(), &[v]));
    graph.outputs = shapes.to_vec();
    infer_graph(&mut graph, &Interrupt::NEVER).unwrap();
    let mut twice = graph.clone();
    assert!(run(&mut graph).unwrap());
    assert_eq!(graph.outputs, [shapes[0], shapes[0], shapes[2]]);
    assert_eq!(graph.nodes.len(), 3);
    // What has the name, too, may have another length.
    twice.add_input("w", named("n"));
    assert!(!run(&mut twice).unwrap());
}

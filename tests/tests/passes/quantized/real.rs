//! Products of bytes that end in real numbers, as `quantize_dynamic` of onnxruntime writes them.

use kilim::core::ops::{
    Binary, BinaryKind, Cast, DynamicQuantizeLinear, MatMulInteger, MatMulIntegerToFloat,
};
use kilim::{DType, Fact, Graph, Tensor};

use super::super::{Builder, Random, V, names, optimised_without, run_with};

/// What a graph is made of, and how it differs from what the rule looks for.
#[derive(Clone, Debug)]
struct Product {
    rows: Vec<usize>,
    columns: usize,
    /// A scale for each column, and a zero point.
    each: bool,
    /// Whether the operands of the two products and of the sum are in the other order.
    swapped: [bool; 3],
    bias: Option<Vec<usize>>,
    cast: DType,
}

impl Product {
    fn new() -> Product {
        Product {
            rows: vec![2, 7],
            columns: 5,
            each: false,
            swapped: [false; 3],
            bias: Some(vec![5]),
            cast: DType::F32,
        }
    }

    /// The values of the product: sums, sums as real numbers, scaled, and with the bias.
    fn build(&self, b: &mut Builder, x: V) -> [V; 4] {
        let n = self.columns;
        let k = b.g.value(x).fact.concrete().unwrap().pop().unwrap();
        let name = format!("quantized{}", b.g.nodes.len());
        let parts = ["", "/scale", "/zero"]
            .map(|part| b.g.add_value(format!("{name}{part}"), Fact::default()));
        b.g.push(name, DynamicQuantizeLinear, &[Some(x)], &parts);
        let dims = if self.each { vec![n] } else { vec![] };
        let w = b.random.bytes(DType::I8, &[k, n]);
        let w_zero = b.random.bytes(DType::I8, &dims);
        let (w, w_zero) = (b.constant(w), b.constant(w_zero));
        let w_scale = b.floats(&dims);
        let sums = b.op(MatMulInteger::default(), &[parts[0], w, parts[2], w_zero]);
        let real = b.op(Cast::new(self.cast), &[sums]);
        let both = |i: usize, x, y| if self.swapped[i] { [y, x] } else { [x, y] };
        let multiply = Binary::new(BinaryKind::Mul);
        let mut scale = b.op(multiply.clone(), &both(0, parts[1], w_scale));
        if self.cast != DType::F32 {
            scale = b.op(Cast::new(self.cast), &[scale]);
        }
        let scaled = b.op(multiply, &both(1, real, scale));
        let Some(shape) = &self.bias else {
            return [sums, real, scaled, scaled];
        };
        let bias = b.random.floats(shape).in_precision(self.cast).unwrap();
        let bias = b.constant(bias);
        let y = b.op(Binary::new(BinaryKind::Add), &both(2, scaled, bias));
        [sums, real, scaled, y]
    }

    /// The product on its own; gives its values, too.
    fn graph(&self, seed: u64) -> (Graph, [V; 4]) {
        let mut b = Builder::new(seed);
        let x = b.input("x", &[&self.rows[..], &[9]].concat());
        let values = self.build(&mut b, x);
        b.g.outputs = vec![values[3]];
        (b.g, values)
    }
}

/// A product with a bias, of `columns` columns.
pub fn dynamic_product(b: &mut Builder, x: V, columns: usize) -> V {
    let product = Product {
        columns,
        bias: Some(vec![columns]),
        ..Product::new()
    };
    product.build(b, x)[3]
}

/// The operators that are left. The results are the same bytes as before.
fn left(graph: &Graph) -> Vec<String> {
    let x = graph.value(graph.inputs[0]);
    let data = Random(77).floats(&x.fact.concrete().unwrap());
    let inputs = [(&x.name[..], data)];
    let plain = run_with(graph, &inputs, |o| o.optimise = false);
    let fused = run_with(graph, &inputs, |_| {});
    let bytes = |all: &[(String, Tensor)]| -> Vec<Vec<u8>> {
        all.iter()
            .map(|(_, t)| t.read().unwrap().to_vec())
            .collect()
    };
    assert_eq!(bytes(&plain), bytes(&fused), "{graph:#?}");
    let (optimised, _) = optimised_without(graph, &[]);
    names(&optimised).into_iter().map(String::from).collect()
}

const FUSED: [&str; 2] = ["DynamicQuantizeLinear", "MatMulIntegerToFloat"];

#[test]
fn scales_and_biases_become_part_of_products() {
    for (seed, each) in [(1, false), (2, true)] {
        for bias in [None, Some(vec![5])] {
            for order in 0..8 {
                let product = Product {
                    each,
                    bias: bias.clone(),
                    swapped: [order & 1, order & 2, order & 4].map(|bit| bit > 0),
                    ..Product::new()
                };
                let (graph, _) = product.graph(seed);
                assert_eq!(left(&graph), FUSED, "{product:?}");
            }
        }
    }
    // A vector by a matrix, and one column.
    for (rows, columns) in [(vec![], 5), (vec![3], 1)] {
        let product = Product {
            rows,
            columns,
            each: true,
            bias: Some(vec![columns]),
            ..Product::new()
        };
        let (graph, _) = product.graph(3);
        assert_eq!(left(&graph), FUSED, "{product:?}");
    }
}

#[test]
fn a_bias_comes_last() {
    let product = Product {
        bias: Some(vec![7, 5]),
        ..Product::new()
    };
    let (graph, _) = product.graph(4);
    assert_eq!(left(&graph), [&FUSED[..], &["Add"]].concat());
    // What is added to itself is no bias.
    let mut b = Builder::new(5);
    let x = b.input("x", &[9]);
    let product = Product {
        bias: None,
        ..Product::new()
    };
    let y = product.build(&mut b, x)[3];
    let y = b.binary(BinaryKind::Add, y, y);
    b.g.outputs = vec![y];
    assert_eq!(left(&b.g), [&FUSED[..], &["Add"]].concat());
}

#[test]
fn what_others_read_stays() {
    let (graph, values) = Product::new().graph(6);
    // Sums, the same as real numbers, and what is scaled but has no bias.
    for (i, fused) in [(0, false), (1, false), (2, true)] {
        let mut shown = graph.clone();
        shown.outputs.push(values[i]);
        let kept = left(&shown);
        assert_eq!(
            kept.contains(&"MatMulIntegerToFloat".into()),
            fused,
            "{i}: {kept:?}"
        );
        assert!(kept.contains(&"Add".into()), "{i}: {kept:?}");

        let mut read = graph.clone();
        let other = read.apply("other", Cast::new(DType::F64), &[values[i]]);
        read.outputs.push(other);
        let kept = left(&read);
        assert_eq!(
            kept.contains(&"MatMulIntegerToFloat".into()),
            fused,
            "{i}: {kept:?}"
        );
        assert!(kept.contains(&"Add".into()), "{i}: {kept:?}");
    }
}

#[test]
fn other_types_stay() {
    let product = Product {
        cast: DType::F64,
        ..Product::new()
    };
    let kept = left(&product.graph(8).0);
    assert!(kept.contains(&"MatMulInteger".into()), "{kept:?}");
}

#[test]
fn the_rule_makes_what_the_operator_means() {
    let (graph, _) = Product::new().graph(9);
    let (fused, _) = optimised_without(&graph, &[]);
    let node = fused.nodes.last().unwrap();
    assert!(node.op.is::<MatMulIntegerToFloat>());
    assert_eq!(node.inputs.len(), 7);
}

/// A session packs a constant once for all products that want it alike.
#[test]
fn products_of_one_constant_have_zero_points_of_their_own() {
    let graph = |shared: bool| {
        let mut b = Builder::new(5);
        let x = b.input("x", &[3, 9]);
        let weights = b.random.bytes(DType::I8, &[9, 5]);
        let w = [0, 1].map(|_| b.constant(weights.clone()));
        let w = if shared { [w[0]; 2] } else { w };
        let parts =
            ["", "/scale", "/zero"].map(|part| b.g.add_value(format!("x{part}"), Fact::default()));
        b.g.push("bytes", DynamicQuantizeLinear, &[Some(x)], &parts);
        b.g.outputs = w
            .map(|w| {
                let w_zero = b.random.bytes(DType::I8, &[]);
                let w_zero = b.constant(w_zero);
                b.op(MatMulInteger::default(), &[parts[0], w, parts[2], w_zero])
            })
            .to_vec();
        (b.g, x)
    };
    let result = |shared: bool| {
        let (graph, x) = graph(shared);
        let value = graph.value(x);
        let data = Random(7).floats(&value.fact.concrete().unwrap());
        let name = value.name.clone();
        let outputs = run_with(&graph, &[(&name, data)], |o| o.optimise = false);
        let outputs: [_; 2] = outputs.try_into().unwrap();
        outputs.map(|(_, output)| output.read().unwrap().to_vec())
    };
    let [first, second] = result(true);
    assert_ne!(first, second);
    assert_eq!([first, second], result(false));
}

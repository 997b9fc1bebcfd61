//! Strings and types of less than a byte in whole sessions, with backends that refuse them around.

#![cfg(not(target_arch = "wasm32"))]

use std::sync::Arc;

use kilim::core::ops::{
    Binary, BinaryKind, Cast, Concat, ConstantOfShape, DequantizeLinear, Gather, NonZero, OneHot,
    Scan, Squeeze, StringConcat, StringSplit, Tile, Transpose, Unsqueeze, Where,
};
use kilim::{
    BackendId, DType, Dim, ErrorCode, Fact, Graph, LoadOptions, RunOptions, Runtime, Session,
    Shape, Tensor,
};

/// A session on the CPU, and one where the GPU is asked first if there is one.
fn sessions(graph: impl Fn() -> Graph) -> Vec<Session> {
    let lists: [&[&str]; 2] = [&["cpu"], &["wgpu", "cpu"]];
    let present = |id: &&str| pollster::block_on(Runtime::shared().backend(&(*id).into())).is_ok();
    let lists = lists.into_iter().filter(|list| list.iter().all(present));
    let make = |list: &[&str]| {
        let options = LoadOptions {
            backends: list.iter().map(|&id| BackendId::from(id)).collect(),
            ..LoadOptions::default()
        };
        pollster::block_on(Runtime::shared().session(graph(), options)).unwrap()
    };
    lists.map(make).collect()
}

fn run(session: &mut Session, inputs: &[(&str, Tensor)]) -> kilim::Result<Vec<(String, Tensor)>> {
    pollster::block_on(session.run(inputs, &RunOptions::default()))
}

fn texts(shape: &[usize], all: &[&str]) -> Tensor {
    let all: Vec<Arc<str>> = all.iter().map(|&t| t.into()).collect();
    Tensor::from_texts(shape, all).unwrap()
}

fn strings_of(n: &str) -> Fact {
    Fact::new(DType::String, Shape(vec![Dim::Symbol(n.into())]))
}

/// `(x ++ [last])` in the order of `order`, each with a `!`; which of them are `a!`; and their words.
fn sentences() -> Graph {
    let mut g = Graph::new("strings");
    let x = g.add_input("x", strings_of("n"));
    let order = Fact::new(DType::I64, Shape(vec![Dim::Symbol("m".into())]));
    let order = g.add_input("order", order);
    let last = g.add_constant("last", texts(&[1], &["the last"]));
    let all = g.apply("concat", Concat { axis: 0 }, &[x, last]);
    let picked = g.apply("gather", Gather { axis: 0 }, &[all, order]);
    let mark = g.add_constant("mark", texts(&[], &["!"]));
    let loud = g.apply("join", StringConcat, &[picked, mark]);
    let a = g.add_constant("a", texts(&[], &["a!"]));
    let equal = g.apply("equal", Binary::new(BinaryKind::Equal), &[loud, a]);
    let chosen = g.apply("where", Where, &[equal, mark, loud]);
    let words = StringSplit {
        delimiter: String::new(),
        most: None,
    };
    let words = g.apply("split", words, &[chosen]);
    g.outputs.extend([loud, equal, words]);
    g
}

#[test]
fn strings_move_join_and_compare() {
    for mut s in sessions(sentences) {
        let mut held = Vec::new();
        for (x, order) in [
            (&["a", "b c", "a"][..], &[3i64, 1, 0, 0][..]),
            (&["zwölf"], &[0, 1]),
            (&["a", "b c", "a"], &[3, 1, 0, 0]),
        ] {
            let order = Tensor::from_slice(&[order.len()], order).unwrap();
            let inputs = [("x", texts(&[x.len()], x)), ("order", order)];
            held.push(run(&mut s, &inputs).unwrap());
        }
        let first = [
            texts(&[4], &["the last!", "b c!", "a!", "a!"]),
            Tensor::from_bools(&[4], &[false, false, true, true]).unwrap(),
            texts(&[4, 2], &["the", "last!", "b", "c!", "!", "", "!", ""]),
        ];
        for run in [0, 2] {
            assert!(held[run].iter().map(|(_, t)| t).eq(&first));
        }
        assert_eq!(held[1][0].1, texts(&[2], &["zwölf!", "the last!"]));
        assert_eq!(
            held[1][2].1,
            texts(&[2, 2], &["zwölf!", "", "the", "last!"])
        );
    }
}

/// Strings are carried through the turns of a Scan and stacked.
fn chain() -> Graph {
    let mut body = Graph::new("body");
    let state = body.add_input("state", Fact::fixed(DType::String, &[]));
    let item = body.add_input("item", Fact::fixed(DType::String, &[]));
    let joined = body.apply("join", StringConcat, &[state, item]);
    body.outputs.extend([joined, joined]);
    let mut g = Graph::new("scan");
    let start = g.add_constant("start", texts(&[], &["-"]));
    let x = g.add_input("x", strings_of("n"));
    let op = Scan {
        body: Arc::new(body),
        states: 1,
        scan_inputs: 1,
        input_axes: vec![0],
        input_reverse: vec![false],
        output_axes: vec![0],
        output_reverse: vec![false],
    };
    let outputs: Vec<_> = ["end", "all"]
        .map(|n| g.add_value(n, Fact::default()))
        .to_vec();
    g.push("scan", op, &[Some(start), Some(x)], &outputs);
    g.outputs = outputs;
    g
}

#[test]
fn strings_pass_through_control_flow() {
    for mut s in sessions(chain) {
        let out = run(&mut s, &[("x", texts(&[3], &["a", "b", "c"]))]).unwrap();
        assert_eq!(out[0].1, texts(&[], &["-abc"]));
        assert_eq!(out[1].1, texts(&[3], &["-a", "-ab", "-abc"]));
    }
}

#[test]
fn text_that_is_no_number_is_an_error() {
    let graph = || {
        let mut g = Graph::new("parse");
        let x = g.add_input("x", strings_of("n"));
        let numbers = g.apply("numbers", Cast::new(DType::F32), &[x]);
        let back = g.apply("back", Cast::new(DType::String), &[numbers]);
        g.outputs.extend([numbers, back]);
        g
    };
    for mut s in sessions(graph) {
        let given = ["1.5", " -2e3", "+inf", "NaN", "0.1"];
        let out = run(&mut s, &[("x", texts(&[5], &given))]).unwrap();
        let numbers = out[0].1.as_slice::<f32>().unwrap();
        assert_eq!(numbers[..3], [1.5, -2000.0, f32::INFINITY]);
        assert!(numbers[3].is_nan());
        assert_eq!(
            out[1].1,
            texts(&[5], &["1.5", "-2000", "INF", "NaN", "0.1"])
        );
        let e = run(&mut s, &[("x", texts(&[2], &["1", "one"]))]).unwrap_err();
        assert_eq!(
            (e.code(), e.node()),
            (ErrorCode::InvalidValue, Some("numbers"))
        );
        let e = run(&mut s, &[("x", Tensor::zeros(DType::U32, &[2]).unwrap())]).unwrap_err();
        assert_eq!(e.code(), ErrorCode::DType);
    }
}

/// An odd number of 4-bit weights, moved about and dequantised by row; and the moved ones themselves.
fn weights() -> Graph {
    let mut g = Graph::new("int4");
    let x = g.add_input("x", Fact::fixed(DType::I4, &[3, 3]));
    let turned = g.apply("transpose", Transpose { perm: vec![1, 0] }, &[x]);
    let more = Tensor::from_packed(DType::I4, &[1, 3], &[0x21, 0x0f]).unwrap();
    let more = g.add_constant("more", more);
    let all = g.apply("concat", Concat { axis: 0 }, &[turned, more]);
    let scale = Tensor::from_slice(&[4], &[1.0f32, 10.0, 100.0, 0.5]).unwrap();
    let scale = g.add_constant("scale", scale);
    let op = DequantizeLinear { axis: 0, block: 0 };
    let numbers = g.apply("numbers", op, &[all, scale]);
    let doubled = g.apply("double", Binary::new(BinaryKind::Add), &[numbers, numbers]);
    let narrow = Cast::new(DType::F8E5M2);
    let narrow = g.apply("narrow", narrow, &[doubled]);
    g.outputs.extend([all, doubled, narrow]);
    g
}

#[test]
fn less_than_a_byte_an_element() {
    let x = Tensor::from_packed(DType::I4, &[3, 3], &[0x10, 0x32, 0x74, 0x8f, 0x06]).unwrap();
    assert_eq!(x.to_i64s().unwrap(), [0, 1, 2, 3, 4, 7, -1, -8, 6]);
    for mut s in sessions(weights) {
        let out = run(&mut s, &[("x", x.clone())]).unwrap();
        let whole = [0, 3, -1, 1, 4, -8, 2, 7, 6, 1, 2, -1];
        assert_eq!(out[0].1.to_i64s().unwrap(), whole);
        assert_eq!(out[0].1.dtype(), DType::I4);
        let scales = [1.0, 10.0, 100.0, 0.5];
        let doubled: Vec<f64> = (0..12)
            .map(|i| 2.0 * whole[i] as f64 * scales[i / 3])
            .collect();
        assert_eq!(out[1].1.to_f64s().unwrap(), doubled);
        // Three significant bits.
        let narrow = [
            0., 6., -2., 20., 80., -160., 384., 1280., 1280., 1., 2., -1.,
        ];
        assert_eq!(out[2].1.to_f64s().unwrap(), narrow);
    }
}

/// Complex numbers go through what only moves elements, and are refused where numbers count.
#[test]
fn complex_numbers_are_moved() {
    for (dtype, size) in [(DType::C64, 8), (DType::C128, 16)] {
        let z = |parts: &[f64]| {
            let bytes: Vec<u8> = match size {
                8 => parts
                    .iter()
                    .flat_map(|&v| (v as f32).to_le_bytes())
                    .collect(),
                _ => parts.iter().flat_map(|v| v.to_le_bytes()).collect(),
            };
            Tensor::from_raw(dtype, &[parts.len() / 2], &bytes).unwrap()
        };
        let graph = || {
            let mut g = Graph::new("complex");
            let x = g.add_input("x", Fact::new(dtype, Shape(vec![Dim::Symbol("n".into())])));
            let more = g.add_constant("more", z(&[7.0, -7.0]));
            let all = g.apply("concat", Concat { axis: 0 }, &[x, more]);
            let hit = g.apply("hit", NonZero, &[all]);
            let first = g.add_constant("first", Tensor::from_slice(&[1], &[0i64]).unwrap());
            let hit = g.apply("squeeze", Squeeze, &[hit, first]);
            let found = g.apply("gather", Gather { axis: 0 }, &[all, hit]);
            let two = g.add_constant("two", Tensor::from_slice(&[2], &[1i64, 2]).unwrap());
            let twice = g.apply("expand", Unsqueeze, &[found, first]);
            let twice = g.apply("tile", Tile, &[twice, two]);
            let turned = g.apply("turn", Transpose { perm: vec![1, 0] }, &[twice]);
            let choice = Tensor::from_bools(&[1], &[false]).unwrap();
            let choice = g.add_constant("choice", choice);
            let chosen = g.apply("where", Where, &[choice, turned, turned]);
            g.outputs.push(chosen);
            g
        };
        for mut s in sessions(graph) {
            let x = z(&[1.0, 2.0, 0.0, -0.0, 0.0, 3.0]);
            let got = run(&mut s, &[("x", x)]).unwrap();
            let want = [[1.0, 2.0], [0.0, 3.0], [7.0, -7.0]];
            let want: Vec<f64> = want.iter().chain(&want).flatten().copied().collect();
            assert_eq!(got[0].1.to_f64s().unwrap(), want, "{dtype}");
            assert_eq!(got[0].1.shape(), [6, 1]);
        }
        let mut g = Graph::new("sum");
        let x = g.add_input("x", Fact::fixed(dtype, &[2]));
        let cast = g.apply("cast", Cast::new(DType::F32), &[x]);
        g.outputs.push(cast);
        let runtime = Runtime::shared();
        let session = runtime.session(g, LoadOptions::default());
        let error = pollster::block_on(session).err().unwrap();
        assert_eq!(
            (error.code(), error.node()),
            (ErrorCode::DType, Some("cast"))
        );
    }
}

#[test]
fn one_hot_and_fill_take_any_type() {
    let graph = || {
        let mut g = Graph::new("fill");
        let at = g.add_input(
            "at",
            Fact::new(DType::I64, Shape(vec![Dim::Symbol("n".into())])),
        );
        let depth = g.add_constant("depth", Tensor::scalar(3i64).unwrap());
        let values = g.add_constant("values", texts(&[2], &["no", "yes"]));
        let hot = g.apply("hot", OneHot { axis: -1 }, &[at, depth, values]);
        let fill = ConstantOfShape {
            value: Tensor::from_raw(DType::I4, &[1], &[0xfd]).unwrap(),
        };
        let filled = g.apply("fill", fill, &[at]);
        g.outputs.extend([hot, filled]);
        g
    };
    for mut s in sessions(graph) {
        let at = Tensor::from_slice(&[2], &[1i64, 2]).unwrap();
        let got = run(&mut s, &[("at", at)]).unwrap();
        let want = ["no", "yes", "no", "no", "no", "yes"];
        assert_eq!(got[0].1, texts(&[2, 3], &want));
        assert_eq!(got[1].1.to_i64s().unwrap(), [-3, -3]);
        assert_eq!(
            (got[1].1.dtype(), got[1].1.shape()),
            (DType::I4, &[1, 2][..])
        );
    }
}

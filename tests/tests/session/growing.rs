//! Inputs that grow from run to run: the plan is changed and not made anew, and results are those of a session
//! that has seen nothing else.

use kilim_tests::machine::gpu_beside_others;

use crate::*;

pub(super) const WIDTH: usize = 8;

/// One head that attends to a cache `[keys, 8]` and what is new, `[rows, 8]`, which it puts behind the cache. A
/// bias of the scores comes from the length alone.
pub(super) fn decoder() -> Graph {
    let mut g = Graph::new("decoder");
    let cache = Fact::new(
        DType::F32,
        Shape(vec![Dim::Symbol("past".into()), Dim::Known(WIDTH)]),
    );
    let rows = Fact::new(
        DType::F32,
        Shape(vec![Dim::Symbol("rows".into()), Dim::Known(WIDTH)]),
    );
    let x = g.add_input("x", rows);
    let past = g.add_input("past", cache);
    let weights: Vec<f32> = (0..WIDTH * WIDTH)
        .map(|i| ((i * 37) % 19) as f32 / 19.0 - 0.5)
        .collect();
    let weights = g.add_constant("weights", f32s(&[WIDTH, WIDTH], &weights));
    let product = |transpose_b| MatMul {
        transpose_b,
        ..MatMul::default()
    };
    let query = g.apply("query", product(false), &[x, weights]);
    let keys = g.apply("keys", Concat { axis: 0 }, &[past, x]);
    let scores = g.apply("scores", product(true), &[query, keys]);
    let whole = ShapeOf {
        start: 0,
        end: Some(1),
    };
    let length = g.apply("length", whole, &[keys]);
    let step = g.add_constant("step", f32s(&[1], &[0.25]));
    let bias = g.apply("bias", Expand, &[step, length]);
    let biased = g.apply("biased", add(), &[scores, bias]);
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    let shares = g.apply("shares", softmax, &[biased]);
    let y = g.apply("y", product(false), &[shares, keys]);
    g.outputs.extend([y, keys]);
    g
}

pub(super) fn row(seed: usize, rows: usize) -> Tensor {
    let values: Vec<f32> = (0..rows * WIDTH)
        .map(|i| ((seed * 31 + i * 7) % 23) as f32 / 23.0 - 0.4)
        .collect();
    f32s(&[rows, WIDTH], &values)
}

/// A step of a conversation; gives the output and the longer cache.
fn step(session: &mut Session, x: Tensor, past: &Tensor) -> (Tensor, Tensor) {
    let out = run(session, &[("x", x), ("past", past.clone())]).unwrap();
    let [(_, y), (_, keys)] = <[_; 2]>::try_from(out).unwrap();
    (y, keys)
}

/// The backends of a session, for each kind of backend that changes its plans.
#[track_caller]
fn everywhere() -> Vec<&'static [&'static str]> {
    let gpu = gpu_beside_others().map(|_| &["wgpu", "cpu"][..]);
    [Some(&["cpu"][..]), gpu].into_iter().flatten().collect()
}

fn session_on(backends: &[&str], graph: Graph) -> Session {
    let options = LoadOptions {
        backends: backends.iter().map(|&b| BackendId::from(b)).collect(),
        ..LoadOptions::default()
    };
    pollster::block_on(Runtime::shared().session(graph, options)).unwrap()
}

#[test]
fn a_cache_grows_without_another_plan() {
    for backends in everywhere() {
        grows(backends);
    }
}

fn grows(backends: &[&str]) {
    let session = |graph| session_on(backends, graph);
    let mut s = session(decoder());
    let talk = |s: &mut Session| {
        let (_, mut past) = step(s, row(0, 5), &f32s(&[0, WIDTH], &[]));
        for i in 1..300 {
            let (y, keys) = step(s, row(i, 1), &past);
            if i % 50 == 1 {
                let fresh = step(&mut session(decoder()), row(i, 1), &past);
                assert_eq!((&y, &keys), (&fresh.0, &fresh.1), "step {i}");
            }
            past = keys;
        }
        past
    };
    let past = talk(&mut s);
    let report = s.report();
    // The prompt, the first step, and where the work has doubled.
    assert!(report.plans.made <= 10, "{:?}", report.plans);
    assert_eq!(report.plans.made + report.plans.adapted, 300);
    let scores = report.nodes.iter().find(|n| n.name == "scores").unwrap();
    assert_eq!(
        scores.outputs[0].shape,
        [1, 304],
        "the report is of the latest run"
    );
    let mut fresh = session(decoder());
    step(&mut fresh, row(0, 1), &past);
    let arena = |s: &Session| s.report().backends[0].arena_bytes;
    assert!(
        arena(&s) <= 2 * arena(&fresh),
        "{} {}",
        arena(&s),
        arena(&fresh)
    );
    let held = |s: &Session| s.report().backends[0].planned_bytes;
    // Plans that the first talk left short have grown behind the second.
    talk(&mut s);
    let once = held(&s);
    for _ in 0..3 {
        talk(&mut s);
    }
    assert!(held(&s) <= once + once / 4, "{once} {}", held(&s));
}

#[test]
fn sizes_that_come_back_keep_their_plans() {
    for backends in everywhere() {
        let mut s = session_on(backends, decoder());
        let past = row(1, 40);
        for _ in 0..3 {
            for rows in [1, 9, 3] {
                step(&mut s, row(2, rows), &past);
            }
        }
        assert_eq!(s.report().plans.made, 3, "{backends:?}");
        assert_eq!(s.report().plans.adapted, 0, "{backends:?}");
    }
}

#[test]
fn what_a_plan_was_not_made_for_is_refused_as_before() {
    for backends in everywhere() {
        let mut s = session_on(backends, decoder());
        step(&mut s, row(0, 1), &row(1, 4));
        step(&mut s, row(0, 1), &row(1, 5));
        let wide = f32s(&[6, WIDTH + 1], &[0.0; 6 * (WIDTH + 1)]);
        let inputs = [("x", row(0, 1)), ("past", wide)];
        let refused = run(&mut s, &inputs).unwrap_err();
        let fresh = run(&mut session_on(backends, decoder()), &inputs).unwrap_err();
        assert_eq!(refused.to_string(), fresh.to_string());
        let (y, keys) = step(&mut s, row(3, 1), &row(1, 6));
        let fresh = step(&mut session_on(backends, decoder()), row(3, 1), &row(1, 6));
        assert_eq!((y, keys), fresh);
    }
}

#[test]
fn what_a_loop_carries_grows_without_another_plan() {
    let mut body = Graph::new("body");
    let _ = body.add_input("i", Fact::fixed(DType::I64, &[]));
    let go = body.add_input("go", Fact::fixed(DType::Bool, &[]));
    let carried = body.add_input("carried", Fact::new(DType::F32, symbolic(&["n"])));
    let grown = body.apply("grown", Concat { axis: 0 }, &[carried, carried]);
    let half = body.add_constant("half", i64s(&[0]));
    let end = body.apply(
        "end",
        ShapeOf {
            start: 0,
            end: None,
        },
        &[carried],
    );
    let one = body.add_constant("one", i64s(&[1]));
    let longer = body.apply("longer", add(), &[end, one]);
    let cut = body.apply("cut", Slice, &[grown, half, longer]);
    body.outputs.extend([go, cut]);
    let mut g = Graph::new("loop");
    let trips = g.add_constant("trips", Tensor::scalar(200i64).unwrap());
    let start = g.add_input("start", Fact::new(DType::F32, symbolic(&["m"])));
    let out = g.add_value("out", Fact::default());
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push("loop", op, &[Some(trips), None, Some(start)], &[out]);
    g.outputs.push(out);
    for backends in everywhere() {
        let mut s = session_on(backends, g.clone());
        let out = run(&mut s, &[("start", f32s(&[3], &[1.0, 2.0, 3.0]))]).unwrap();
        // Each turn puts the first number behind the others.
        let mut want = vec![1.0, 2.0, 3.0];
        want.resize(203, 1.0);
        assert_eq!(out[0].1.as_slice::<f32>().unwrap(), want, "{backends:?}");
        assert!(s.report().plans.made <= 12, "{:?}", s.report().plans);
    }
}

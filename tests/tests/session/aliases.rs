//! Nodes that move no element at some lengths: they are views then, and kernels at others.

use kilim::Keep;
use kilim_tests::machine::gpu_beside_others;

use crate::*;

/// A graph of `x` `[rows, 2, 3]` and `more` `[others, 2, 3]`: heads and rows change places, before and behind a kernel; the first row alone; a
/// number for each row; `more` behind it.
fn moving() -> Graph {
    let mut g = Graph::new("moving");
    let rows = |name: &str| {
        let dims = vec![Dim::Symbol(name.into()), Dim::Known(2), Dim::Known(3)];
        Fact::new(DType::F32, Shape(dims))
    };
    let x = g.add_input("x", rows("rows"));
    let more = g.add_input("more", rows("others"));
    let turn = || Transpose {
        perm: vec![1, 0, 2],
    };
    let given = g.apply("given", turn(), &[x]);
    let soft = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: 0,
        beta: 1.0,
    };
    let computed = g.apply("computed", soft.clone(), &[x]);
    let turned = g.apply("turned", turn(), &[computed]);
    let behind = g.apply("behind", soft, &[turned]);
    let [zero, one] = [0, 1].map(|n| g.add_constant(format!("{n}"), i64s(&[n])));
    let first = g.apply("first", Slice, &[computed, zero, one]);
    let joined = g.apply("joined", Concat { axis: 0 }, &[computed, more]);
    let count = g.apply(
        "count",
        ShapeOf {
            start: 0,
            end: Some(1),
        },
        &[x],
    );
    let column = g.add_constant("column", i64s(&[1, 1]));
    let shape = g.apply("shape", Concat { axis: 0 }, &[column, count]);
    let sum = Reduce {
        kind: ReduceKind::Sum,
        keep_dims: false,
        noop_with_empty_axes: false,
    };
    let total = g.apply("total", sum, &[computed]);
    let total = g.apply("positive", Unary(UnaryKind::Abs), &[total]);
    let wide = g.apply("wide", Expand, &[total, shape]);
    g.outputs = vec![given, turned, behind, first, joined, wide];
    g
}

fn on(backends: &[&str]) -> Session {
    let options = LoadOptions {
        backends: backends.iter().map(|&b| BackendId::from(b)).collect(),
        ..LoadOptions::default()
    };
    pollster::block_on(Runtime::shared().session(moving(), options)).unwrap()
}

fn inputs(rows: usize, others: usize) -> [(&'static str, Tensor); 2] {
    let tensor = |rows: usize, step: f32| {
        let values: Vec<f32> = (0..rows * 6).map(|i| (i % 7) as f32 * step - 1.0).collect();
        f32s(&[rows, 2, 3], &values)
    };
    [("x", tensor(rows, 0.5)), ("more", tensor(others, 0.25))]
}

/// The nodes of `names` that are views in the latest plan.
fn views(session: &Session, names: &[&'static str]) -> Vec<&'static str> {
    let report = session.report();
    let is_view = |name: &&&str| {
        let node = report.nodes.iter().find(|node| node.name == ***name);
        node.unwrap().view
    };
    names.iter().filter(is_view).copied().collect()
}

/// The backends of a session, for each kind of backend that changes its plans.
#[track_caller]
fn everywhere() -> Vec<&'static [&'static str]> {
    let gpu = gpu_beside_others().map(|_| &["wgpu", "cpu"][..]);
    [Some(&["cpu"][..]), gpu].into_iter().flatten().collect()
}

#[test]
fn lengths_come_and_go() {
    const MOVING: [&str; 5] = ["given", "turned", "first", "joined", "wide"];
    for backends in everywhere() {
        let mut s = on(backends);
        let lengths = [
            (1, 0),
            (3, 0),
            (1, 0),
            (2, 0),
            (3, 0),
            (1, 0),
            (1, 1),
            (2, 1),
        ];
        for (rows, others) in lengths {
            let inputs = inputs(rows, others);
            let out = run(&mut s, &inputs).unwrap();
            let fresh = run(&mut on(backends), &inputs).unwrap();
            assert_eq!(out, fresh, "{backends:?}: {rows} and {others} rows");
            let views = views(&s, &MOVING);
            let wanted: &[&str] = match (rows, others) {
                (1, 0) => &MOVING,
                (1, _) => &["given", "turned", "first", "wide"],
                (_, 0) => &["joined"],
                _ => &[],
            };
            assert_eq!(views, wanted, "{backends:?}: {rows} and {others} rows");
            let launches = s
                .report()
                .backends
                .iter()
                .map(|b| b.launches)
                .sum::<usize>();
            // Two softmaxes, a sum and its magnitude, and what moves elements.
            assert_eq!(launches, 4 + MOVING.len() - views.len(), "{backends:?}");
        }
    }
}

/// What a view shows is right where it leaves the session as it is, and where it stays on its device.
#[test]
fn views_are_results() {
    let keep = RunOptions {
        keep: Keep::new(["*"]),
        ..RunOptions::default()
    };
    for backends in everywhere() {
        for rows in [1, 3] {
            let inputs = inputs(rows, 0);
            let mut s = on(backends);
            let read = run(&mut s, &inputs).unwrap();
            let [(_, x), _] = &inputs;
            assert_eq!(read[0].1, x.permuted(&[1, 0, 2]).unwrap());
            let given = inputs.map(|(name, tensor)| (name, tensor.into()));
            let kept = pollster::block_on(s.run_data(&given, &keep)).unwrap();
            for ((name, wanted), (_, datum)) in read.iter().zip(&kept) {
                let kilim::Datum::Device(tensor) = datum else {
                    panic!("{name} is {datum:?}");
                };
                let got = pollster::block_on(tensor.read()).unwrap();
                assert_eq!(got, *wanted, "{backends:?}: {name} of {rows} rows");
            }
        }
    }
}

//! Control flow.

use crate::*;

/// `then`: x + captured; `else`: x - captured.
fn branches() -> If {
    let body = |name: &str, kind| {
        let mut g = Graph::new(name);
        let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
        let c = g.add_input("captured", Fact::fixed(DType::F32, &[2]));
        let out = g.apply("op", Binary::new(kind), &[x, c]);
        g.outputs.push(out);
        Arc::new(g)
    };
    If {
        then_body: body("then", BinaryKind::Add),
        else_body: body("else", BinaryKind::Sub),
    }
}

#[test]
fn if_takes_the_branch_that_the_data_says() {
    let mut g = Graph::new("if");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let limit = g.add_input("limit", Fact::fixed(DType::F32, &[]));
    let axes = g.add_constant("axes", i64s(&[0]));
    let sum = Reduce {
        kind: ReduceKind::Sum,
        keep_dims: false,
        noop_with_empty_axes: false,
    };
    let total = g.apply("total", sum, &[x, axes]);
    let more = g.apply("more", Binary::new(BinaryKind::Greater), &[total, limit]);
    let picked = g.apply("if", branches(), &[more, x, x]);
    let out = g.apply("after", Unary(UnaryKind::Neg), &[picked]);
    g.outputs.push(out);
    let mut s = session(g).unwrap();
    let x = f32s(&[2], &[1., 2.]);
    let mut at = |limit: f32| {
        let inputs = [("x", x.clone()), ("limit", f32s(&[], &[limit]))];
        let out = run(&mut s, &inputs).unwrap();
        out[0].1.as_slice::<f32>().unwrap().to_vec()
    };
    assert_eq!(at(0.0), [-2., -4.]);
    assert_eq!(at(9.0), [0., 0.]);
    let report = s.report();
    assert!(
        report
            .nodes
            .iter()
            .any(|n| n.op == "If" && n.backend == "builtin")
    );
    assert!(
        report
            .nodes
            .iter()
            .any(|n| n.scope == ["if"] && n.backend == "cpu")
    );
}

#[test]
fn loop_carries_and_stacks() {
    let mut body = Graph::new("body");
    let i = body.add_input("i", Fact::fixed(DType::I64, &[]));
    let _ = body.add_input("cond_in", Fact::fixed(DType::Bool, &[]));
    let acc = body.add_input("acc", Fact::new(DType::F32, symbolic(&["n"])));
    let step = body.add_input("step", Fact::fixed(DType::F32, &[1]));
    let limit = body.add_constant("limit", Tensor::scalar(3i64).unwrap());
    let grown = body.apply("grow", Concat { axis: 0 }, &[acc, step]);
    let go = body.apply("go", Binary::new(BinaryKind::Less), &[i, limit]);
    let as_float = body.apply("float", Cast::new(DType::F32), &[i]);
    body.outputs.extend([go, grown, as_float]);
    let mut g = Graph::new("loop");
    let trips = g.add_input("trips", Fact::fixed(DType::I64, &[]));
    let start = g.add_input("start", Fact::new(DType::F32, symbolic(&["m"])));
    let step = g.add_input("step", Fact::fixed(DType::F32, &[1]));
    let outs = [
        g.add_value("grown", Fact::default()),
        g.add_value("steps", Fact::default()),
    ];
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push(
        "loop",
        op,
        &[Some(trips), None, Some(start), Some(step)],
        &outs,
    );
    g.outputs.extend(outs);
    let mut s = session(g).unwrap();
    let mut at = |trips: i64| {
        let inputs = [
            ("trips", Tensor::scalar(trips).unwrap()),
            ("start", f32s(&[1], &[7.])),
            ("step", f32s(&[1], &[2.])),
        ];
        run(&mut s, &inputs).unwrap()
    };
    let out = at(2);
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [7., 2., 2.]);
    assert_eq!(out[1].1.as_slice::<f32>().unwrap(), [0., 1.]);
    let out = at(100);
    assert_eq!(out[1].1.as_slice::<f32>().unwrap(), [0., 1., 2., 3.]);
    let out = at(0);
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [7.]);
    assert_eq!(out[1].1.shape(), [0]);
}

#[test]
fn scan_runs_backwards_and_stacks_on_any_axis() {
    let mut body = Graph::new("body");
    let state = body.add_input("state", Fact::fixed(DType::F32, &[2]));
    let x = body.add_input("x", Fact::fixed(DType::F32, &[2]));
    let sum = body.apply("sum", add(), &[state, x]);
    body.outputs.extend([sum, sum]);
    let mut g = Graph::new("scan");
    let start = g.add_input("start", Fact::fixed(DType::F32, &[2]));
    let xs = g.add_input("xs", Fact::fixed(DType::F32, &[3, 2]));
    let outs = [
        g.add_value("last", Fact::default()),
        g.add_value("all", Fact::default()),
    ];
    let op = Scan {
        body: Arc::new(body),
        states: 1,
        scan_inputs: 1,
        input_axes: vec![0],
        input_reverse: vec![true],
        output_axes: vec![1],
        output_reverse: vec![false],
    };
    g.push("scan", op, &[Some(start), Some(xs)], &outs);
    g.outputs.extend(outs);
    let mut s = session(g).unwrap();
    let inputs = [
        ("start", f32s(&[2], &[0., 100.])),
        ("xs", f32s(&[3, 2], &[1., 10., 2., 20., 3., 30.])),
    ];
    let out = run(&mut s, &inputs).unwrap();
    assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [6., 160.]);
    assert_eq!(out[1].1.shape(), [2, 3]);
    assert_eq!(
        out[1].1.as_slice::<f32>().unwrap(),
        [3., 5., 6., 130., 150., 160.]
    );
}

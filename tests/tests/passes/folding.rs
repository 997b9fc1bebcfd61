//! Constants, shape arithmetic, and what is computed twice.

use super::*;

#[test]
fn what_is_computed_twice_is_computed_once() {
    let mut b = Builder::new(13);
    let x = b.input("x", &[2, 3]);
    let sums: Vec<V> = (0..2)
        .map(|_| {
            let two = b.scalar(2.0);
            let product = b.binary(BinaryKind::Mul, x, two);
            b.unary(UnaryKind::Exp, product)
        })
        .collect();
    let y = b.binary(BinaryKind::Add, sums[0], sums[1]);
    let _unread = b.unary(UnaryKind::Neg, y);
    let g = b.check(&[y, sums[0], sums[1]], 13);
    assert_eq!(names(&g), ["Mul", "Exp", "Add"]);
}

#[test]
fn constants_are_computed_but_not_blown_up() {
    let mut b = Builder::new(14);
    let x = b.input("x", &[3, 4]);
    let w = b.floats(&[4, 3]);
    let w = b.transpose(w, &[1, 0]);
    let w = b.unary(UnaryKind::Neg, w);
    let y = b.binary(BinaryKind::Sub, x, w);
    // 32 MiB that one number makes.
    let one = b.scalar(1.0);
    let large = b.ints(&[2048, 4096]);
    let large = b.op(Expand, &[one, large]);
    let g = b.check(&[y, large], 14);
    assert_eq!(names(&g), ["Sub", "Expand"]);
}

#[test]
fn shape_arithmetic_goes() {
    let mut b = Builder::new(5);
    let x = b.input("x", &[2, 3, 4]);
    let shape = ShapeOf {
        start: 0,
        end: None,
    };
    let shape = b.op(shape, &[x]);
    let first = b.constant(Tensor::scalar(0i64).unwrap());
    let batch = b.op(Gather { axis: 0 }, &[shape, first]);
    let zero = b.ints(&[0]);
    let batch = b.op(Unsqueeze, &[batch, zero]);
    let rest = b.ints(&[-1]);
    let shape = b.op(Concat { axis: 0 }, &[batch, rest]);
    let y = b.op(Reshape { allow_zero: false }, &[x, shape]);
    let g = b.check(&[y], 5);
    assert_eq!(names(&g), ["Reshape"]);
}

#[test]
fn a_known_condition_chooses_its_body() {
    let mut b = Builder::new(6);
    let x = b.input("x", &[3]);
    let body = |kind| {
        let mut g = Graph::new("body");
        let a = g.add_input("a", Fact::fixed(DType::F32, &[3]));
        let y = g.apply("y", Unary(kind), &[a]);
        g.outputs = vec![y];
        std::sync::Arc::new(g)
    };
    let yes = b.constant(Tensor::from_bools(&[], &[true]).unwrap());
    let choice = If {
        then_body: body(UnaryKind::Neg),
        else_body: body(UnaryKind::Abs),
    };
    let y = b.op(choice, &[yes, x]);
    let y = b.unary(UnaryKind::Relu, y);
    let g = b.check(&[y], 6);
    assert_eq!(names(&g), ["Neg", "Relu"]);
}

#[test]
fn constants_move_into_bodies() {
    let mut b = Builder::new(7);
    let x = b.input("x", &[3]);
    let w = b.floats(&[3]);
    let body = |kind| {
        let mut g = Graph::new("body");
        let a = g.add_input("a", Fact::fixed(DType::F32, &[3]));
        let w = g.add_input("w", Fact::fixed(DType::F32, &[3]));
        let n = g.apply("n", Unary(UnaryKind::Neg), &[w]);
        let y = g.apply("y", Binary::new(kind), &[a, n]);
        g.outputs = vec![y];
        std::sync::Arc::new(g)
    };
    let zero = b.scalar(0.0);
    let sum = {
        let axes = b.ints(&[0]);
        let sum = Reduce {
            kind: ReduceKind::Sum,
            keep_dims: false,
            noop_with_empty_axes: false,
        };
        b.op(sum, &[x, axes])
    };
    let condition = b.binary(BinaryKind::Greater, sum, zero);
    let choice = If {
        then_body: body(BinaryKind::Add),
        else_body: body(BinaryKind::Mul),
    };
    let y = b.op(choice, &[condition, x, w]);
    let g = b.check(&[y], 7);
    let node = g.nodes.iter().find(|n| n.op.name() == "If").unwrap();
    assert_eq!(node.inputs.len(), 2);
    for body in node.op.subgraphs() {
        assert_eq!((body.inputs.len(), body.nodes.len()), (1, 1));
    }
}

#[test]
fn a_thousand_nodes_take_little_time() {
    let mut b = Builder::new(12);
    let mut y = b.input("x", &[1, 4, 8, 8]);
    for _ in 0..250 {
        let before = y;
        y = b.conv(y, 4, 4, 1);
        let c = b.floats(&[4, 1, 1]);
        y = b.binary(BinaryKind::Mul, y, c);
        y = b.binary(BinaryKind::Add, y, before);
        y = b.unary(UnaryKind::Relu, y);
    }
    b.g.outputs = vec![y];
    let start = std::time::Instant::now();
    let g = optimised(&b.g);
    let seconds = start.elapsed().as_secs_f64();
    println!("{} nodes of 1000 left after {seconds:.3} s", g.nodes.len());
    assert_eq!(g.nodes.len(), 252);
    // Far above what it takes, unoptimised, on a machine that does other things as well.
    assert!(seconds < 10.0);
}

use super::*;

#[test]
fn matrices() {
    let product = |a: &str, b: &str| infer(MatMul::default(), &[unknown(a), unknown(b)]);
    assert_eq!(product("float32 n,4,3", "float32 3,5"), "float32[n,4,5]");
    assert_eq!(
        product("float32 2,1,4,3", "float32 6,3,5"),
        "float32[2,6,4,5]"
    );
    assert_eq!(product("float32 3", "float32 3"), "float32[]");
    assert_eq!(product("float32 3", "float32 n,3,5"), "float32[n,5]");
    assert_eq!(product("float32 n,4,3", "float32 3"), "float32[n,4]");
    assert_eq!(product("float32 n,4,?", "float32 3,5"), "float32[n,4,5]");
    let refused = |a: &str, b: &str| refuse(MatMul::default(), &[unknown(a), unknown(b)]);
    assert_eq!(refused("float32 4,3", "float32 4,5"), ErrorCode::Shape);
    assert_eq!(refused("float32", "float32 4,5"), ErrorCode::Shape);
    assert_eq!(refused("int8 4,3", "int8 3,5"), ErrorCode::DType);
    assert_eq!(refused("float32 2,4,3", "float32 3,3,5"), ErrorCode::Shape);
    let turned = MatMul {
        transpose_b: true,
        ..MatMul::default()
    };
    let inputs = [
        unknown("float32 n,4,3"),
        unknown("float32 5,3"),
        unknown("float32 5"),
    ];
    assert_eq!(infer(turned.clone(), &inputs), "float32[n,4,5]");
    let cost = turned.cost(&[Some(&[2, 4, 3]), Some(&[5, 3])], &[&[2, 4, 5]]);
    assert_eq!(cost.flops, 2.0 * (2 * 4 * 5 * 3) as f64);
    let bias = [
        unknown("float32 n,4,3"),
        unknown("float32 5,3"),
        unknown("float32 4"),
    ];
    assert_eq!(refuse(turned, &bias), ErrorCode::Shape);
    let g = MatMulGeometry::new(&[2, 1, 4, 3], &[6, 3, 5], false).unwrap();
    assert_eq!((g.m, g.k, g.n), (4, 3, 5));
    assert_eq!(
        (g.a_batch, g.b_batch, g.batch),
        (vec![2, 1], vec![6], vec![2, 6])
    );
    let v = MatMulGeometry::new(&[3], &[2, 3, 5], false).unwrap();
    assert_eq!((v.m, v.k, v.n, v.output), (1, 3, 5, vec![2, 5]));
}

#[test]
fn gemm() {
    let op = |transpose_a, transpose_b| Gemm {
        alpha: 1.0,
        beta: 1.0,
        transpose_a,
        transpose_b,
        activation: Activation::None,
    };
    let inputs = |a: &str, b: &str, c: &str| [unknown(a), unknown(b), unknown(c)];
    let plain = inputs("float32 n,4", "float32 4,5", "float32 5");
    assert_eq!(infer(op(false, false), &plain), "float32[n,5]");
    let turned = inputs("float32 4,n", "float32 5,4", "float32 1,1");
    assert_eq!(infer(op(true, true), &turned), "float32[n,5]");
    let wide = inputs("float32 1,4", "float32 4,5", "float32 3,5");
    assert_eq!(refuse(op(false, false), &wide), ErrorCode::Shape);
    let rank = inputs("float32 2,3,4", "float32 4,5", "-");
    assert_eq!(refuse(op(false, false), &rank), ErrorCode::Shape);
}

fn einsum(equation: &str, operands: &[&str]) -> String {
    let op = Einsum {
        equation: equation.into(),
    };
    let inputs: Vec<_> = operands.iter().map(|o| unknown(o)).collect();
    infer(op, &inputs)
}

#[test]
fn sums_over_indices() {
    assert_eq!(
        einsum("ij,jk->ik", &["float32 n,3", "float32 3,5"]),
        "float32[n,5]"
    );
    assert_eq!(
        einsum("ij,jk", &["float32 2,3", "float32 3,5"]),
        "float32[2,5]"
    );
    assert_eq!(einsum("ba", &["float32 2,3"]), "float32[3,2]");
    assert_eq!(
        einsum("...ii->...i", &["float32 4,5,3,3"]),
        "float32[4,5,3]"
    );
    assert_eq!(
        einsum("bij, bjk -> bik", &["float32 b,2,3", "float32 1,3,5"]),
        "float32[b,2,5]"
    );
    assert_eq!(einsum("ij->", &["float32 2,3"]), "float32[]");
    let wide = einsum("...ij,...jk->...ik", &["float32 7,2,3", "float32 3,4"]);
    assert_eq!(wide, "float32[7,2,4]");
    let plan = EinsumPlan::new("ij,j", &[2, 1]).unwrap();
    assert_eq!(
        (plan.inputs, plan.output),
        (vec![vec![0, 1], vec![1]], vec![0])
    );
    let refused = |equation: &str, x: &str| {
        let op = Einsum {
            equation: equation.into(),
        };
        refuse(op, &[unknown(x)])
    };
    assert_eq!(refused("ij->k", "float32 2,3"), ErrorCode::InvalidValue);
    assert_eq!(refused("i1->i", "float32 2,3"), ErrorCode::InvalidValue);
    assert_eq!(refused("ij,jk->ik", "float32 2,3"), ErrorCode::Shape);
    assert_eq!(refused("ijk->i", "float32 2,3"), ErrorCode::Shape);
    assert_eq!(refused("ii->i", "float32 2,3"), ErrorCode::Shape);
    assert_eq!(refused("ij->ii", "float32 2,3"), ErrorCode::InvalidValue);
    let det = infer(Det, &[unknown("float32 n,3,3")]);
    assert_eq!(det, "float32[n]");
    assert_eq!(refuse(Det, &[unknown("float32 2,3")]), ErrorCode::Shape);
}

#[test]
fn attention() {
    let query = "float32 b,6,n,8";
    let (key, value) = ("float32 b,2,m,8", "float32 b,2,m,5");
    let seen = |op: Attention, inputs: &[&str]| {
        let inputs: Vec<_> = inputs.iter().map(|i| unknown(i)).collect();
        infer(op, &inputs)
    };
    let refused = |op: Attention, inputs: &[&str]| {
        let inputs: Vec<_> = inputs.iter().map(|i| unknown(i)).collect();
        refuse(op, &inputs)
    };
    let plain = Attention::default;
    let wanted = "float32[b,6,n,5]";
    assert_eq!(seen(plain(), &[query, key, value]), wanted);
    let all = [
        query,
        key,
        value,
        "float32 6,1,m",
        "int64 1",
        "int64 b",
        "float32 6",
    ];
    assert_eq!(seen(plain(), &all), wanted);
    let anything = ["float32 …", "float32 …", "float32 …"];
    assert_eq!(seen(plain(), &anything), "float32[?,?,?,?]");
    let known = ["float32 ?,?,?,?", "float32 3,2,7,8", "float32 …"];
    assert_eq!(seen(plain(), &known), "float32[3,?,?,?]");
    // Each input in another form than it must have.
    for (i, wrong, code) in [
        (0, "int32 b,6,n,8", ErrorCode::DType),
        (0, "float32 6,n,8", ErrorCode::Shape),
        (0, "float32 b,5,n,8", ErrorCode::Shape),
        (0, "float32 b,6,n,7", ErrorCode::Shape),
        (1, "float64 b,2,m,8", ErrorCode::DType),
        (1, "float32 b,0,m,8", ErrorCode::Shape),
        (2, "float32 b,3,m,5", ErrorCode::Shape),
        (3, "float16 6,1,m", ErrorCode::DType),
        (3, "float32 2,b,6,n,m", ErrorCode::Shape),
        (3, "float32 2,n,m", ErrorCode::Shape),
        (4, "int32 1", ErrorCode::DType),
        (4, "int64", ErrorCode::Shape),
        (5, "int32 b", ErrorCode::DType),
        (5, "int64 b,1", ErrorCode::Shape),
        (6, "float32 2", ErrorCode::Shape),
        (6, "float16 6", ErrorCode::DType),
    ] {
        let mut inputs = all;
        inputs[i] = wrong;
        assert_eq!(refused(plain(), &inputs), code, "input {i}: {wrong}");
    }
    let fixed = |i: usize, wrong: &'static str| {
        let mut inputs = [
            "float32 3,6,4,8",
            "float32 3,2,9,8",
            "float32 3,2,9,8",
            "-",
            "int64 3",
            "int64 3",
        ];
        inputs[i] = wrong;
        refused(plain(), &inputs)
    };
    assert_eq!(fixed(4, "int64 2"), ErrorCode::Shape);
    assert_eq!(fixed(5, "int64 1"), ErrorCode::Shape);
    assert_eq!(fixed(2, "float32 2,2,9,8"), ErrorCode::Shape);
    assert_eq!(fixed(2, "float32 3,2,8,8"), ErrorCode::Shape);
    assert_eq!(refused(plain(), &[query, key]), ErrorCode::Shape);
    let end = Attention {
        align: Align::End,
        ..plain()
    };
    assert_eq!(seen(end.clone(), &[query, key, value]), wanted);
    let offset = [query, key, value, "-", "int64 1"];
    assert_eq!(refused(end.clone(), &offset), ErrorCode::InvalidValue);
    let shapes = [[2, 6, 3, 8], [2, 2, 10, 8], [2, 2, 10, 5]];
    let cost = end.cost(&shapes.each_ref().map(|s| Some(&s[..])), &[&[2, 6, 3, 5]]);
    assert_eq!(cost.flops, (2 * 6 * 3 * 10 * (2 * (8 + 5) + 16)) as f64);
}

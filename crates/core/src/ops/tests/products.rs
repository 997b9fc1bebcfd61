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
    let cost = turned.cost(&[Some(vec![2, 4, 3]), Some(vec![5, 3])], &[vec![2, 4, 5]]);
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

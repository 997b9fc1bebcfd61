use super::*;

#[test]
fn unary() {
    let op = |kind| Unary(kind);
    let x = || unknown("float32 n,3");
    assert_eq!(infer(op(UnaryKind::Exp), &[x()]), "float32[n,3]");
    assert_eq!(infer(op(UnaryKind::IsNaN), &[x()]), "bool[n,3]");
    assert_eq!(infer(op(UnaryKind::Relu), &[unknown("int8 2")]), "int8[2]");
    let refused = |kind, x: &str| refuse(op(kind), &[unknown(x)]);
    assert_eq!(refused(UnaryKind::Exp, "int32 2"), ErrorCode::DType);
    assert_eq!(refused(UnaryKind::Neg, "uint8 2"), ErrorCode::DType);
    assert_eq!(refused(UnaryKind::Not, "float32 2"), ErrorCode::DType);
    assert!(op(UnaryKind::Identity).is_view() && !op(UnaryKind::Abs).is_view());
}

#[test]
fn binary() {
    let op = Binary::new;
    let inputs = |a: &str, b: &str| [unknown(a), unknown(b)];
    let ab = inputs("float32 n,1,4", "float32 3,1");
    assert_eq!(infer(op(BinaryKind::Add), &ab), "float32[n,3,4]");
    assert_eq!(infer(op(BinaryKind::Less), &ab), "bool[n,3,4]");
    let powers = inputs("float32 2,1", "int64 3");
    assert_eq!(infer(op(BinaryKind::Pow), &powers), "float32[2,3]");
    let types = inputs("float32 2", "int64 2");
    assert_eq!(refuse(op(BinaryKind::Add), &types), ErrorCode::DType);
    let shapes = inputs("float32 2", "float32 3");
    assert_eq!(refuse(op(BinaryKind::Mul), &shapes), ErrorCode::Shape);
    let logic = inputs("float32 2", "float32 2");
    assert_eq!(refuse(op(BinaryKind::And), &logic), ErrorCode::DType);
    let open = inputs("float32 …", "float32 3");
    assert_eq!(infer(op(BinaryKind::Add), &open), "float32[…]");
    // The slope of PRelu must not enlarge the data.
    let slope = inputs("float32 3,1", "float32 3,4");
    assert_eq!(refuse(op(BinaryKind::PRelu), &slope), ErrorCode::Shape);
    let slope = inputs("float32 n,3,8,8", "float32 3,1,1");
    assert_eq!(infer(op(BinaryKind::PRelu), &slope), "float32[n,3,8,8]");
}

#[test]
fn others() {
    let inputs = [
        unknown("bool 2,1"),
        unknown("int32 3"),
        unknown("int32 1,1,1"),
    ];
    assert_eq!(infer(Where, &inputs), "int32[1,2,3]");
    let inputs = [unknown("int32 2"), unknown("int32 2"), unknown("int32 2")];
    assert_eq!(refuse(Where, &inputs), ErrorCode::DType);
    let inputs = [unknown("float32 n,2"), None, unknown("float32")];
    assert_eq!(infer(Clip, &inputs), "float32[n,2]");
    let inputs = [unknown("float32 n,2"), unknown("float32 2")];
    assert_eq!(refuse(Clip, &inputs), ErrorCode::Shape);
    let cast = Cast::new(DType::F16);
    assert_eq!(infer(cast, &[unknown("int32 n")]), "float16[n]");
    let inputs = [unknown("int32 n"), unknown("uint8 4")];
    assert_eq!(infer(CastLike::default(), &inputs), "uint8[n]");
    let both = infer_all(Dropout, 2, &[unknown("float32 n")]);
    assert_eq!(both, "float32[n] bool[n]");
    let missing = [unknown("bool 2,1"), unknown("int32 3")];
    assert_eq!(refuse(Where, &missing), ErrorCode::Shape);
}

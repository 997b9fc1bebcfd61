use super::*;

fn range(values: [Tensor; 3]) -> Vec<Option<InputFact>> {
    values.into_iter().map(known).collect()
}

#[test]
fn ranges() {
    let of = |v: [i64; 3]| range(v.map(|v| Tensor::scalar(v).unwrap()));
    assert_eq!(infer(Range, &of([10, 4, -2])), "int64[3]");
    assert_eq!(infer(Range, &of([0, 7, 3])), "int64[3]");
    assert_eq!(infer(Range, &of([5, 5, 1])), "int64[0]");
    assert_eq!(infer(Range, &of([5, 0, 1])), "int64[0]");
    assert_eq!(infer(Range, &of([i64::MIN, 0, i64::MAX])), "int64[2]");
    assert_eq!(refuse(Range, &of([0, 5, 0])), ErrorCode::InvalidValue);
    let of = |v: [f32; 3]| range(v.map(|v| Tensor::scalar(v).unwrap()));
    assert_eq!(infer(Range, &of([1.0, 5.0, 2.0])), "float32[2]");
    assert_eq!(infer(Range, &of([0.0, 1.0, 0.3])), "float32[4]");
    assert_eq!(
        refuse(Range, &of([0.0, f32::NAN, 1.0])),
        ErrorCode::InvalidValue
    );
    assert_eq!(
        refuse(Range, &of([0.0, f32::INFINITY, 1.0])),
        ErrorCode::InvalidValue
    );
    let later = [unknown("int64"), unknown("int64"), unknown("int64")];
    assert_eq!(infer(Range, &later), "int64[?]");
    let counting = [int(0), unknown("int64"), int(1)];
    let elements = [
        Some(vec![Dim::Known(0)]),
        Some(vec![Dim::Symbol("s".into())]),
        Some(vec![Dim::Known(1)]),
    ];
    let ctx = InferContext::new(&counting, 1);
    let facts = Range.infer_with_elements(&ctx, &elements).unwrap();
    assert_eq!(facts[0].to_string(), "int64[s]");
    let vector = [ints(&[0, 1]), int(3), int(1)];
    assert_eq!(refuse(Range, &vector), ErrorCode::Shape);
}

#[test]
fn shapes() {
    let shape = |start, end| infer(ShapeOf { start, end }, &[unknown("float32 n,3,4")]);
    assert_eq!(shape(0, None), "int64[3]");
    assert_eq!(shape(-1, None), "int64[1]");
    assert_eq!(shape(0, Some(-1)), "int64[2]");
    assert_eq!(shape(2, Some(1)), "int64[0]");
    assert_eq!(shape(-10, Some(10)), "int64[3]");
    assert_eq!(infer(Size, &[unknown("float32 …")]), "int64[]");
    let fill = ConstantOfShape {
        value: Tensor::from_slice(&[1], &[1i32]).unwrap(),
    };
    assert_eq!(infer(fill.clone(), &[ints(&[4, 0])]), "int32[4,0]");
    assert_eq!(infer(fill.clone(), &[ints(&[])]), "int32[]");
    assert_eq!(infer(fill.clone(), &[unknown("int64 2")]), "int32[?,?]");
    assert_eq!(refuse(fill, &[ints(&[-1])]), ErrorCode::InvalidValue);
    let eye = |dtype| EyeLike { dtype, k: 0 };
    assert_eq!(infer(eye(None), &[unknown("int32 n,4")]), "int32[n,4]");
    let typed = infer(eye(Some(DType::F64)), &[unknown("int32 n,4")]);
    assert_eq!(typed, "float64[n,4]");
    assert_eq!(refuse(eye(None), &[unknown("int32 4")]), ErrorCode::Shape);
}

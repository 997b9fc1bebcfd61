use super::*;

#[test]
fn gathers() {
    let inputs = [unknown("float32 n,3,4"), unknown("int64 2,k")];
    assert_eq!(infer(Gather { axis: 1 }, &inputs), "float32[n,2,k,4]");
    let scalar = [unknown("float32 n,3,4"), unknown("int32")];
    assert_eq!(infer(Gather { axis: -1 }, &scalar), "float32[n,3]");
    assert_eq!(refuse(Gather { axis: 3 }, &scalar), ErrorCode::Shape);
    let typed = [unknown("float32 n"), unknown("float32 2")];
    assert_eq!(refuse(Gather { axis: 0 }, &typed), ErrorCode::DType);
    let inputs = [unknown("float32 n,3"), unknown("int64 2,3")];
    assert_eq!(infer(GatherElements { axis: 0 }, &inputs), "float32[2,3]");
    let rank = [unknown("float32 n,3"), unknown("int64 2")];
    assert_eq!(refuse(GatherElements { axis: 0 }, &rank), ErrorCode::Shape);
    let nd = |batch_dims| GatherNd { batch_dims };
    let inputs = [unknown("float32 2,3,4"), unknown("int64 2,5,1")];
    assert_eq!(infer(nd(1), &inputs), "float32[2,5,4]");
    let inputs = [unknown("float32 2,3,4"), unknown("int64 5,2")];
    assert_eq!(infer(nd(0), &inputs), "float32[5,4]");
    let many = [unknown("float32 2,3,4"), unknown("int64 2,4")];
    assert_eq!(refuse(nd(0), &many), ErrorCode::Shape);
    assert_eq!(refuse(nd(2), &many), ErrorCode::Shape);
}

#[test]
fn scatters() {
    let elements = ScatterElements {
        axis: 1,
        reduction: ScatterReduction::None,
    };
    let x = || unknown("float32 n,5");
    let inputs = [x(), unknown("int64 1,2"), unknown("float32 1,2")];
    assert_eq!(infer(elements.clone(), &inputs), "float32[n,5]");
    let inputs = [x(), unknown("int64 1,2"), unknown("float32 1,3")];
    assert_eq!(refuse(elements, &inputs), ErrorCode::Shape);
    let nd = ScatterNd {
        reduction: ScatterReduction::Add,
    };
    let x = || unknown("float32 4,4,5");
    let inputs = [x(), unknown("int64 2,1"), unknown("float32 2,4,5")];
    assert_eq!(infer(nd.clone(), &inputs), "float32[4,4,5]");
    let inputs = [x(), unknown("int64 2,1"), unknown("float32 2,4,4")];
    assert_eq!(refuse(nd, &inputs), ErrorCode::Shape);
    let cache = TensorScatter {
        axis: -2,
        circular: false,
    };
    let x = || unknown("float32 b,8,16,4");
    let inputs = [x(), unknown("float32 b,8,1,4"), unknown("int64 b")];
    assert_eq!(infer(cache.clone(), &inputs), "float32[b,8,16,4]");
    let inputs = [x(), unknown("float32 b,8,17,4")];
    assert_eq!(refuse(cache, &inputs), ErrorCode::Shape);
}

#[test]
fn a_cache_may_become_longer() {
    let cache = TensorScatter {
        axis: -2,
        circular: false,
    };
    let inputs = |length| {
        let x = unknown("float32 b,8,16,4");
        [x, unknown("float32 b,8,17,4"), unknown("int64 b"), length]
    };
    assert_eq!(infer(cache.clone(), &inputs(int(20))), "float32[b,8,20,4]");
    let open = inputs(unknown("int64 1"));
    assert_eq!(infer(cache.clone(), &open), "float32[b,8,?,4]");
    for (length, code) in [
        (16, ErrorCode::Shape),
        (15, ErrorCode::InvalidValue),
        (-1, ErrorCode::InvalidValue),
    ] {
        assert_eq!(refuse(cache.clone(), &inputs(int(length))), code);
    }
    let circular = TensorScatter {
        circular: true,
        ..cache
    };
    assert_eq!(refuse(circular, &inputs(int(20))), ErrorCode::InvalidValue);
}

#[test]
fn one_hot() {
    let op = |axis| OneHot { axis };
    let inputs = |depth| [unknown("int64 n,3"), depth, unknown("float32 2")];
    assert_eq!(infer(op(1), &inputs(int(10))), "float32[n,10,3]");
    assert_eq!(infer(op(-1), &inputs(floats(&[4.0]))), "float32[n,3,4]");
    assert_eq!(infer(op(-1), &inputs(unknown("int64"))), "float32[n,3,?]");
    assert_eq!(refuse(op(3), &inputs(int(10))), ErrorCode::Shape);
    assert_eq!(refuse(op(0), &inputs(int(-1))), ErrorCode::InvalidValue);
}

#[test]
fn non_zero() {
    let x = Tensor::from_slice(&[2, 3], &[1.0f32, 0.0, -0.0, f32::NAN, 0.0, 2.0]).unwrap();
    assert_eq!(
        NonZero::positions(&Meter::new(&Interrupt::NEVER), &x).unwrap(),
        [0, 1, 1, 0, 0, 2]
    );
    assert_eq!(infer(NonZero, &[known(x)]), "int64[2,3]");
    assert_eq!(infer(NonZero, &[unknown("float32 n,2,3")]), "int64[3,?]");
    // A scalar has no coordinates.
    let scalar = Tensor::scalar(5i64).unwrap();
    assert!(
        NonZero::positions(&Meter::new(&Interrupt::NEVER), &scalar)
            .unwrap()
            .is_empty()
    );
    assert_eq!(infer(NonZero, &[known(scalar)]), "int64[0,1]");
    let small = Tensor::from_slice(&[2], &[i16::MIN, 0]).unwrap();
    assert_eq!(
        NonZero::positions(&Meter::new(&Interrupt::NEVER), &small).unwrap(),
        [0]
    );
    let none = Tensor::zeros(DType::F32, &[0, 3]).unwrap();
    assert_eq!(infer(NonZero, &[known(none)]), "int64[2,0]");
}

#[test]
fn compress() {
    let condition = |v: &[bool]| known(Tensor::from_bools(&[v.len()], v).unwrap());
    let x = || unknown("float32 3,2");
    let op = |axis| Compress { axis };
    let inputs = [x(), condition(&[false, true, true])];
    assert_eq!(infer(op(Some(0)), &inputs), "float32[2,2]");
    let flat = [x(), condition(&[false, true, false, false, true])];
    assert_eq!(infer(op(None), &flat), "float32[2]");
    let later = [x(), unknown("bool 3")];
    assert_eq!(infer(op(Some(-2)), &later), "float32[?,2]");
    assert_eq!(refuse(op(Some(1)), &inputs), ErrorCode::Shape);
    let values = InferContext::new(&inputs, 1);
    assert_eq!(op(Some(0)).selected(&meter(), 3, &values).unwrap(), [1, 2]);
}

#[test]
fn unique() {
    // The node tests unique_not_sorted_without_axis and unique_sorted_with_axis.
    let x = || Tensor::from_slice(&[6], &[2.0f32, 1.0, 1.0, 3.0, 4.0, 3.0]).unwrap();
    let op = |axis, sorted| Unique { axis, sorted };
    let parts = op(None, false).find(&meter(), &x()).unwrap();
    assert_eq!(parts.first, [0, 1, 3, 4]);
    assert_eq!(parts.inverse, [0, 1, 1, 2, 3, 2]);
    assert_eq!(parts.counts, [1, 2, 2, 1]);
    let parts = op(None, true).find(&meter(), &x()).unwrap();
    assert_eq!(parts.first, [1, 0, 3, 4]);
    let rows = [1.0f32, 0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 3.0, 4.0];
    let rows = Tensor::from_slice(&[3, 3], &rows).unwrap();
    let parts = op(Some(0), true).find(&meter(), &rows).unwrap();
    assert_eq!((parts.first, parts.inverse), (vec![0, 2], vec![0, 0, 1]));
    let columns = op(Some(-1), true).find(&meter(), &rows).unwrap();
    assert_eq!(columns.first, [1, 2, 0]);
    let all = infer_all(op(Some(0), true), 4, &[known(rows)]);
    assert_eq!(all, "float32[2,3] int64[2] int64[3] int64[2]");
    let later = infer_all(op(None, true), 4, &[unknown("float32 n,2")]);
    assert_eq!(later, "float32[?] int64[?] int64[?] int64[?]");
    let signed = Tensor::from_slice(&[4], &[0.0f32, -0.0, -3.0, -1.0]).unwrap();
    assert_eq!(
        op(None, true).find(&meter(), &signed).unwrap().first,
        [2, 3, 0]
    );
}

fn suppress(boxes: &[f32], scores: &[f32], most: i64, overlap: f32, least: f32) -> Vec<[i64; 3]> {
    let n = boxes.len() / 4;
    let classes = scores.len() / n;
    let inputs = [
        known(Tensor::from_slice(&[1, n, 4], boxes).unwrap()),
        known(Tensor::from_slice(&[1, classes, n], scores).unwrap()),
        int(most),
        floats(&[overlap]),
        floats(&[least]),
    ];
    let op = NonMaxSuppression {
        center_point_box: false,
    };
    let fact = infer(op.clone(), &inputs);
    let values = InferContext::new(&inputs, 1);
    let kept = non_max_suppression(&meter(), &op, &values).unwrap();
    assert_eq!(fact, format!("int64[{},3]", kept.len()));
    kept
}

#[test]
fn non_max_suppressions() {
    // The node tests of NonMaxSuppression.
    let boxes = [
        0.0, 0.0, 1.0, 1.0, 0.0, 0.1, 1.0, 1.1, 0.0, -0.1, 1.0, 0.9, 0.0, 10.0, 1.0, 11.0, 0.0,
        10.1, 1.0, 11.1, 0.0, 100.0, 1.0, 101.0,
    ];
    let scores = [0.9, 0.75, 0.6, 0.95, 0.5, 0.3];
    let kept = suppress(&boxes, &scores, 3, 0.5, 0.0);
    assert_eq!(kept, [[0, 0, 3], [0, 0, 0], [0, 0, 5]]);
    let kept = suppress(&boxes, &scores, 2, 0.5, 0.0);
    assert_eq!(kept, [[0, 0, 3], [0, 0, 0]]);
    let kept = suppress(&boxes, &scores, 3, 0.5, 0.4);
    assert_eq!(kept, [[0, 0, 3], [0, 0, 0]]);
    let flipped = [
        1.0, 1.0, 0.0, 0.0, 0.0, 0.1, 1.0, 1.1, 0.0, 0.9, 1.0, -0.1, 0.0, 10.0, 1.0, 11.0, 1.0,
        10.1, 0.0, 11.1, 1.0, 101.0, 0.0, 100.0,
    ];
    let kept = suppress(&flipped, &scores, 3, 0.5, 0.0);
    assert_eq!(kept, [[0, 0, 3], [0, 0, 0], [0, 0, 5]]);
    let twice = [scores, scores].concat();
    let kept = suppress(&boxes, &twice, 2, 0.5, 0.0);
    assert_eq!(kept, [[0, 0, 3], [0, 0, 0], [0, 1, 3], [0, 1, 0]]);
    assert!(suppress(&boxes, &scores, 0, 0.5, 0.0).is_empty());
    let same = [[0.0, 0.0, 1.0, 1.0]; 10].concat();
    assert_eq!(suppress(&same, &[0.9; 10], 3, 0.5, 0.0), [[0, 0, 0]]);
}

#[test]
fn suppression_of_centred_boxes() {
    // The node test nonmaxsuppression_center_point_box_format.
    let boxes = [
        0.5f32, 0.5, 1.0, 1.0, 0.5, 0.6, 1.0, 1.0, 0.5, 0.4, 1.0, 1.0, 0.5, 10.5, 1.0, 1.0, 0.5,
        10.6, 1.0, 1.0, 0.5, 100.5, 1.0, 1.0,
    ];
    let inputs = [
        known(Tensor::from_slice(&[1, 6, 4], &boxes).unwrap()),
        known(Tensor::from_slice(&[1, 1, 6], &[0.9f32, 0.75, 0.6, 0.95, 0.5, 0.3]).unwrap()),
        int(3),
        floats(&[0.5]),
        floats(&[0.0]),
    ];
    let values = InferContext::new(&inputs, 1);
    let op = NonMaxSuppression {
        center_point_box: true,
    };
    let kept = non_max_suppression(&meter(), &op, &values).unwrap();
    assert_eq!(kept, [[0, 0, 3], [0, 0, 0], [0, 0, 5]]);
    let wrong = [unknown("float32 1,6,4"), unknown("float32 1,1,5")];
    assert_eq!(refuse(op.clone(), &wrong), ErrorCode::Shape);
    let later = [unknown("float32 n,6,4"), unknown("float32 n,1,6")];
    assert_eq!(infer(op, &later), "int64[?,3]");
}

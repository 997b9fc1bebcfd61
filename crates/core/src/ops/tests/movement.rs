use super::*;

fn reshape(x: &str, shape: &[i64]) -> String {
    let op = Reshape { allow_zero: false };
    infer(op, &[unknown(x), ints(shape)])
}

#[test]
fn reshapes() {
    assert_eq!(reshape("float32 2,3,4", &[4, -1]), "float32[4,6]");
    assert_eq!(reshape("float32 2,3,4", &[0, 0, -1]), "float32[2,3,4]");
    assert_eq!(reshape("float32 2,3,4", &[-1, 0, 8]), "float32[1,3,8]");
    assert_eq!(reshape("float32 n,3,4", &[0, -1]), "float32[n,12]");
    assert_eq!(reshape("float32 n,3,4", &[-1, 12]), "float32[n,12]");
    assert_eq!(reshape("float32 n,3,4", &[-1, 6]), "float32[?,6]");
    assert_eq!(reshape("float32 n,s,8", &[0, 0, 2, 4]), "float32[n,s,2,4]");
    assert_eq!(reshape("float32 n,s,8", &[0, -1, 2, 4]), "float32[n,s,2,4]");
    assert_eq!(reshape("float32 n,s,8", &[-1, 8]), "float32[?,8]");
    assert_eq!(reshape("float32 …", &[-1, 8, 0]), "float32[?,8,?]");
    assert_eq!(reshape("float32 0,3", &[3, -1]), "float32[3,0]");
    assert_eq!(reshape("float32 1,1", &[]), "float32[]");
    let zero = Reshape { allow_zero: true };
    let inputs = [unknown("int8 0,3,4"), ints(&[3, 4, 0])];
    assert_eq!(infer(zero, &inputs), "int8[3,4,0]");
    let later = [unknown("float32 2,3"), unknown("int64 4")];
    let op = Reshape { allow_zero: false };
    assert_eq!(infer(op.clone(), &later), "float32[?,?,?,?]");
    let inputs = [unknown("float32 6"), ints(&[2, -1])];
    let values = InferContext::new(&inputs, 1);
    assert_eq!(op.resolve(&[6], &values).unwrap(), [2, 3]);
}

#[test]
fn reshapes_by_shape_arithmetic() {
    let reshape = |x: &str, list: &str| {
        let inputs = [unknown(x), unknown("int64 4")];
        infer_from(Reshape { allow_zero: false }, &inputs, 1, list)
    };
    let heads = reshape("float32 n,s,384", "n,?,12,32");
    assert_eq!(heads, "float32[n,s,12,32]");
    assert_eq!(
        reshape("float32 n,?,384", "n,?,12,32"),
        "float32[n,?,12,32]"
    );
    assert_eq!(reshape("float32 n,s,4,8", "0,?,2,8"), "float32[n,?,2,8]");
    assert_eq!(reshape("float32 n,5,4,8", "m,?,2,8"), "float32[m,?,2,8]");
    assert_eq!(reshape("float32 n,5,4,8", "n,?,1,8"), "float32[n,20,1,8]");
    let expand = |x: &str, list: &str| {
        let inputs = [unknown(x), unknown("int64 3")];
        infer_from(Expand, &inputs, 1, list)
    };
    assert_eq!(expand("float32 1,1,4", "n,?,1"), "float32[n,?,4]");
    assert_eq!(expand("float32 n,3,1", "n,1,s"), "float32[n,3,s]");
}

#[test]
fn reshapes_that_do_not_fit() {
    let refused =
        |x: &str, shape: &[i64]| refuse(Reshape { allow_zero: false }, &[unknown(x), ints(shape)]);
    assert_eq!(refused("float32 2,3", &[4, -1]), ErrorCode::Shape);
    assert_eq!(refused("float32 2,3", &[7]), ErrorCode::Shape);
    assert_eq!(refused("float32 n,4", &[0, 5]), ErrorCode::Shape);
    assert_eq!(refused("float32 n,4", &[6]), ErrorCode::Shape);
    assert_eq!(refused("float32 6", &[1, 0]), ErrorCode::Shape);
    assert_eq!(refused("float32 6", &[-1, -1]), ErrorCode::InvalidValue);
    assert_eq!(refused("float32 6", &[-2, 3]), ErrorCode::InvalidValue);
    let huge = [isize::MAX as i64; 2];
    assert_eq!(refused("float32 6", &huge), ErrorCode::Shape);
}

#[test]
fn squeezes() {
    let x = || unknown("float32 1,n,1,4");
    assert_eq!(infer(Squeeze, &[x(), ints(&[0, -2])]), "float32[n,4]");
    let fixed = unknown("float32 1,3,1,4");
    assert_eq!(infer(Squeeze, &[fixed]), "float32[3,4]");
    assert_eq!(infer(Squeeze, &[x()]), "float32[…]");
    assert_eq!(infer(Squeeze, &[x(), unknown("int64 1")]), "float32[?,?,?]");
    assert_eq!(refuse(Squeeze, &[x(), ints(&[3])]), ErrorCode::Shape);
    let x = || unknown("float32 n,4");
    assert_eq!(infer(Unsqueeze, &[x(), ints(&[-1, 0])]), "float32[1,n,4,1]");
    assert_eq!(
        infer(Unsqueeze, &[x(), unknown("int64 1")]),
        "float32[?,?,?]"
    );
    assert_eq!(refuse(Unsqueeze, &[x(), ints(&[3])]), ErrorCode::Shape);
    let flat = |axis| infer(Flatten { axis }, &[unknown("float32 n,3,4")]);
    assert_eq!(flat(1), "float32[n,12]");
    assert_eq!(flat(0), "float32[1,?]");
    assert_eq!(flat(3), "float32[?,1]");
    assert_eq!(flat(-1), "float32[?,4]");
    let far = refuse(Flatten { axis: 4 }, &[unknown("float32 n,3,4")]);
    assert_eq!(far, ErrorCode::Shape);
}

#[test]
fn joins_and_splits() {
    let x = || unknown("float32 2,3,4");
    let turned = Transpose {
        perm: vec![2, 0, 1],
    };
    assert_eq!(infer(turned, &[x()]), "float32[4,2,3]");
    assert_eq!(infer(Transpose { perm: vec![] }, &[x()]), "float32[4,3,2]");
    let twice = Transpose {
        perm: vec![0, 0, 1],
    };
    assert_eq!(refuse(twice, &[x()]), ErrorCode::Shape);
    let concat = Concat { axis: -1 };
    let parts = [unknown("float32 n,3"), unknown("float32 ?,4")];
    assert_eq!(infer(concat.clone(), &parts), "float32[n,7]");
    let open = [unknown("float32 n,3"), unknown("float32 …")];
    assert_eq!(infer(concat.clone(), &open), "float32[n,?]");
    let differ = [unknown("float32 2,3"), unknown("float32 3,3")];
    assert_eq!(refuse(concat.clone(), &differ), ErrorCode::Shape);
    let types = [unknown("float32 2,3"), unknown("int64 2,3")];
    assert_eq!(refuse(concat, &types), ErrorCode::DType);
    let split = |inputs: &[_], n| infer_all(Split { axis: 0 }, n, inputs);
    let x = || unknown("float32 7,2");
    assert_eq!(
        split(&[x()], 4),
        "float32[2,2] float32[2,2] float32[2,2] float32[1,2]"
    );
    assert_eq!(split(&[x(), ints(&[5, 2])], 2), "float32[5,2] float32[2,2]");
    let later = unknown("int64 2");
    assert_eq!(split(&[x(), later], 2), "float32[?,2] float32[?,2]");
    let symbolic = [unknown("float32 n,2"), ints(&[5, 2])];
    assert_eq!(split(&symbolic, 2), "float32[5,2] float32[2,2]");
    let sum = try_infer(&Split { axis: 0 }, 2, &[x(), ints(&[5, 3])]);
    assert_eq!(sum.unwrap_err().code(), ErrorCode::Shape);
}

#[test]
fn slices() {
    let slice = |x: &str, s: &[i64], e: &[i64], a: &[i64], t: &[i64]| {
        infer(Slice, &[unknown(x), ints(s), ints(e), ints(a), ints(t)])
    };
    let x = "float32 20,10,5";
    // The node tests of Slice.
    assert_eq!(
        slice(x, &[0, 0], &[3, 10], &[0, 1], &[1, 1]),
        "float32[3,10,5]"
    );
    assert_eq!(slice(x, &[0], &[-1], &[1], &[1]), "float32[20,9,5]");
    assert_eq!(slice(x, &[1000], &[1000], &[1], &[1]), "float32[20,0,5]");
    assert_eq!(slice(x, &[1], &[1000], &[1], &[1]), "float32[20,9,5]");
    let back = slice(x, &[20, 10, 4], &[0, 0, 1], &[0, 1, 2], &[-1, -3, -2]);
    assert_eq!(back, "float32[19,3,2]");
    let all = slice(x, &[-1], &[i64::MIN], &[0], &[-1]);
    assert_eq!(all, "float32[20,10,5]");
    // Symbols stay where everything is taken.
    let n = "float32 n,m,5";
    assert_eq!(slice(n, &[0], &[i64::MAX], &[1], &[1]), "float32[n,m,5]");
    assert_eq!(slice(n, &[-1], &[i64::MIN], &[1], &[-1]), "float32[n,m,5]");
    assert_eq!(slice(n, &[1], &[i64::MAX], &[1], &[1]), "float32[n,?,5]");
    let later = [
        unknown(n),
        unknown("int64 1"),
        unknown("int64 1"),
        ints(&[1]),
    ];
    assert_eq!(infer(Slice, &later), "float32[n,?,5]");
    let no_step = [unknown(x), ints(&[0]), ints(&[1]), ints(&[0]), ints(&[0])];
    assert_eq!(refuse(Slice, &no_step), ErrorCode::InvalidValue);
    let twice = [unknown(x), ints(&[0, 0]), ints(&[1, 1]), ints(&[0, -3])];
    assert_eq!(refuse(Slice, &twice), ErrorCode::Shape);
    let inputs = [
        unknown(x),
        ints(&[-5]),
        ints(&[-100]),
        ints(&[1]),
        ints(&[-2]),
    ];
    let values = InferContext::new(&inputs, 1);
    let axis = Slice.resolve(&[20, 10, 5], &values).unwrap()[1];
    assert_eq!((axis.start, axis.step, axis.length), (5, -2, 3));
    assert_eq!(Slice.resolve(&[20, 0, 5], &values).unwrap()[1].length, 0);
}

#[test]
fn pads() {
    let pad = |mode| Pad { mode };
    let constant = || pad(PadMode::Constant);
    let x = || unknown("float32 n,3,4");
    let all = [x(), ints(&[0, 1, 2, 0, 0, -1])];
    assert_eq!(infer(constant(), &all), "float32[n,4,5]");
    let one = [x(), ints(&[1, 1]), None, ints(&[-1])];
    assert_eq!(infer(pad(PadMode::Reflect), &one), "float32[n,3,6]");
    let later = [x(), unknown("int64 2"), None, ints(&[1])];
    assert_eq!(infer(constant(), &later), "float32[n,?,4]");
    let crop = [x(), ints(&[0, 0, -3, 0, 0, -2])];
    assert_eq!(refuse(constant(), &crop), ErrorCode::Shape);
    let count = [x(), ints(&[0, 0])];
    assert_eq!(refuse(constant(), &count), ErrorCode::Shape);
    let value = [x(), ints(&[0; 6]), int(1)];
    assert_eq!(refuse(constant(), &value), ErrorCode::DType);
    let far = [x(), ints(&[0, i64::MAX, 0, 0, 1, 0])];
    assert_eq!(refuse(constant(), &far), ErrorCode::Shape);
}

#[test]
fn repeats() {
    let x = || unknown("float32 n,1,4");
    assert_eq!(infer(Tile, &[x(), ints(&[1, 3, 2])]), "float32[n,3,8]");
    assert_eq!(refuse(Tile, &[x(), ints(&[1, 3])]), ErrorCode::Shape);
    let huge = [x(), ints(&[1, 1, isize::MAX as i64])];
    assert_eq!(refuse(Tile, &huge), ErrorCode::Shape);
    assert_eq!(
        infer(Expand, &[x(), ints(&[2, 1, 5, 1])]),
        "float32[2,n,5,4]"
    );
    assert_eq!(infer(Expand, &[x(), unknown("int64 2")]), "float32[n,?,4]");
    assert_eq!(refuse(Expand, &[x(), ints(&[3])]), ErrorCode::Shape);
    assert_eq!(refuse(Expand, &[x(), ints(&[-1])]), ErrorCode::InvalidValue);
}

#[test]
fn blocks() {
    let to_space = |channels_last| DepthToSpace {
        block: 2,
        crd: true,
        channels_last,
    };
    let out = infer(to_space(false), &[unknown("float32 n,8,h,3")]);
    assert_eq!(out, "float32[n,2,?,6]");
    let out = infer(to_space(true), &[unknown("float32 n,2,3,8")]);
    assert_eq!(out, "float32[n,4,6,2]");
    let odd = refuse(to_space(false), &[unknown("float32 n,6,2,3")]);
    assert_eq!(odd, ErrorCode::Shape);
    let to_depth = SpaceToDepth {
        block: 2,
        channels_last: false,
    };
    let out = infer(to_depth, &[unknown("float32 1,1,4,6")]);
    assert_eq!(out, "float32[1,4,2,3]");
    let table = |v: &[i32]| known(Tensor::from_slice(&[v.len() / 2, 2], v).unwrap());
    let block = || known(Tensor::from_slice(&[2], &[2i32, 2]).unwrap());
    let inputs = [unknown("float32 1,4,5,3"), block(), table(&[0, 0, 0, 1])];
    assert_eq!(infer(SpaceToBatch, &inputs), "float32[4,2,3,3]");
    let inputs = [unknown("float32 4,2,3,3"), block(), table(&[0, 0, 0, 1])];
    assert_eq!(infer(BatchToSpace, &inputs), "float32[1,4,5,3]");
    let inputs = [unknown("float32 3,2,3,3"), block(), table(&[0, 0, 0, 1])];
    assert_eq!(refuse(BatchToSpace, &inputs), ErrorCode::Shape);
}

#[test]
fn centres() {
    let op = CenterCropPad {
        axes: Some(vec![-1, 0]),
    };
    let inputs = [unknown("float32 10,7,9"), ints(&[4, 13])];
    assert_eq!(infer(op.clone(), &inputs), "float32[13,7,4]");
    let values = InferContext::new(&inputs, 1);
    let axes = op.resolve(&[10, 7, 9], &values).unwrap();
    let part = |a: &CropPadAxis| (a.input_start, a.output_start, a.length, a.output);
    assert_eq!(part(&axes[0]), (0, 1, 10, 13));
    assert_eq!(part(&axes[1]), (0, 0, 7, 7));
    assert_eq!(part(&axes[2]), (2, 0, 4, 4));
}

use super::*;

fn reduce(keep_dims: bool, noop_with_empty_axes: bool) -> Reduce {
    Reduce {
        kind: ReduceKind::Sum,
        keep_dims,
        noop_with_empty_axes,
    }
}

#[test]
fn reductions() {
    let x = || unknown("float32 n,3,4");
    assert_eq!(
        infer(reduce(true, false), &[x(), ints(&[-1])]),
        "float32[n,3,1]"
    );
    assert_eq!(
        infer(reduce(false, false), &[x(), ints(&[2, 1])]),
        "float32[n]"
    );
    assert_eq!(infer(reduce(false, false), &[x()]), "float32[]");
    assert_eq!(infer(reduce(true, true), &[x()]), "float32[n,3,4]");
    assert_eq!(
        infer(reduce(true, false), &[x(), ints(&[])]),
        "float32[1,1,1]"
    );
    let later = || [x(), unknown("int64 2")];
    assert_eq!(infer(reduce(true, false), &later()), "float32[?,?,?]");
    assert_eq!(infer(reduce(false, false), &later()), "float32[?]");
    assert_eq!(
        refuse(reduce(true, false), &[x(), ints(&[3])]),
        ErrorCode::Shape
    );
    let arg = |axis, keep_dims| ArgReduce {
        max: true,
        axis,
        keep_dims,
        select_last: false,
        output: DType::I64,
    };
    assert_eq!(infer(arg(1, false), &[x()]), "int64[n,4]");
    assert_eq!(infer(arg(-1, true), &[x()]), "int64[n,3,1]");
    assert_eq!(refuse(arg(5, true), &[x()]), ErrorCode::Shape);
    let running = Cumulative {
        product: false,
        exclusive: false,
        reverse: false,
    };
    assert_eq!(infer(running.clone(), &[x(), int(-1)]), "float32[n,3,4]");
    assert_eq!(refuse(running, &[x(), int(3)]), ErrorCode::Shape);
    let softmax = |axis| Softmax {
        kind: SoftmaxKind::Softmax,
        axis,
        beta: 1.0,
    };
    assert_eq!(infer(softmax(-1), &[x()]), "float32[n,3,4]");
    assert_eq!(refuse(softmax(3), &[x()]), ErrorCode::Shape);
    assert_eq!(refuse(softmax(0), &[unknown("int32 3")]), ErrorCode::DType);
    let top = |axis| TopK {
        axis,
        largest: true,
        sorted: true,
    };
    let both = infer_all(top(1), 2, &[x(), ints(&[2])]);
    assert_eq!(both, "float32[n,2,4] int64[n,2,4]");
    let both = infer_all(top(0), 2, &[x(), unknown("int64 1")]);
    assert_eq!(both, "float32[?,3,4] int64[?,3,4]");
    assert_eq!(refuse(top(1), &[x(), ints(&[4])]), ErrorCode::Shape);
    assert_eq!(refuse(top(1), &[x(), ints(&[-1])]), ErrorCode::InvalidValue);
}

#[test]
fn normalisations() {
    let x = || unknown("float32 n,6,8,8");
    let c = || unknown("float32 6");
    let batch = BatchNorm {
        epsilon: 1e-5,
        channels_last: false,
    };
    assert_eq!(
        infer(batch.clone(), &[x(), c(), c(), c(), c()]),
        "float32[n,6,8,8]"
    );
    let short = [x(), c(), c(), c(), unknown("float32 5")];
    assert_eq!(refuse(batch, &short), ErrorCode::Shape);
    let layer = LayerNorm {
        axis: -2,
        epsilon: 1e-5,
    };
    let all = infer_all(layer.clone(), 3, &[x(), unknown("float32 8,8")]);
    assert_eq!(all, "float32[n,6,8,8] float32[n,6,1,1] float32[n,6,1,1]");
    let wrong = [x(), unknown("float32 6,8")];
    assert_eq!(refuse(layer, &wrong), ErrorCode::Shape);
    let group = |groups| GroupNorm {
        groups,
        epsilon: 1e-5,
    };
    assert_eq!(infer(group(3), &[x(), c(), c()]), "float32[n,6,8,8]");
    assert_eq!(refuse(group(4), &[x(), c(), c()]), ErrorCode::Shape);
    assert_eq!(refuse(group(0), &[x(), c(), c()]), ErrorCode::InvalidValue);
    let rms = RmsNorm {
        axis: -1,
        epsilon: 1e-5,
    };
    let inputs = [unknown("float16 n,8"), unknown("float32 8")];
    assert_eq!(infer(rms, &inputs), "float32[n,8]");
    let instance = InstanceNorm { epsilon: 1e-5 };
    assert_eq!(
        refuse(instance, &[x(), c(), unknown("float32 5")]),
        ErrorCode::Shape
    );
}

fn lstm(direction: Direction, batch_first: bool) -> Lstm {
    Lstm {
        cell: Recurrent {
            hidden: 5,
            direction,
            activations: vec![CellActivation::Sigmoid; 3 * direction.count()],
            clip: None,
            batch_first,
        },
        input_forget: false,
        cell_clip: None,
        rounds_state: false,
    }
}

#[test]
fn recurrent_layers() {
    let inputs = || {
        vec![
            unknown("float32 t,n,3"),
            unknown("float32 2,20,3"),
            unknown("float32 2,20,5"),
            unknown("float32 2,40"),
        ]
    };
    let op = lstm(Direction::Bidirectional, false);
    let all = infer_all(op.clone(), 3, &inputs());
    assert_eq!(all, "float32[t,2,n,5] float32[2,n,5] float32[2,n,5]");
    let op = lstm(Direction::Bidirectional, true);
    let all = infer_all(op.clone(), 2, &inputs());
    assert_eq!(all, "float32[t,n,2,5] float32[t,2,5]");
    let mut short = inputs();
    short[2] = unknown("float32 2,20,4");
    assert_eq!(refuse(op, &short), ErrorCode::Shape);
    let forward = lstm(Direction::Forward, false);
    assert_eq!(refuse(forward.clone(), &inputs()), ErrorCode::Shape);
    let g = RecurrentGeometry::new(&forward.cell, 4, &[7, 2, 3], &[1, 20, 3], &[1, 20, 5]);
    let g = g.unwrap();
    assert_eq!(
        (g.time, g.batch, g.input, g.hidden, g.directions),
        (7, 2, 3, 5, 1)
    );
    let shapes: [Option<&[usize]>; 3] = [Some(&[7, 2, 3]), Some(&[1, 20, 3]), Some(&[1, 20, 5])];
    let cost = forward.cost(&shapes, &[&[7, 1, 2, 5]]);
    assert_eq!(cost.flops, 2.0 * (7 * 2 * 20 * 8) as f64);
}

fn resize(policy: AspectPolicy, coordinates: CoordinateMode) -> Resize {
    Resize {
        mode: ResizeMode::Linear,
        coordinates,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: None,
        policy,
    }
}

#[test]
fn resizes() {
    let op = || resize(AspectPolicy::Stretch, CoordinateMode::HalfPixel);
    let x = || unknown("float32 n,1,2,4");
    let scales = [x(), None, floats(&[1.0, 1.0, 2.0, 0.6])];
    assert_eq!(infer(op(), &scales), "float32[n,1,4,2]");
    // 0.7 in single precision is less than 0.7, and yet 10 * 0.7 is 7.
    let scales = [unknown("float32 10"), None, floats(&[0.7])];
    assert_eq!(infer(op(), &scales), "float32[7]");
    let sizes = [x(), None, None, ints(&[1, 1, 7, 8])];
    assert_eq!(infer(op(), &sizes), "float32[1,1,7,8]");
    let empty = [x(), None, floats(&[]), ints(&[1, 1, 7, 8])];
    assert_eq!(infer(op(), &empty), "float32[1,1,7,8]");
    let later = [x(), None, unknown("float32 4")];
    assert_eq!(infer(op(), &later), "float32[?,?,?,?]");
    let some = Resize {
        axes: Some(vec![3, -2]),
        ..op()
    };
    let sizes = [x(), None, None, ints(&[8, 7])];
    assert_eq!(infer(some, &sizes), "float32[n,1,7,8]");
    assert_eq!(refuse(op(), &[x()]), ErrorCode::InvalidValue);
    let zero = [x(), None, floats(&[1.0, 1.0, 0.0, 1.0])];
    assert_eq!(refuse(op(), &zero), ErrorCode::InvalidValue);
    let huge = [x(), None, floats(&[1.0, 1.0, 3e38, 1.0])];
    let fixed = [unknown("float32 1,1,2,4"), None, huge[2].clone()];
    assert_eq!(refuse(op(), &fixed), ErrorCode::InvalidValue);
}

#[test]
fn resizes_that_keep_the_aspect_ratio() {
    // The node tests resize_upsample_sizes_nearest_not_larger and _not_smaller.
    let inputs = [unknown("float32 1,1,2,2"), None, None, ints(&[7, 8])];
    let op = |policy| Resize {
        axes: Some(vec![2, 3]),
        ..resize(policy, CoordinateMode::HalfPixel)
    };
    assert_eq!(
        infer(op(AspectPolicy::NotLarger), &inputs),
        "float32[1,1,7,7]"
    );
    assert_eq!(
        infer(op(AspectPolicy::NotSmaller), &inputs),
        "float32[1,1,8,8]"
    );
    let values = InferContext::new(&inputs, 1);
    let axes = op(AspectPolicy::NotLarger)
        .resolve(&[1, 1, 2, 2], &values)
        .unwrap();
    assert_eq!((axes[3].input, axes[3].output, axes[3].scale), (2, 7, 3.5));
    assert_eq!(axes[0].scale, 1.0);
}

#[test]
fn crops_while_resizing() {
    let op = resize(AspectPolicy::Stretch, CoordinateMode::TfCropAndResize);
    let inputs = [
        unknown("float32 4,10"),
        floats(&[0.0, 0.25, 1.0, 0.75]),
        floats(&[1.0, 2.0]),
    ];
    assert_eq!(infer(op.clone(), &inputs), "float32[4,10]");
    let values = InferContext::new(&inputs, 1);
    assert_eq!(op.resolve(&[4, 10], &values).unwrap()[1].roi, (0.25, 0.75));
}

#[test]
fn grids() {
    let sample = GridSample {
        mode: GridMode::Linear,
        padding: GridPadding::Zeros,
        align_corners: false,
    };
    let inputs = [unknown("float32 n,c,4,4"), unknown("float32 n,6,7,2")];
    assert_eq!(infer(sample.clone(), &inputs), "float32[n,c,6,7]");
    let flat = [unknown("float32 n,c,4,4"), unknown("float32 n,6,7,3")];
    assert_eq!(refuse(sample, &flat), ErrorCode::Shape);
    let grid = AffineGrid {
        align_corners: true,
    };
    let inputs = [unknown("float32 2,3,4"), ints(&[2, 3, 4, 5, 6])];
    assert_eq!(infer(grid.clone(), &inputs), "float32[2,4,5,6,3]");
    let theta = [unknown("float32 2,2,3"), ints(&[2, 3, 4, 5, 6])];
    assert_eq!(refuse(grid, &theta), ErrorCode::Shape);
}

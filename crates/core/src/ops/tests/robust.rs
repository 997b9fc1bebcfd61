//! Whatever a model says, inference answers with facts or an error: operators with odd attributes
//! meet random inputs. Debug builds panic on overflow, so that counts too.

use super::*;

/// A linear congruential generator; the same numbers at every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }

    fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.next(list.len())].clone()
    }
}

fn dim(random: &mut Random) -> Dim {
    match random.next(12) {
        0 => Dim::Unknown,
        1 => Dim::Symbol("n".into()),
        2 => Dim::Known(random.of(&[0, 1 << 31, 1 << 62, usize::MAX])),
        _ => Dim::Known(random.of(&[1, 1, 2, 3, 4, 6, 8])),
    }
}

fn integer(random: &mut Random) -> i64 {
    let odd = [i64::MIN, i64::MAX, 1 << 40, -(1 << 40), i64::MIN + 1];
    match random.next(6) {
        0 => random.of(&odd),
        _ => random.next(9) as i64 - 3,
    }
}

fn tensor(random: &mut Random) -> Tensor {
    let shape: &[usize] = random.of(&[&[], &[1], &[2], &[3], &[4], &[2, 2], &[0], &[1, 2, 4]]);
    let count = shape.iter().product();
    let ints: Vec<i64> = (0..count).map(|_| integer(random)).collect();
    match random.next(5) {
        4 if random.next(3) == 0 => {
            let texts: Vec<std::sync::Arc<str>> =
                ints.iter().map(|v| format!("a {v} ").into()).collect();
            Tensor::from_texts(shape, texts).unwrap()
        }
        0 => {
            let odd = [f32::NAN, f32::INFINITY, -1e38, 1e38, 0.0];
            let floats: Vec<f32> = ints
                .iter()
                .map(|&v| match random.next(4) {
                    0 => random.of(&odd),
                    _ => v as f32 / 2.0,
                })
                .collect();
            Tensor::from_slice(shape, &floats).unwrap()
        }
        1 => {
            let bools: Vec<bool> = ints.iter().map(|v| v % 2 == 0).collect();
            Tensor::from_bools(shape, &bools).unwrap()
        }
        _ => Tensor::from_slice(shape, &ints).unwrap(),
    }
}

fn input(random: &mut Random) -> Option<InputFact> {
    let rank = random.of(&[0, 1, 2, 3, 3, 4, 4, 5]);
    match random.next(10) {
        0 => None,
        1..=4 => known(tensor(random)),
        5 => Some(InputFact::default()),
        _ => Some(InputFact {
            fact: Fact {
                dtype: Some(random.of(&[
                    DType::F32,
                    DType::F32,
                    DType::I64,
                    DType::U8,
                    DType::Bool,
                    DType::I4,
                    DType::String,
                ])),
                shape: Some(Shape((0..rank).map(|_| dim(random)).collect())),
                ..Fact::default()
            },
            value: None,
        }),
    }
}

/// Attributes of one operator.
fn list(random: &mut Random) -> Vec<usize> {
    let count = random.of(&[0, 1, 2, 2, 4]);
    let odd = [0, 1, 1, 2, 3, usize::MAX, 1 << 62];
    (0..count).map(|_| random.of(&odd)).collect()
}

fn padding(random: &mut Random) -> Padding {
    match random.next(5) {
        0 => Padding::SameUpper,
        1 => Padding::SameLower,
        2 => Padding::Valid,
        _ => Padding::Explicit(list(random)),
    }
}

fn conv(random: &mut Random) -> Conv {
    Conv {
        strides: list(random),
        dilations: list(random),
        padding: padding(random),
        groups: random.of(&[0, 1, 1, 2, usize::MAX]),
        channels_last: random.next(2) == 0,
        activation: Activation::None,
    }
}

fn window(random: &mut Random) -> Window {
    Window {
        kernel: list(random),
        strides: list(random),
        dilations: list(random),
        padding: padding(random),
        ceil_mode: random.next(2) == 0,
    }
}

/// One of all operators that have rules of their own.
fn operator(random: &mut Random, which: usize) -> Option<Box<dyn Operator>> {
    let axis = integer(random);
    let flag = random.next(2) == 0;
    let block = random.of(&[0, 1, 2, usize::MAX]);
    let axes = [None, Some(vec![axis]), Some(vec![0, axis])];
    let cell = Recurrent {
        hidden: random.of(&[0, 1, 2, usize::MAX]),
        direction: random.of(&[Direction::Forward, Direction::Bidirectional]),
        activations: vec![CellActivation::Tanh; random.of(&[1, 2, 3, 6])],
        clip: None,
        batch_first: flag,
    };
    let op: Box<dyn Operator> = match which {
        0 => Box::new(conv(random)),
        1 => Box::new(ConvTranspose {
            strides: list(random),
            dilations: list(random),
            padding: padding(random),
            output_padding: list(random),
            output_shape: random.of(&[None, Some(vec![0]), Some(vec![3, usize::MAX])]),
            groups: random.of(&[0, 1, 2, usize::MAX]),
            channels_last: flag,
            activation: Activation::None,
        }),
        2 => Box::new(MaxPool {
            window: window(random),
            column_major: flag,
            channels_last: flag,
        }),
        3 => Box::new(MaxUnpool {
            window: window(random),
        }),
        4 => Box::new(Col2Im {
            strides: list(random),
            dilations: list(random),
            pads: list(random),
        }),
        5 => Box::new(DeformConv {
            strides: list(random),
            dilations: list(random),
            pads: list(random),
            groups: block,
            offset_groups: block,
        }),
        6 => Box::new(Reshape { allow_zero: flag }),
        7 => Box::new(Squeeze),
        8 => Box::new(Unsqueeze),
        9 => Box::new(Flatten { axis }),
        10 => Box::new(Transpose { perm: list(random) }),
        11 => Box::new(Concat { axis }),
        12 => Box::new(Split { axis }),
        13 => Box::new(Slice),
        14 => Box::new(Pad {
            mode: random.of(&[PadMode::Constant, PadMode::Reflect]),
        }),
        15 => Box::new(Tile),
        16 => Box::new(Expand),
        17 => Box::new(DepthToSpace {
            block,
            crd: flag,
            channels_last: flag,
        }),
        18 => Box::new(SpaceToDepth {
            block,
            channels_last: flag,
        }),
        19 => Box::new(SpaceToBatch),
        20 => Box::new(BatchToSpace),
        21 => Box::new(Trilu { upper: flag }),
        22 => Box::new(ReverseSequence {
            batch_axis: block,
            time_axis: random.next(3),
        }),
        23 => Box::new(CenterCropPad {
            axes: random.of(&axes),
        }),
        24 => Box::new(Reduce {
            kind: ReduceKind::Max,
            keep_dims: flag,
            noop_with_empty_axes: random.next(2) == 0,
        }),
        25 => Box::new(Cumulative {
            product: flag,
            exclusive: flag,
            reverse: flag,
        }),
        26 => Box::new(TopK {
            axis,
            largest: flag,
            sorted: flag,
        }),
        27 => Box::new(MatMul {
            transpose_b: flag,
            ..MatMul::default()
        }),
        28 => Box::new(Einsum {
            equation: random
                .of(&[
                    "ij,jk->ik",
                    "...i->...",
                    "ii",
                    "a...b->b...a",
                    "i...,...i",
                    "->",
                    "....",
                    "é",
                ])
                .into(),
        }),
        29 => Box::new(Resize {
            mode: ResizeMode::Linear,
            coordinates: random.of(&[CoordinateMode::HalfPixel, CoordinateMode::TfCropAndResize]),
            antialias: flag,
            exclude_outside: flag,
            extrapolation: 0.0,
            axes: random.of(&axes),
            policy: random.of(&[
                AspectPolicy::Stretch,
                AspectPolicy::NotLarger,
                AspectPolicy::NotSmaller,
            ]),
        }),
        30 => Box::new(GridSample {
            mode: GridMode::Linear,
            padding: GridPadding::Zeros,
            align_corners: flag,
        }),
        31 => Box::new(AffineGrid {
            align_corners: flag,
        }),
        32 => Box::new(Gather { axis }),
        33 => Box::new(GatherElements { axis }),
        34 => Box::new(GatherNd { batch_dims: block }),
        35 => Box::new(ScatterElements {
            axis,
            reduction: ScatterReduction::None,
        }),
        36 => Box::new(ScatterNd {
            reduction: ScatterReduction::None,
        }),
        37 => Box::new(TensorScatter {
            axis,
            circular: flag,
        }),
        38 => Box::new(OneHot { axis }),
        39 => Box::new(NonZero),
        40 => Box::new(Compress {
            axis: random.of(&[None, Some(axis)]),
        }),
        41 => Box::new(Unique {
            axis: random.of(&[None, Some(axis)]),
            sorted: flag,
        }),
        42 => Box::new(NonMaxSuppression {
            center_point_box: flag,
        }),
        43 => Box::new(ShapeOf {
            start: axis,
            end: random.of(&[None, Some(-1), Some(i64::MIN)]),
        }),
        44 => Box::new(Range),
        45 => Box::new(ConstantOfShape {
            value: tensor(random),
        }),
        46 => Box::new(LayerNorm {
            axis,
            epsilon: 1e-5,
        }),
        47 => Box::new(GroupNorm {
            groups: block,
            epsilon: 1e-5,
        }),
        48 => Box::new(QuantizeLinear {
            axis,
            block,
            output: None,
        }),
        49 => Box::new(DequantizeLinear { axis, block }),
        50 => Box::new(QLinearConv { conv: conv(random) }),
        51 => Box::new(QLinearMatMul::default()),
        52 => Box::new(Lstm {
            cell,
            input_forget: flag,
            cell_clip: None,
            rounds_state: false,
        }),
        53 => Box::new(Gru {
            cell,
            linear_before_reset: flag,
        }),
        54 => Box::new(Gemm {
            alpha: 1.0,
            beta: 1.0,
            transpose_a: flag,
            transpose_b: flag,
            activation: Activation::None,
        }),
        55 => Box::new(Where),
        56 => Box::new(Binary::new(BinaryKind::PRelu)),
        57 => Box::new(Loop {
            body: std::sync::Arc::new(Graph::default()),
            carried: block,
        }),
        58 => Box::new(Scan {
            body: std::sync::Arc::new(Graph::default()),
            states: block,
            scan_inputs: random.of(&[0, 1, usize::MAX]),
            input_axes: vec![axis],
            input_reverse: vec![],
            output_axes: vec![axis],
            output_reverse: vec![],
        }),
        59 => Box::new(EyeLike { dtype: None, k: 0 }),
        60 => Box::new(BatchNorm {
            epsilon: 1e-5,
            channels_last: flag,
        }),
        61 => Box::new(Det),
        62 => Box::new(StringConcat),
        63 => Box::new(StringSplit {
            delimiter: random.of(&["", " ", "a"]).to_string(),
            most: random.of(&[None, Some(0), Some(1), Some(usize::MAX)]),
        }),
        64 => Box::new(StringNormalizer {
            case: CaseChange::Upper,
            case_sensitive: flag,
            stopwords: vec!["a 1 ".to_string()],
        }),
        65 => Box::new(BitCast {
            to: random.of(&[DType::I32, DType::U4, DType::String]),
        }),
        _ => return None,
    };
    Some(op)
}

#[test]
fn nothing_panics() {
    let random = &mut Random(7);
    let (mut which, mut answered) = (0, 0);
    while operator(random, which).is_some() {
        for _ in 0..3000 {
            let Some(op) = operator(random, which) else {
                break;
            };
            let inputs: Vec<_> = (0..random.next(6)).map(|_| input(random)).collect();
            let outputs = random.next(4);
            let shapes: Vec<Option<Vec<usize>>> = inputs
                .iter()
                .map(|i| i.as_ref().and_then(|i| i.fact.concrete()))
                .collect();
            let _ = op.cost(
                &shapes,
                &shapes.iter().flatten().cloned().collect::<Vec<_>>(),
            );
            let elements: Vec<_> = inputs
                .iter()
                .map(|_| Some((0..random.next(4)).map(|_| dim(random)).collect()))
                .collect();
            let ctx = InferContext {
                inputs: &inputs,
                outputs,
            };
            let _ = op.infer_with_elements(&ctx, &elements);
            if let Ok(facts) = op.infer(&ctx) {
                answered += 1;
                let complete = inputs
                    .iter()
                    .flatten()
                    .all(|i| i.fact.concrete().is_some() && i.fact.dtype.is_some())
                    && ctx.known(op.value_inputs());
                let control = matches!(op.name(), "Loop" | "Scan");
                for fact in facts.iter().filter(|_| complete && !control) {
                    assert!(
                        fact.concrete().is_some(),
                        "{op:?} of {inputs:?} gave {fact}"
                    );
                }
            }
        }
        which += 1;
    }
    assert!(
        which > 60 && answered > 10_000,
        "{answered} of {which} operators"
    );
}

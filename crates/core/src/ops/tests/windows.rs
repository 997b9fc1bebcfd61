use super::*;

fn conv() -> Conv {
    Conv {
        strides: vec![],
        dilations: vec![],
        padding: Padding::Explicit(vec![]),
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    }
}

fn transpose() -> ConvTranspose {
    ConvTranspose {
        strides: vec![],
        dilations: vec![],
        padding: Padding::Explicit(vec![]),
        output_padding: vec![],
        output_shape: None,
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    }
}

fn window(kernel: &[usize]) -> Window {
    Window {
        kernel: kernel.to_vec(),
        strides: vec![],
        dilations: vec![],
        padding: Padding::Explicit(vec![]),
        ceil_mode: false,
    }
}

fn max_pool(window: Window) -> MaxPool {
    MaxPool {
        window,
        column_major: false,
        channels_last: false,
    }
}

#[test]
fn convolutions() {
    let data = || unknown("float32 n,3,224,224");
    let w = || unknown("float32 64,3,7,7");
    let op = Conv {
        strides: vec![2, 2],
        padding: Padding::Explicit(vec![3, 3, 3, 3]),
        ..conv()
    };
    assert_eq!(infer(op, &[data(), w()]), "float32[n,64,112,112]");
    let op = Conv {
        dilations: vec![2, 3],
        ..conv()
    };
    assert_eq!(infer(op, &[data(), w()]), "float32[n,64,212,206]");
    // With asymmetric padding: begin of each axis, then end.
    let op = Conv {
        padding: Padding::Explicit(vec![0, 1, 0, 2]),
        ..conv()
    };
    assert_eq!(infer(op, &[data(), w()]), "float32[n,64,218,221]");
    let op = Conv {
        channels_last: true,
        groups: 8,
        ..conv()
    };
    let inputs = [
        unknown("float32 1,9,9,8"),
        unknown("float32 16,1,3,3"),
        unknown("float32 16"),
    ];
    assert_eq!(infer(op, &inputs), "float32[1,7,7,16]");
    let inputs = [unknown("float16 1,4,10"), unknown("float16 2,4,3")];
    assert_eq!(infer(conv(), &inputs), "float16[1,2,8]");
}

#[test]
fn convolutions_keep_what_they_can_of_symbols() {
    let inputs = [unknown("float32 1,3,h,w"), unknown("float32 8,3,3,3")];
    let same = |strides: Vec<usize>| Conv {
        strides,
        padding: Padding::SameUpper,
        ..conv()
    };
    assert_eq!(infer(same(vec![]), &inputs), "float32[1,8,h,w]");
    assert_eq!(infer(same(vec![1, 2]), &inputs), "float32[1,8,h,?]");
    let padded = Conv {
        padding: Padding::Explicit(vec![1, 0, 1, 1]),
        ..conv()
    };
    assert_eq!(infer(padded, &inputs), "float32[1,8,h,?]");
    let inputs = [unknown("float32 1,3,9,9"), unknown("float32 ?,3,?,?")];
    assert_eq!(infer(conv(), &inputs), "float32[1,?,?,?]");
    assert_eq!(infer(same(vec![2, 2]), &inputs), "float32[1,?,5,5]");
    let inputs = [unknown("float32 …"), unknown("float32 8,3,3,3")];
    assert_eq!(infer(conv(), &inputs), "float32[…]");
}

#[test]
fn same_padding_puts_the_odd_element_where_it_says() {
    let geometry = |padding| {
        let op = Conv {
            strides: vec![2],
            padding,
            ..conv()
        };
        ConvGeometry::new(&op, &[1, 1, 6], &[1, 1, 3]).unwrap().axes[0]
    };
    let upper = geometry(Padding::SameUpper);
    assert_eq!((upper.begin, upper.end, upper.output), (0, 1, 3));
    let lower = geometry(Padding::SameLower);
    assert_eq!((lower.begin, lower.end, lower.output), (1, 0, 3));
    let valid = geometry(Padding::Valid);
    assert_eq!((valid.begin, valid.end, valid.output), (0, 0, 2));
}

#[test]
fn taps_are_those_inside_the_input() {
    let op = Conv {
        dilations: vec![2],
        padding: Padding::Explicit(vec![3, 2]),
        ..conv()
    };
    let axis = ConvGeometry::new(&op, &[1, 1, 4], &[1, 1, 3]).unwrap().axes[0];
    assert_eq!((axis.extent(), axis.output), (5, 5));
    for o in 0..axis.output {
        let inside = |k: &usize| {
            let at = o as isize - 3 + 2 * *k as isize;
            (0..4).contains(&at)
        };
        let expected: Vec<usize> = (0..3).filter(inside).collect();
        assert_eq!(axis.taps(o).collect::<Vec<_>>(), expected, "window {o}");
    }
}

#[test]
fn convolutions_refuse_what_does_not_fit() {
    let x = || unknown("float32 1,3,8,8");
    let cases = [
        (conv(), unknown("float32 4,2,3,3"), ErrorCode::Shape),
        (conv(), unknown("float32 4,3,3"), ErrorCode::Shape),
        (conv(), unknown("float32 4,3,9,3"), ErrorCode::Shape),
        (conv(), unknown("float16 4,3,3,3"), ErrorCode::DType),
        (conv(), unknown("float32 4,3,0,3"), ErrorCode::InvalidValue),
        (
            Conv {
                strides: vec![0, 1],
                ..conv()
            },
            unknown("float32 4,3,3,3"),
            ErrorCode::InvalidValue,
        ),
        (
            Conv {
                groups: 0,
                ..conv()
            },
            unknown("float32 4,3,3,3"),
            ErrorCode::InvalidValue,
        ),
        (
            Conv {
                dilations: vec![usize::MAX, 1],
                ..conv()
            },
            unknown("float32 4,3,3,3"),
            ErrorCode::InvalidValue,
        ),
        (
            Conv {
                padding: Padding::Explicit(vec![usize::MAX, 0, 1, 0]),
                ..conv()
            },
            unknown("float32 4,3,3,3"),
            ErrorCode::Shape,
        ),
    ];
    for (op, w, code) in cases {
        assert_eq!(refuse(op.clone(), &[x(), w]), code, "{op:?}");
    }
    let integers = [unknown("int32 1,3,8,8"), unknown("int32 4,3,3,3")];
    assert_eq!(refuse(conv(), &integers), ErrorCode::DType);
    let bias = [x(), unknown("float32 4,3,3,3"), unknown("float32 3")];
    assert_eq!(refuse(conv(), &bias), ErrorCode::Shape);
}

#[test]
fn transposed_convolutions() {
    // The node tests convtranspose, _autopad_same, _dilations, _kernel_shape and _pads.
    let shape = |op: ConvTranspose, x: &str, w: &str| infer(op, &[unknown(x), unknown(w)]);
    let plain = shape(transpose(), "float32 1,1,3,3", "float32 1,2,3,3");
    assert_eq!(plain, "float32[1,2,5,5]");
    let same = ConvTranspose {
        strides: vec![2, 2],
        padding: Padding::SameUpper,
        ..transpose()
    };
    let same = shape(same, "float32 1,1,3,3", "float32 1,2,3,3");
    assert_eq!(same, "float32[1,2,6,6]");
    let dilated = ConvTranspose {
        dilations: vec![2, 2],
        ..transpose()
    };
    let dilated = shape(dilated, "float32 1,1,3,3", "float32 1,1,2,2");
    assert_eq!(dilated, "float32[1,1,5,5]");
    let extra = ConvTranspose {
        strides: vec![3, 2],
        output_padding: vec![1, 1],
        ..transpose()
    };
    let extra = shape(extra, "float32 1,1,3,3", "float32 1,2,3,3");
    assert_eq!(extra, "float32[1,2,10,8]");
    let pads = ConvTranspose {
        strides: vec![3, 2],
        padding: Padding::Explicit(vec![1, 2, 1, 2]),
        ..transpose()
    };
    let pads = shape(pads, "float32 1,1,3,3", "float32 1,2,3,3");
    assert_eq!(pads, "float32[1,2,7,3]");
    let asked = ConvTranspose {
        strides: vec![3, 2],
        output_shape: Some(vec![8, 7]),
        groups: 2,
        ..transpose()
    };
    let g = ConvGeometry::transposed(&asked, &[1, 2, 3, 3], &[2, 4, 3, 3]).unwrap();
    assert_eq!(g.output_shape(), [1, 8, 8, 7]);
    assert_eq!((g.axes[0].begin, g.axes[0].end), (1, 0));
    assert_eq!((g.axes[1].begin, g.axes[1].end), (0, 0));
}

#[test]
fn pools() {
    let pool = |window: Window, x: &str| infer(max_pool(window), &[unknown(x)]);
    assert_eq!(
        pool(window(&[2, 2]), "float32 n,3,32,32"),
        "float32[n,3,31,31]"
    );
    // maxpool_2d_ceil.
    let ceil = Window {
        strides: vec![2, 2],
        ceil_mode: true,
        ..window(&[3, 3])
    };
    assert_eq!(pool(ceil, "float32 1,1,4,4"), "float32[1,1,2,2]");
    // maxpool_2d_ceil_output_size_reduce_by_one: the last window would begin behind the input.
    let reduced = Window {
        strides: vec![2, 2],
        ceil_mode: true,
        ..window(&[1, 1])
    };
    assert_eq!(pool(reduced, "float32 1,1,2,2"), "float32[1,1,1,1]");
    let same = Window {
        strides: vec![2, 2],
        padding: Padding::SameLower,
        ..window(&[3, 3])
    };
    assert_eq!(pool(same, "uint8 1,1,5,5"), "uint8[1,1,3,3]");
    assert_eq!(pool(window(&[2, 2]), "float32 …"), "float32[?,?,?,?]");
    let both = infer_all(max_pool(window(&[2])), 2, &[unknown("float32 1,2,4")]);
    assert_eq!(both, "float32[1,2,3] int64[1,2,3]");
    let wrong = refuse(max_pool(window(&[2, 2])), &[unknown("float32 1,2,4")]);
    assert_eq!(wrong, ErrorCode::Shape);
    let small = refuse(max_pool(window(&[5])), &[unknown("float32 1,2,4")]);
    assert_eq!(small, ErrorCode::Shape);
}

#[test]
fn padded_taps_leave_out_what_ceil_mode_adds() {
    let w = Window {
        strides: vec![2],
        padding: Padding::Explicit(vec![1, 1]),
        ceil_mode: true,
        ..window(&[3])
    };
    let axis = PoolGeometry::new(&w, false, &[1, 1, 4]).unwrap().axes[0];
    assert_eq!(axis.output, 3);
    let padded: Vec<usize> = (0..3).map(|o| axis.padded_taps(o)).collect();
    assert_eq!(padded, [3, 3, 2]);
    let inside: Vec<_> = (0..3).map(|o| axis.taps(o)).collect();
    assert_eq!(inside, [1..3, 0..3, 0..1]);
}

#[test]
fn unpooling_and_regions() {
    let op = || MaxUnpool {
        window: Window {
            strides: vec![2, 2],
            ..window(&[2, 2])
        },
    };
    let x = || unknown("float32 1,1,2,2");
    let i = || unknown("int64 1,1,2,2");
    assert_eq!(infer(op(), &[x(), i()]), "float32[1,1,4,4]");
    let asked = [x(), i(), ints(&[1, 1, 5, 5])];
    assert_eq!(infer(op(), &asked), "float32[1,1,5,5]");
    let later = [x(), i(), unknown("int64 4")];
    assert_eq!(infer(op(), &later), "float32[?,?,?,?]");
    let align = RoiAlign {
        output: [5, 6],
        sampling_ratio: 2,
        spatial_scale: 1.0,
        max: false,
        half_pixel: true,
    };
    let inputs = [
        unknown("float32 1,c,10,10"),
        unknown("float32 n,4"),
        unknown("int64 n"),
    ];
    assert_eq!(infer(align, &inputs), "float32[n,c,5,6]");
}

#[test]
fn columns_to_images() {
    // The node test col2im_pads.
    let op = Col2Im {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: vec![0, 1, 0, 1],
    };
    let inputs = [unknown("float32 1,5,15"), ints(&[5, 5]), ints(&[1, 5])];
    assert_eq!(infer(op.clone(), &inputs), "float32[1,1,5,5]");
    let blocks = [unknown("float32 1,5,14"), ints(&[5, 5]), ints(&[1, 5])];
    assert_eq!(refuse(op, &blocks), ErrorCode::Shape);
}

#[test]
fn deformable_convolutions() {
    let op = || DeformConv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        pads: vec![0, 0, 0, 0],
        groups: 1,
        offset_groups: 1,
    };
    let mut inputs = [
        unknown("float32 1,1,3,3"),
        unknown("float32 1,1,2,2"),
        unknown("float32 1,8,2,2"),
    ];
    assert_eq!(infer(op(), &inputs), "float32[1,1,2,2]");
    inputs[2] = unknown("float32 1,4,2,2");
    assert_eq!(refuse(op(), &inputs), ErrorCode::Shape);
}

#[test]
fn work_is_counted() {
    let shapes: [Option<&[usize]>; 2] = [Some(&[1, 8, 10, 10]), Some(&[16, 4, 3, 3])];
    let op = Conv {
        groups: 2,
        ..conv()
    };
    let cost = Operator::cost(&op, &shapes, &[&[1, 16, 8, 8]]);
    assert_eq!(cost.flops, 2.0 * (16 * 8 * 8 * 4 * 9) as f64);
}

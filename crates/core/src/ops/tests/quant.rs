use super::*;

#[test]
fn scales() {
    let x = || unknown("float32 n,4,8");
    let op = |axis, block, output| QuantizeLinear {
        axis,
        block,
        output,
    };
    let one = [x(), unknown("float32")];
    assert_eq!(infer(op(1, 0, None), &one), "uint8[n,4,8]");
    assert_eq!(infer(op(1, 0, Some(DType::I16)), &one), "int16[n,4,8]");
    let axis = [x(), unknown("float32 4"), unknown("int8 4")];
    assert_eq!(infer(op(1, 0, None), &axis), "int8[n,4,8]");
    assert_eq!(refuse(op(2, 0, None), &axis), ErrorCode::Shape);
    let blocks = [x(), unknown("float32 n,4,3"), unknown("int8 n,4,3")];
    assert_eq!(infer(op(2, 3, None), &blocks), "int8[n,4,8]");
    assert_eq!(refuse(op(2, 4, None), &blocks), ErrorCode::Shape);
    let back = DequantizeLinear { axis: 1, block: 0 };
    let inputs = [unknown("int8 n,4"), unknown("float16 4"), unknown("int8 4")];
    assert_eq!(infer(back.clone(), &inputs), "float16[n,4]");
    let inputs = [
        unknown("int8 n,4"),
        unknown("float16 4"),
        unknown("uint8 4"),
    ];
    assert_eq!(refuse(back, &inputs), ErrorCode::DType);
    let all = infer_all(DynamicQuantizeLinear, 3, &[unknown("float32 n")]);
    assert_eq!(all, "uint8[n] float32[] uint8[]");
}

#[test]
fn granularity() {
    let tensor = Granularity::new(&[2, 4], &[], 1, 0).unwrap();
    assert_eq!(tensor.index(7), 0);
    let axis = Granularity::new(&[2, 4, 3], &[4], -2, 0).unwrap();
    let expected: Vec<usize> = (0..24).map(|i| i / 3 % 4).collect();
    assert_eq!((0..24).map(|i| axis.index(i)).collect::<Vec<_>>(), expected);
    // Five elements in blocks of two: the last block has one.
    let block = Granularity::new(&[2, 5, 3], &[2, 3, 3], 1, 2).unwrap();
    for (o, a, i) in (0..30).map(|f| (f / 15, f / 3 % 5, f % 3)) {
        assert_eq!(block.index((o * 5 + a) * 3 + i), (o * 3 + a / 2) * 3 + i);
    }
    assert!(Granularity::new(&[2, 4], &[3], 1, 0).is_err());
}

#[test]
fn integer_products() {
    let inputs = [unknown("uint8 n,3"), unknown("int8 3,5")];
    assert_eq!(infer(MatMulInteger::default(), &inputs), "int32[n,5]");
    let float = [unknown("float32 n,3"), unknown("int8 3,5")];
    assert_eq!(refuse(MatMulInteger::default(), &float), ErrorCode::DType);
    let real = |a_scale: &str, b_scale: &str, bias: &str| {
        let data = [unknown("uint8 2,n,3"), unknown("int8 3,5")];
        let scales = [unknown(a_scale), unknown(b_scale)];
        let zeros = [unknown("uint8"), unknown("int8 5")];
        [&data[..], &scales, &zeros, &[unknown(bias)]].concat()
    };
    for b_scale in ["float32", "float32 1", "float32 5", "float32 k"] {
        let inputs = real("float32", b_scale, "float32 5");
        assert_eq!(infer(MatMulIntegerToFloat, &inputs), "float32[2,n,5]");
    }
    for (a_scale, b_scale, bias, code) in [
        ("float16", "float32", "float32 5", ErrorCode::DType),
        ("float32", "float16", "float32 5", ErrorCode::DType),
        ("float32", "float32", "int32 5", ErrorCode::DType),
        ("float32 3", "float32", "float32 5", ErrorCode::Shape),
        ("float32", "float32 3", "float32 5", ErrorCode::Shape),
        ("float32", "float32 1,5", "float32 5", ErrorCode::Shape),
        ("float32", "float32", "float32 3", ErrorCode::Shape),
        ("float32", "float32", "float32 1,5", ErrorCode::Shape),
    ] {
        let inputs = real(a_scale, b_scale, bias);
        assert_eq!(refuse(MatMulIntegerToFloat, &inputs), code, "{inputs:?}");
    }
    let mut inputs = real("float32", "float32", "float32 5");
    inputs[4] = unknown("int8");
    assert_eq!(refuse(MatMulIntegerToFloat, &inputs), ErrorCode::DType);
    let q = |data: &str, zero: &str| [unknown(data), unknown("float32"), unknown(zero)];
    let output = [unknown("float32"), unknown("int8")];
    let inputs = [
        &q("uint8 2,n,4", "uint8")[..],
        &q("int8 4,3", "int8"),
        &output,
    ];
    assert_eq!(
        infer(QLinearMatMul::default(), &inputs.concat()),
        "int8[2,n,3]"
    );
    let conv = || Conv {
        strides: vec![2, 2],
        dilations: vec![],
        padding: Padding::SameUpper,
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    };
    let inputs = [
        &q("uint8 1,1,7,7", "uint8")[..],
        &q("uint8 4,1,3,3", "uint8"),
        &output,
    ];
    let op = QLinearConv { conv: conv() };
    assert_eq!(infer(op.clone(), &inputs.concat()), "int8[1,4,4,4]");
    let bias = [&inputs.concat()[..], &[unknown("int32 3")]].concat();
    assert_eq!(refuse(op, &bias), ErrorCode::Shape);
    let inputs = [unknown("uint8 1,1,7,7"), unknown("uint8 4,1,3,3")];
    assert_eq!(
        infer(
            ConvInteger {
                conv: conv(),
                requantize: None
            },
            &inputs
        ),
        "int32[1,4,4,4]"
    );
}

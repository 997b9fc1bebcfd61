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

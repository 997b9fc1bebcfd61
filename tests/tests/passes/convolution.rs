//! Convolutions that files spell out in several nodes.

use super::*;

#[test]
fn a_dilated_convolution_in_three_parts() {
    let mut b = Builder::new(8);
    let x = b.input("x", &[1, 9, 7, 2]);
    let block = b.ints(&[2, 2]);
    let pads = b.constant(Tensor::from_slice(&[2, 2], &[2i64, 3, 2, 3]).unwrap());
    let y = b.op(SpaceToBatch, &[x, block, pads]);
    let w = b.floats(&[3, 2, 3, 3]);
    let bias = b.floats(&[3]);
    let conv = Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::Valid,
        groups: 1,
        channels_last: true,
        activation: Activation::Relu,
    };
    let y = b.op(conv, &[y, w, bias]);
    let crops = b.constant(Tensor::from_slice(&[2, 2], &[0i64, 1, 0, 1]).unwrap());
    let y = b.op(BatchToSpace, &[y, block, crops]);
    let g = b.check(&[y], 8);
    assert_eq!(names(&g), ["Conv"]);
}

#[test]
fn a_padded_convolution_on_a_sequence() {
    let mut b = Builder::new(9);
    let x = b.input("x", &[1, 12, 2]);
    let pads = b.ints(&[0, 2, 0, 0, 1, 0]);
    let mode = PadMode::Constant;
    let y = b.op(Pad { mode }, &[x, pads]);
    let axes = b.ints(&[1]);
    let y = b.op(Unsqueeze, &[y, axes]);
    let y = b.transpose(y, &[0, 3, 1, 2]);
    let w = b.floats(&[3, 2, 1, 4]);
    let bias = b.floats(&[3]);
    let conv = Conv {
        strides: vec![1, 2],
        dilations: vec![1, 1],
        padding: Padding::Valid,
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    };
    let y = b.op(conv, &[y, w, bias]);
    let axes = b.ints(&[2]);
    let y = b.op(Squeeze, &[y, axes]);
    let y = b.transpose(y, &[0, 2, 1]);
    let g = b.check(&[y], 9);
    assert_eq!(names(&g), ["Reshape", "Conv", "Reshape"]);
}

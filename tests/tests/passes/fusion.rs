//! What becomes one node: normalisations, residuals, activations, scales, casts of indices.

use super::*;

#[test]
fn a_residual_block_becomes_its_convolutions() {
    let mut b = Builder::new(1);
    let x = b.input("x", &[2, 4, 6, 5]);
    let mut y = b.conv(x, 4, 4, 1);
    let scale = b.floats(&[4]);
    let bias = b.floats(&[4]);
    let mean = b.floats(&[4]);
    let variance = b.constant(Tensor::from_slice(&[4], &[0.5f32, 1.0, 2.0, 0.1]).unwrap());
    let norm = BatchNorm {
        epsilon: 1e-5,
        channels_last: false,
    };
    y = b.op(norm, &[y, scale, bias, mean, variance]);
    y = b.unary(UnaryKind::Relu, y);
    y = b.conv(y, 4, 4, 2);
    let c = b.floats(&[4, 1, 1]);
    y = b.binary(BinaryKind::Mul, y, c);
    y = b.binary(BinaryKind::Add, y, x);
    y = b.unary(UnaryKind::Relu, y);
    let g = b.check(&[y], 1);
    assert_eq!(names(&g), ["Transpose", "Conv", "Conv", "Transpose"]);
    let last = g.nodes[2].op.downcast_ref::<Conv>().unwrap();
    assert_eq!(last.activation, Activation::Relu);
    assert_eq!(g.nodes[2].inputs.len(), 4);
}

#[test]
fn normalisation_on_its_own() {
    let mut b = Builder::new(2);
    let x = b.input("x", &[2, 3, 4, 5]);
    let p: Vec<V> = (0..3).map(|_| b.floats(&[3])).collect();
    let variance = b.constant(Tensor::from_slice(&[3], &[0.5f32, 1.0, 2.0]).unwrap());
    let norm = BatchNorm {
        epsilon: 1e-3,
        channels_last: false,
    };
    let y = b.op(norm.clone(), &[x, p[0], p[1], p[2], variance]);
    let z = b.unary(UnaryKind::Relu, y);
    let y = b.op(norm, &[x, p[1], p[0], p[2], variance]);
    let y = b.transpose(y, &[0, 2, 3, 1]);
    let g = b.check(&[y, z], 2);
    assert_eq!(names(&g), ["Mul", "Add", "BatchNormalization", "Transpose"]);
}

#[test]
fn scales_and_shifts_behind_a_normalisation() {
    let mut b = Builder::new(3);
    let x = b.input("x", &[2, 3, 4, 5]);
    let p: Vec<V> = (0..3).map(|_| b.floats(&[3])).collect();
    let variance = b.constant(Tensor::from_slice(&[3], &[0.5f32, 1.0, 2.0]).unwrap());
    let norm = BatchNorm {
        epsilon: 1e-3,
        channels_last: false,
    };
    let y = b.op(norm.clone(), &[x, p[0], p[1], p[2], variance]);
    let (factors, terms) = (b.floats(&[3, 1, 1]), b.floats(&[1, 3, 1, 1]));
    let y = b.binary(BinaryKind::Mul, y, factors);
    let y = b.binary(BinaryKind::Add, terms, y);
    let y = b.unary(UnaryKind::Relu, y);
    let z = b.op(norm.clone(), &[x, p[1], p[2], p[0], variance]);
    let half = b.scalar(0.5);
    let z = b.binary(BinaryKind::Sub, half, z);
    // Not one number for each channel.
    let columns = b.floats(&[5]);
    let z = b.binary(BinaryKind::Mul, z, columns);
    let z = b.op(norm, &[z, p[1], p[2], p[0], variance]);
    let g = b.check(&[y, z], 2);
    let expected = [
        "Mul",
        "Add",
        "BatchNormalization",
        "Mul",
        "BatchNormalization",
    ];
    assert_eq!(names(&g), expected);
}

#[test]
fn an_infinite_scale_stays_outside_of_a_sum() {
    let mut b = Builder::new(4);
    let x = b.input("x", &[1, 2, 4, 5]);
    let y = b.conv(x, 2, 2, 1);
    let scale = b.constant(Tensor::from_slice(&[2], &[1.0f32, f32::INFINITY]).unwrap());
    let p: Vec<V> = (0..2).map(|_| b.floats(&[2])).collect();
    let variance = b.constant(Tensor::from_slice(&[2], &[0.5f32, 2.0]).unwrap());
    let norm = BatchNorm {
        epsilon: 1e-3,
        channels_last: false,
    };
    let y = b.op(norm, &[y, scale, p[0], p[1], variance]);
    let y = b.unary(UnaryKind::Relu, y);
    b.g.outputs = vec![y];
    let kept = optimised(&b.g);
    assert!(names(&kept).contains(&"BatchNormalization"), "{kept:#?}");
}

#[test]
fn large_weights_with_a_scale_below_single_precision() {
    let mut b = Builder::new(5);
    let x = b.input("x", &[1, 2]);
    let weights = b.constant(Tensor::from_slice(&[2, 1], &[1e38f32, 2e38]).unwrap());
    let y = b.op(MatMul::default(), &[x, weights]);
    let p: Vec<V> = [1e-30f32, 0.0, 0.0, 1e34]
        .map(|v| b.constant(Tensor::from_slice(&[1], &[v]).unwrap()))
        .to_vec();
    let norm = BatchNorm {
        epsilon: 0.0,
        channels_last: false,
    };
    let y = b.op(norm, &[y, p[0], p[1], p[2], p[3]]);
    b.g.outputs = vec![y];
    let g = optimised(&b.g);
    assert_eq!(names(&g), ["MatMul"]);
    let folded = g.value(g.nodes[0].inputs[1].unwrap());
    let folded = folded.constant.as_ref().unwrap();
    let weights = folded.as_slice::<f32>().unwrap();
    for (w, expected) in weights.iter().zip([1e-9f32, 2e-9]) {
        assert!((w - expected).abs() < 1e-15, "{w}");
    }
}

#[test]
fn a_transformer_block_spelled_out() {
    let mut b = Builder::new(3);
    let x = b.input("x", &[2, 5, 8]);
    // Layer normalisation
    let mean = b.mean(x, &[-1], true);
    let d = b.binary(BinaryKind::Sub, x, mean);
    let two = b.scalar(2.0);
    let square = b.binary(BinaryKind::Pow, d, two);
    let variance = b.mean(square, &[-1], true);
    let epsilon = b.scalar(1e-5);
    let variance = b.binary(BinaryKind::Add, variance, epsilon);
    let deviation = b.unary(UnaryKind::Sqrt, variance);
    let y = b.binary(BinaryKind::Div, d, deviation);
    let gamma = b.floats(&[8]);
    let beta = b.floats(&[8]);
    let y = b.binary(BinaryKind::Mul, y, gamma);
    let normed = b.binary(BinaryKind::Add, y, beta);
    // Attention scores
    let k = b.transpose(normed, &[0, 2, 1]);
    let scores = b.op(MatMul::default(), &[normed, k]);
    let eight = b.scalar(8.0);
    let scores = b.binary(BinaryKind::Div, scores, eight);
    // Gelu
    let w = b.floats(&[5, 6]);
    let y = b.op(MatMul::default(), &[scores, w]);
    let bias = b.floats(&[6]);
    let y = b.binary(BinaryKind::Add, y, bias);
    let root = b.scalar(std::f32::consts::SQRT_2);
    let e = b.binary(BinaryKind::Div, y, root);
    let e = b.unary(UnaryKind::Erf, e);
    let one = b.scalar(1.0);
    let e = b.binary(BinaryKind::Add, e, one);
    let y = b.binary(BinaryKind::Mul, y, e);
    let half = b.scalar(0.5);
    let y = b.binary(BinaryKind::Mul, y, half);
    // Root-mean-square normalisation
    let square = b.binary(BinaryKind::Mul, y, y);
    let square = b.mean(square, &[2], true);
    let square = b.binary(BinaryKind::Add, square, epsilon);
    let root = b.unary(UnaryKind::Sqrt, square);
    let root = b.unary(UnaryKind::Reciprocal, root);
    let y = b.binary(BinaryKind::Mul, y, root);
    let gamma = b.floats(&[6]);
    let y = b.binary(BinaryKind::Mul, gamma, y);
    let g = b.check(&[y], 3);
    let expected = [
        "LayerNormalization",
        "MatMul",
        "MatMul",
        "Gelu",
        "RMSNormalization",
    ];
    assert_eq!(names(&g), expected);
}

#[test]
fn activations_spelled_out() {
    let mut b = Builder::new(4);
    let x = b.input("x", &[3, 7]);
    let s = b.unary(UnaryKind::Sigmoid, x);
    let silu = b.binary(BinaryKind::Mul, s, x);
    let three = b.scalar(3.0);
    let (zero, six) = (b.scalar(0.0), b.scalar(6.0));
    let shifted = b.binary(BinaryKind::Add, x, three);
    let clipped = b.op(Clip, &[shifted, zero, six]);
    let product = b.binary(BinaryKind::Mul, x, clipped);
    let swish = b.binary(BinaryKind::Div, product, six);
    let soft = b.unary(UnaryKind::Softplus, x);
    let tanh = b.unary(UnaryKind::Tanh, soft);
    let mish = b.binary(BinaryKind::Mul, x, tanh);
    let cube = b.scalar(3.0);
    let cube = b.binary(BinaryKind::Pow, x, cube);
    let c = b.scalar(0.044715);
    let cube = b.binary(BinaryKind::Mul, cube, c);
    let sum = b.binary(BinaryKind::Add, x, cube);
    let c = b.scalar((2.0 / std::f32::consts::PI).sqrt());
    let sum = b.binary(BinaryKind::Mul, c, sum);
    let t = b.unary(UnaryKind::Tanh, sum);
    let one = b.scalar(1.0);
    let t = b.binary(BinaryKind::Add, one, t);
    let half = b.scalar(0.5);
    let x2 = b.binary(BinaryKind::Mul, half, x);
    let gelu = b.binary(BinaryKind::Mul, x2, t);
    let g = b.check(&[silu, swish, mish, gelu], 4);
    assert_eq!(names(&g), ["Swish", "HardSwish", "Mish", "Gelu"]);
}

#[test]
fn a_gather_takes_in_the_cast_of_its_indices() {
    let mut b = Builder::new(9);
    let table = b.input("table", &[3, 5]);
    let x = b.input("x", &[4]);
    let most = b.constant(Tensor::scalar(2.9f32).unwrap());
    let tokens = b.op(Binary::new(BinaryKind::Mul), &[x, most]);
    let tokens = b.op(Cast::new(DType::I32), &[tokens]);
    let y = b.op(Gather { axis: 0 }, &[table, tokens]);
    let g = b.check(&[y], 9);
    assert_eq!(names(&g), ["Mul", "GatherCast"]);
}

#[test]
fn scales_go_into_any_weights() {
    let mut b = Builder::new(10);
    // A transposed convolution with groups
    let x = b.input("x", &[1, 4, 3, 3]);
    let w = b.floats(&[4, 3, 2, 2]);
    let conv = ConvTranspose {
        strides: vec![2, 2],
        dilations: vec![1, 1],
        padding: Padding::Explicit(vec![0; 4]),
        output_padding: vec![0, 0],
        output_shape: None,
        groups: 2,
        channels_last: false,
        activation: Activation::None,
    };
    let y = b.op(conv, &[x, w]);
    let c = b.floats(&[1, 6, 1, 1]);
    let y = b.binary(BinaryKind::Mul, c, y);
    let c = b.floats(&[6, 1, 1]);
    let y = b.binary(BinaryKind::Sub, c, y);
    // A product with alpha, beta and a bias that broadcasts
    let a = b.input("a", &[2, 5]);
    let w = b.floats(&[4, 5]);
    let bias = b.floats(&[1, 4]);
    let gemm = Gemm {
        alpha: 0.5,
        beta: 2.0,
        transpose_a: false,
        transpose_b: true,
        activation: Activation::None,
    };
    let z = b.op(gemm, &[a, w, bias]);
    let c = b.floats(&[4]);
    let z = b.binary(BinaryKind::Div, z, c);
    let c = b.floats(&[4]);
    let z = b.binary(BinaryKind::Add, z, c);
    let z = b.unary(UnaryKind::Tanh, z);
    let g = b.check(&[y, z], 10);
    let mut left = names(&g);
    left.sort_unstable();
    assert_eq!(left, ["ConvTranspose", "Gemm", "Transpose", "Transpose"]);
}

#[test]
fn weights_of_no_elements_take_no_scales() {
    let mut b = Builder::new(12);
    let x = b.input("x", &[2, 0]);
    let w = b.floats(&[0, 3]);
    let y = b.op(MatMul::default(), &[x, w]);
    let c = b.floats(&[3]);
    let y = b.binary(BinaryKind::Add, y, c);
    let c = b.floats(&[3]);
    let y = b.binary(BinaryKind::Mul, y, c);
    b.check(&[y], 12);
}

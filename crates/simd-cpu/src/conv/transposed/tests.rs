use super::*;
use crate::conv::tests::Case;
#[cfg(target_arch = "wasm32")]
use crate::testing::test;
use crate::testing::{assert_within, run_kernel};
use kilim_core::Tensor;
use kilim_core::ops::Padding;
use kilim_host::testing::{noise, tensor};

/// `extra` is the padding of the output.
fn check(case: &Case, extra: [usize; 2]) {
    let op = ConvTranspose {
        strides: case.stride.to_vec(),
        dilations: case.dilation.to_vec(),
        padding: Padding::Explicit(case.pad.to_vec()),
        output_padding: extra.to_vec(),
        output_shape: None,
        groups: case.groups,
        channels_last: true,
        activation: case.activation,
    };
    let (c, m, g) = (case.channels, case.outputs, case.groups);
    let data_shape = case.data_shape();
    let weight_shape = [c, m / g, case.kernel[0], case.kernel[1]];
    let geometry = ConvGeometry::transposed(&op, &data_shape, &weight_shape).expect("a geometry");
    let data = noise(data_shape.iter().product(), 1);
    let weights = noise(weight_shape.iter().product(), 2);
    let bias = noise(m, 3);
    let out_shape = geometry.output_shape();
    let mut want = reference(case, &geometry.axes, &data, &weights);
    case.finish(&mut want, &bias, &[]);
    let data: Tensor = tensor(&data_shape, &data);
    let weights = tensor(&weight_shape, &weights);
    let bias = case.bias.then(|| tensor(&[m], &bias));
    for isa in Isa::available() {
        let inputs = [Some(&data), Some(&weights), bias.as_ref()];
        let got = run_kernel(&op, &inputs, &out_shape, |node, build| {
            kernel(&op, node, build, isa)
        });
        assert_within(&got, &want, 1e-5, &format!("{case:?} {extra:?} {isa:?}"));
    }
}

/// Scatters every input element, by the definition.
fn reference(case: &Case, axes: &[WindowAxis], data: &[f32], weights: &[f32]) -> Vec<f64> {
    let (c, m, g) = (case.channels, case.outputs, case.groups);
    let (oh, ow) = (axes[0].output, axes[1].output);
    let mut out = vec![0.0; case.batch * oh * ow * m];
    let [kh, kw] = case.kernel;
    for (i, &v) in data.iter().enumerate() {
        let (pixel, channel) = (i / c, i % c);
        let (rest, x) = (pixel / case.size[1], pixel % case.size[1]);
        let (n, y) = (rest / case.size[0], rest % case.size[0]);
        for (ky, kx) in (0..kh * kw).map(|k| (k / kw, k % kw)) {
            let oy = (y * case.stride[0] + ky * case.dilation[0]).wrapping_sub(axes[0].begin);
            let ox = (x * case.stride[1] + kx * case.dilation[1]).wrapping_sub(axes[1].begin);
            if oy >= oh || ox >= ow {
                continue;
            }
            for o in 0..m / g {
                let weight = weights[((channel * (m / g) + o) * kh + ky) * kw + kx];
                let to = channel / (c / g) * (m / g) + o;
                out[((n * oh + oy) * ow + ox) * m + to] += f64::from(v) * f64::from(weight);
            }
        }
    }
    out
}

const PLAIN: Case = Case {
    batch: 1,
    size: [5, 7],
    channels: 6,
    outputs: 10,
    groups: 1,
    kernel: [4, 4],
    stride: [2, 2],
    dilation: [1, 1],
    pad: [1, 1, 1, 1],
    activation: Activation::None,
    bias: true,
    residual: false,
};

#[test]
fn geometries() {
    let cases = [
        PLAIN,
        Case {
            batch: 2,
            bias: false,
            ..PLAIN
        },
        Case {
            stride: [1, 1],
            kernel: [3, 3],
            ..PLAIN
        },
        Case {
            stride: [3, 2],
            kernel: [2, 5],
            pad: [0, 2, 0, 1],
            ..PLAIN
        },
        Case {
            kernel: [2, 2],
            pad: [0; 4],
            ..PLAIN
        },
        Case {
            dilation: [2, 3],
            kernel: [3, 2],
            ..PLAIN
        },
        Case {
            stride: [2, 3],
            dilation: [3, 2],
            kernel: [3, 4],
            pad: [2, 0, 1, 3],
            ..PLAIN
        },
        Case { groups: 2, ..PLAIN },
        Case {
            groups: 6,
            outputs: 6,
            ..PLAIN
        },
        Case {
            size: [1, 9],
            kernel: [1, 4],
            stride: [1, 2],
            pad: [0, 1, 0, 1],
            ..PLAIN
        },
        Case {
            kernel: [4, 4],
            pad: [3; 4],
            size: [20, 30],
            outputs: 3,
            channels: 40,
            ..PLAIN
        },
    ];
    let extended = [
        (
            Case {
                kernel: [3, 3],
                activation: Activation::Tanh,
                ..PLAIN
            },
            [1, 1],
        ),
        (
            Case {
                stride: [4, 4],
                kernel: [2, 3],
                pad: [0; 4],
                ..PLAIN
            },
            [1, 0],
        ),
    ];
    for (case, extra) in cases.map(|case| (case, [0, 0])).into_iter().chain(extended) {
        check(&case, extra);
        let wide = Case {
            outputs: case.groups * 17,
            ..case
        };
        check(&wide, extra);
    }
}

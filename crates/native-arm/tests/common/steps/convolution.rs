//! Convolutions, general and of each channel by itself.

use kilim_core::ops::{Activation, Conv, ConvInteger, Padding, QLinearConv};
use kilim_core::{DType, Tensor};
use kilim_native_arm::AclBackend;

use super::{Checks, geometry, limits, requantize};
use crate::common::Given::{self, Constant, Fed};
use crate::common::real::{self, Geometry, quanta};
use crate::common::{of_type, scalar, turned, zero};

/// A convolution in every form that models have.
pub struct Form {
    pub data: DType,
    pub weights: DType,
    /// The zero point of the weights.
    pub zero: i32,
    pub each_channel: bool,
    pub bias: bool,
}

const fn form(data: DType, weights: DType, zero: i32, each_channel: bool) -> Form {
    Form {
        data,
        weights,
        zero,
        each_channel,
        bias: true,
    }
}

pub const FORMS: [Form; 5] = [
    form(DType::I8, DType::I8, 0, true),
    form(DType::I8, DType::I8, 0, false),
    form(DType::I8, DType::I8, 3, false),
    form(DType::U8, DType::U8, 131, false),
    form(DType::U8, DType::I8, 0, true),
];

/// All that ACL has in groups, on OpenCL.
pub const WITHOUT_BIAS: [Form; 2] = [without_bias(0), without_bias(3)];

const fn without_bias(zero: i32) -> Form {
    Form {
        bias: false,
        ..form(DType::I8, DType::I8, zero, false)
    }
}

/// Pictures, groups, output channels, window.
pub type Shape = ([usize; 4], usize, usize, Geometry);

pub const DEPTHWISE: [Shape; 6] = [
    ([2, 7, 9, 8], 8, 8, geometry(3, 1, 1, 1)),
    ([1, 9, 7, 33], 33, 33, geometry(3, 2, 1, 1)),
    ([2, 11, 8, 5], 5, 10, geometry(3, 1, 0, 1)),
    ([1, 13, 11, 16], 16, 16, geometry(5, 1, 2, 1)),
    ([2, 10, 10, 4], 4, 4, geometry(3, 1, 2, 2)),
    ([1, 5, 6, 3], 3, 3, geometry(2, 1, 0, 1)),
];

pub const GENERAL: [Shape; 7] = [
    ([2, 7, 9, 8], 1, 16, geometry(3, 1, 1, 1)),
    ([1, 9, 7, 33], 1, 17, geometry(3, 2, 1, 1)),
    ([2, 11, 8, 5], 1, 10, geometry(3, 1, 0, 1)),
    ([3, 5, 7, 19], 1, 13, geometry(1, 1, 0, 1)),
    ([2, 6, 9, 16], 1, 8, geometry(1, 2, 0, 1)),
    ([1, 13, 11, 3], 1, 21, geometry(5, 1, 2, 1)),
    ([2, 10, 10, 4], 1, 6, geometry(3, 1, 2, 2)),
];

pub const GROUPED: [Shape; 3] = [
    ([1, 7, 9, 8], 2, 6, geometry(3, 1, 1, 1)),
    ([1, 9, 7, 15], 3, 9, geometry(3, 2, 0, 1)),
    ([1, 10, 7, 4], 2, 6, geometry(3, 1, 2, 2)),
];

/// Pictures `[n, h, w, c]` with their channels first.
fn channels_first<T: Copy>(data: &[T], [n, h, w, c]: [usize; 4]) -> Vec<T> {
    let mut out = Vec::with_capacity(data.len());
    for image in 0..n {
        for channel in 0..c {
            out.extend((0..h * w).map(|p| data[(image * h * w + p) * c + channel]));
        }
    }
    out
}

pub fn convolutions(acl: &AclBackend, shapes: &[Shape], forms: &[Form], channels_last: bool) {
    let mut checks = Checks::on(acl);
    for (i, form) in forms.iter().enumerate() {
        let edges = match form.data {
            DType::U8 => [0, 255, 121],
            _ => [-128, 127, 5],
        };
        for (j, &shape) in shapes.iter().enumerate() {
            let zeros = [edges[(i + j) % 3], edges[(i + j + 1) % 3]];
            convolution(&mut checks, shape, form, channels_last, zeros);
        }
    }
    checks.finish();
}

/// Checks one convolution as QLinearConv without and with a clamp, and as ConvInteger.
fn convolution(
    checks: &mut Checks,
    (x, groups, m, g): Shape,
    form: &Form,
    channels_last: bool,
    [x_zero, y_zero]: [i32; 2],
) {
    let [n, h, w, c] = x;
    let part = c / groups;
    let taps = (part * g.kernel * g.kernel) as f32;
    let (qx, qy) = (quanta(0.04, x_zero), quanta(0.3, y_zero));
    let channels = if form.each_channel { m } else { 1 };
    let scales: Vec<f32> = (0..channels)
        .map(|i| (0.04 + 0.01 * (i % 7) as f32) / taps.sqrt())
        .collect();
    let by_channel = |i: usize| f64::from(scales[if form.each_channel { i } else { 0 }]);
    let bias = |i: i32| if form.bias { i * 300 - 900 } else { 0 };
    let bias: Vec<i32> = (0..m as i32).map(bias).collect();
    let y = [n, g.output(h), g.output(w), m];
    let data = of_type(form.data, &x, 37);
    let weights = of_type(form.weights, &[m, part, g.kernel, g.kernel], 91);
    let own = quanta(1.0, form.zero).real(&weights);
    let each = own.len() / m;
    let own = own.iter().enumerate();
    let w_real: Vec<f64> = own.map(|(i, v)| v * by_channel(i / each)).collect();
    let b_real = bias.iter().enumerate();
    let b_real = b_real.map(|(i, &b)| f64::from(b) * qx.scale * by_channel(i));
    let b_real: Vec<f64> = b_real.collect();
    let shape = |[n, h, w, c]: [usize; 4]| match channels_last {
        true => [n, h, w, c],
        false => [n, c, h, w],
    };
    let fed = match channels_last {
        true => data.clone(),
        false => {
            let bytes = channels_first(data.read().unwrap(), x);
            Tensor::from_raw(form.data, &shape(x), &bytes).unwrap()
        }
    };
    let real = |given: &[Tensor]| {
        // The data is the given one, or turned.
        let data = match given[0] == fed {
            true => data.clone(),
            false => turned(&data),
        };
        let sums = real::convolution(&qx.real(&data), x, &w_real, &b_real, groups, g);
        let steps: Vec<f64> = sums.into_iter().map(|v| qy.steps(v)).collect();
        match channels_last {
            true => steps,
            false => channels_first(&steps, y),
        }
    };
    let conv = |activation| Conv {
        strides: vec![g.stride; 2],
        dilations: vec![g.dilation; 2],
        padding: Padding::Explicit(vec![g.pad; 4]),
        groups,
        channels_last,
        activation,
    };
    let name = format!(
        "{x:?} in {groups} to {m}, kernel {} stride {} dilation {}, {} by {} around {}, zeros {x_zero} {y_zero}",
        g.kernel, g.stride, g.dilation, form.data, form.weights, form.zero
    );
    let (y, range) = (shape(y), limits(form.data));
    let output = (form.data, &y[..]);
    let bias = form.bias.then(|| Tensor::from_slice(&[m], &bias).unwrap());
    let biased = |mut inputs: Vec<Given>| {
        inputs.extend(bias.clone().map(Constant));
        inputs
    };
    let inputs = biased(vec![
        Fed(fed.clone()),
        scalar(0.04),
        zero(form.data, x_zero),
        Constant(weights.clone()),
        Constant(Tensor::from_slice(&[channels], &scales).unwrap()),
        zero(form.weights, form.zero),
        scalar(0.3),
        zero(form.data, y_zero),
    ]);
    let op = QLinearConv {
        conv: conv(Activation::None),
    };
    checks.check(&name, op, &inputs, output, real);
    let [min, max] = [-5.0f32, 12.0];
    let op = QLinearConv {
        conv: conv(Activation::Clip { min, max }),
    };
    let [least, most] = range;
    let clamp = [min, max].map(|v| qy.steps(v.into()).round().clamp(least, most));
    checks.clamped(&name, op, &inputs, output, clamp, real);
    let factors = scales.iter().map(|&s| f64::from(s) * qx.scale / qy.scale);
    let factors: Vec<f64> = factors.collect();
    let op = ConvInteger {
        conv: conv(Activation::None),
        requantize: Some(requantize(&factors, y_zero, range, form.data)),
    };
    let inputs = biased(vec![
        Fed(fed.clone()),
        Constant(weights),
        zero(form.data, x_zero),
        zero(form.weights, form.zero),
    ]);
    checks.check(&format!("{name}, fixed"), op, &inputs, output, real);
}

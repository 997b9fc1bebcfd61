//! ACL's own arithmetic of quantised tensors against real numbers in `float64`: no result is further than a
//! step of quantisation from the real number, and the default is a refusal that says so.

use kilim_core::backend::Backend;
use kilim_core::fixed::Factor;
use kilim_core::ops::{
    Activation, Affine, AveragePool, BinaryKind, Combination, Conv, ConvInteger, Padding,
    QLinearBinary, QLinearConv, QuantizedBinary, QuantizedResize, QuantizedSoftmax, Requantize,
    TableLookup, Tabulated, UnaryKind, Window,
};
use kilim_core::{DType, Operator, Tensor};
use kilim_native_arm::AclBackend;

use super::Given::{self, Constant, Fed};
use super::real::{self, Geometry, Quanta, quanta};
use super::{of_type, run, scalar, turned, zero};

/// How much of what there is to try: an emulated OpenCL device compiles for seconds.
#[derive(Clone, Copy)]
pub enum Extent {
    Whole,
    Sample,
}

impl Extent {
    fn of<T>(self, all: &[T]) -> &[T] {
        match self {
            Extent::Whole => all,
            Extent::Sample => &all[..1],
        }
    }
}

const BYTES: [DType; 2] = [DType::I8, DType::U8];

fn limits(dtype: DType) -> [f64; 2] {
    match dtype {
        DType::U8 => [0.0, 255.0],
        _ => [-128.0, 127.0],
    }
}

/// Runs a node whose results are `real` numbers of its inputs, in steps, clamped to `range`.
pub fn check(
    acl: &AclBackend,
    what: &str,
    op: impl Operator + Clone,
    inputs: &[Given],
    (dtype, y): (DType, &[usize]),
    [low, high]: [f64; 2],
    real: impl Fn(&[Tensor]) -> Vec<f64>,
) -> Result<(), String> {
    let native = run(&acl.native(), op.clone(), inputs, (dtype, y));
    if native.as_ref().is_err_and(|e| e.contains("with SME")) {
        println!("{what}: not on this processor");
        return Ok(());
    }
    match run(acl, op, inputs, (dtype, y)) {
        Err(reason) if reason.contains("quantized=native") => {}
        other => return Err(format!("{what}: without the config: {other:?}")),
    }
    let got = native.map_err(|e| format!("{what}: {e}"))?;
    let (mut largest, mut steps) = (0.0f64, 0.0f64);
    for (again, got) in got.iter().enumerate() {
        let given = inputs.iter().map(|given| match given {
            Fed(t) if again == 1 => turned(t),
            Fed(t) | Constant(t) => t.clone(),
        });
        let want = real(&given.collect::<Vec<_>>());
        let got = got.to_f64s().unwrap();
        assert_eq!(got.len(), want.len(), "{what}");
        for (g, w) in got.iter().zip(want) {
            let w = w.clamp(low, high);
            largest = largest.max((g - w).abs());
            steps = steps.max((g - w.round()).abs());
        }
    }
    println!("{what}: {steps} steps, {largest:.3} from the real number");
    match steps <= 1.0 {
        true => Ok(()),
        false => Err(format!("{what}: {steps} steps")),
    }
}

/// Fails with all that was wrong.
pub fn all(results: impl IntoIterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "ACL is wrong:\n{}", wrong.join("\n"));
}

fn affine(q: Quanta) -> Affine {
    Affine {
        scale: q.scale as f32,
        zero: q.zero as f32,
    }
}

fn requantize(factors: &[f64], zero_point: i32, range: [i32; 2], output: DType) -> Requantize {
    Requantize {
        factors: factors.iter().map(|&f| Factor::new(f).unwrap()).collect(),
        zero_point,
        range,
        output,
    }
}

/// Scales and zero points of two tensors and their result.
fn scales(dtype: DType) -> [[Quanta; 3]; 3] {
    match dtype {
        DType::U8 => [
            [quanta(0.05, 128), quanta(0.03, 100), quanta(0.06, 131)],
            [quanta(0.02, 0), quanta(0.07, 255), quanta(0.05, 0)],
            [quanta(0.5, 255), quanta(0.013, 3), quanta(0.7, 255)],
        ],
        _ => [
            [quanta(0.05, -5), quanta(0.03, 7), quanta(0.06, 3)],
            [quanta(0.02, -128), quanta(0.07, 127), quanta(0.05, -128)],
            [quanta(0.5, 127), quanta(0.013, 0), quanta(0.7, 127)],
        ],
    }
}

/// Shapes that broadcast, and which of them is constant.
const SHAPES: [([usize; 3], [usize; 3], bool); 4] = [
    ([2, 5, 51], [2, 5, 51], false),
    ([2, 5, 64], [1, 1, 64], true),
    ([3, 7, 9], [1, 1, 1], true),
    ([1, 16, 16], [1, 16, 16], false),
];

fn two(dtype: DType, a: &[usize], b: &[usize], constant: bool) -> [Given; 2] {
    let second = of_type(dtype, b, 91);
    let second = match constant {
        true => Constant(second),
        false => Fed(second),
    };
    [Fed(of_type(dtype, a, 37)), second]
}

fn apply(kind: BinaryKind, a: f64, b: f64) -> f64 {
    match kind {
        BinaryKind::Add => a + b,
        BinaryKind::Sub => a - b,
        BinaryKind::Mul => a * b,
        BinaryKind::Max => a.max(b),
        _ => a.min(b),
    }
}

/// Both tensors as real numbers, combined, in steps of the result.
fn combined(
    kind: BinaryKind,
    [qa, qb, qy]: [Quanta; 3],
    y: &[usize],
    given: &[Tensor],
) -> Vec<f64> {
    let b = real::broadcast(&qb.real(&given[1]), given[1].shape(), y);
    let pairs = qa.real(&given[0]).into_iter().zip(b);
    pairs.map(|(a, b)| qy.steps(apply(kind, a, b))).collect()
}

pub fn of_two(acl: &AclBackend, kind: BinaryKind, extent: Extent) {
    let mut results = Vec::new();
    for &dtype in extent.of(&BYTES) {
        for &[qa, qb, mut qy] in extent.of(&scales(dtype)) {
            if kind == BinaryKind::Mul {
                qy.scale *= 1.5;
            }
            for &(a, b, constant) in extent.of(&SHAPES) {
                let inputs = two(dtype, &a, &b, constant);
                let real = |given: &[Tensor]| combined(kind, [qa, qb, qy], &a, given);
                let [least, most] = limits(dtype);
                let name = format!("{kind:?} of {dtype} {a:?} {b:?} zero {}", qy.zero);
                for range in [[least, most], [least + 20.0, most - 30.0]] {
                    let op = QLinearBinary {
                        kind,
                        operands: [affine(qa), affine(qb)],
                        offset: 0.0,
                        result: affine(qy),
                        range: range.map(|v| v as f32),
                        output: dtype,
                    };
                    results.push(check(acl, &name, op, &inputs, (dtype, &a), range, real));
                }
                if let Some((op, range)) = fixed(kind, dtype, [qa, qb, qy]) {
                    let name = format!("{name}, fixed");
                    results.push(check(acl, &name, op, &inputs, (dtype, &a), range, real));
                }
            }
        }
    }
    all(results);
}

/// The same as TFLite has it; nothing of what it does not have.
fn fixed(
    kind: BinaryKind,
    dtype: DType,
    [a, b, y]: [Quanta; 3],
) -> Option<(QuantizedBinary, [f64; 2])> {
    const LEFT_SHIFT: u32 = 20;
    let common = 2.0 * a.scale.max(b.scale);
    let factors = [a, b].map(|q| Factor::new(q.scale / common).unwrap());
    let (combination, factor) = match kind {
        BinaryKind::Add | BinaryKind::Sub => {
            let result = common / (y.scale * f64::from(1 << LEFT_SHIFT));
            let left_shift = LEFT_SHIFT;
            let terms = match kind {
                BinaryKind::Add => Combination::Sum {
                    left_shift,
                    factors,
                },
                _ => Combination::Difference {
                    left_shift,
                    factors,
                },
            };
            (terms, result)
        }
        BinaryKind::Mul => (Combination::Product, a.scale * b.scale / y.scale),
        _ => return None,
    };
    let range = limits(dtype);
    let op = QuantizedBinary {
        zero_points: [a.zero, b.zero],
        combination,
        result: requantize(&[factor], y.zero, range.map(|v| v as i32), dtype),
    };
    Some((op, range))
}

/// A convolution in every form that models have.
pub struct Form {
    pub data: DType,
    pub weights: DType,
    /// Of the weights.
    pub zero: i32,
    pub each_channel: bool,
}

const fn form(data: DType, weights: DType, zero: i32, each_channel: bool) -> Form {
    Form {
        data,
        weights,
        zero,
        each_channel,
    }
}

pub const FORMS: [Form; 5] = [
    form(DType::I8, DType::I8, 0, true),
    form(DType::I8, DType::I8, 0, false),
    form(DType::I8, DType::I8, 3, false),
    form(DType::U8, DType::U8, 131, false),
    form(DType::U8, DType::I8, 0, true),
];

/// Pictures, groups, output channels, window.
pub type Shape = ([usize; 4], usize, usize, Geometry);

const fn geometry(kernel: usize, stride: usize, pad: usize, dilation: usize) -> Geometry {
    Geometry {
        kernel,
        stride,
        pad,
        dilation,
    }
}

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

/// From channels last to channels first, and back.
fn transposed(data: &Tensor, [n, h, w, c]: [usize; 4]) -> Tensor {
    let bytes = data.bytes();
    let mut out = Vec::with_capacity(bytes.len());
    for image in 0..n {
        for channel in 0..c {
            let pixels = (0..h * w).map(|p| bytes[(image * h * w + p) * c + channel]);
            out.extend(pixels);
        }
    }
    Tensor::from_raw(data.dtype(), &[n, c, h, w], &out).unwrap()
}

fn first(data: &[f64], [n, h, w, c]: [usize; 4]) -> Vec<f64> {
    let mut out = Vec::with_capacity(data.len());
    for image in 0..n {
        for channel in 0..c {
            out.extend((0..h * w).map(|p| data[(image * h * w + p) * c + channel]));
        }
    }
    out
}

pub fn convolutions(acl: &AclBackend, shapes: &[Shape], forms: &[Form], channels_last: bool) {
    let mut results = Vec::new();
    for (i, form) in forms.iter().enumerate() {
        let edges = match form.data {
            DType::U8 => [0, 255, 121],
            _ => [-128, 127, 5],
        };
        for (j, &shape) in shapes.iter().enumerate() {
            let zeros = [edges[(i + j) % 3], edges[(i + j + 1) % 3]];
            results.extend(convolution(acl, shape, form, channels_last, zeros));
        }
    }
    all(results);
}

fn convolution(
    acl: &AclBackend,
    (x, groups, m, g): Shape,
    form: &Form,
    channels_last: bool,
    [x_zero, y_zero]: [i32; 2],
) -> [Result<(), String>; 3] {
    let [n, h, w, c] = x;
    let part = c / groups;
    let taps = (part * g.kernel * g.kernel) as f32;
    let (qx, qy) = (quanta(0.04, x_zero), quanta(0.3, y_zero));
    let channels = if form.each_channel { m } else { 1 };
    let scales: Vec<f32> = (0..channels)
        .map(|i| (0.04 + 0.01 * (i % 7) as f32) / taps.sqrt())
        .collect();
    let bias: Vec<i32> = (0..m as i32).map(|i| i * 300 - 900).collect();
    let y = [n, g.output(h), g.output(w), m];
    let data = of_type(form.data, &x, 37);
    let weights = of_type(form.weights, &[m, part, g.kernel, g.kernel], 91);
    let by_channel = |i: usize| scales[if form.each_channel { i } else { 0 }];
    let own = quanta(1.0, form.zero).real(&weights);
    let each = own.len() / m;
    let w_real: Vec<f64> = own
        .iter()
        .enumerate()
        .map(|(i, v)| v * f64::from(by_channel(i / each)))
        .collect();
    let b_real: Vec<f64> = bias
        .iter()
        .enumerate()
        .map(|(i, &b)| f64::from(b) * qx.scale * f64::from(by_channel(i)))
        .collect();
    let shape = |s: [usize; 4]| match channels_last {
        true => s,
        false => [s[0], s[3], s[1], s[2]],
    };
    let fed = match channels_last {
        true => data.clone(),
        false => transposed(&data, x),
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
            false => first(&steps, y),
        }
    };
    let conv = Conv {
        strides: vec![g.stride; 2],
        dilations: vec![g.dilation; 2],
        padding: Padding::Explicit(vec![g.pad; 4]),
        groups,
        channels_last,
        activation: Activation::None,
    };
    let out = shape(y);
    let name = format!(
        "{x:?} in {groups} to {m}, kernel {} stride {} dilation {}, {} by {} around {}, zeros {x_zero} {y_zero}",
        g.kernel, g.stride, g.dilation, form.data, form.weights, form.zero
    );
    let bias_tensor = || Constant(Tensor::from_slice(&[m], &bias).unwrap());
    let inputs = [
        Fed(fed.clone()),
        scalar(0.04),
        zero(form.data, x_zero),
        Constant(weights.clone()),
        Constant(Tensor::from_slice(&[channels], &scales).unwrap()),
        zero(form.weights, form.zero),
        scalar(0.3),
        zero(form.data, y_zero),
        bias_tensor(),
    ];
    let [least, most] = limits(form.data);
    let clip = Activation::Clip {
        min: -5.0,
        max: 12.0,
    };
    let clipped = [-5.0, 12.0].map(|v| qy.steps(v).round().clamp(least, most));
    let linear = |activation, range| {
        let conv = Conv {
            activation,
            ..conv.clone()
        };
        let op = QLinearConv { conv };
        check(acl, &name, op, &inputs, (form.data, &out), range, real)
    };
    let plain = linear(Activation::None, [least, most]);
    let clamped = linear(clip, clipped);
    let factors: Vec<f64> = scales
        .iter()
        .map(|&s| f64::from(s) * qx.scale / qy.scale)
        .collect();
    let op = ConvInteger {
        conv: conv.clone(),
        requantize: Some(requantize(
            &factors,
            y_zero,
            [least, most].map(|v| v as i32),
            form.data,
        )),
    };
    let inputs = [
        Fed(fed.clone()),
        Constant(weights),
        zero(form.data, x_zero),
        zero(form.weights, form.zero),
        bias_tensor(),
    ];
    let name = format!("{name}, fixed");
    let fixed = check(
        acl,
        &name,
        op,
        &inputs,
        (form.data, &out),
        [least, most],
        real,
    );
    [plain, clamped, fixed]
}

/// Tanh is the last: PoCL does not compile it.
pub const FUNCTIONS: [UnaryKind; 9] = [
    UnaryKind::Relu,
    UnaryKind::Sigmoid,
    UnaryKind::HardSwish,
    UnaryKind::Clip { min: 0.0, max: 6.0 },
    UnaryKind::Clip {
        min: -1.0,
        max: 1.0,
    },
    UnaryKind::Clip {
        min: f64::NEG_INFINITY,
        max: 2.0,
    },
    UnaryKind::LeakyRelu { alpha: 0.1 },
    UnaryKind::Identity,
    UnaryKind::Tanh,
];

fn applied(kind: UnaryKind, x: f64) -> f64 {
    match kind {
        UnaryKind::Relu => x.max(0.0),
        UnaryKind::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryKind::Tanh => x.tanh(),
        UnaryKind::HardSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        UnaryKind::Clip { min, max } => x.clamp(min, max),
        UnaryKind::LeakyRelu { alpha } if x < 0.0 => f64::from(alpha) * x,
        _ => x,
    }
}

/// The one scale and zero point that ACL gives the results of some functions.
fn own(kind: UnaryKind, dtype: DType) -> Option<Quanta> {
    match (kind, dtype) {
        (UnaryKind::Sigmoid, DType::U8) => Some(quanta(1.0 / 256.0, 0)),
        (UnaryKind::Sigmoid, _) => Some(quanta(1.0 / 256.0, -128)),
        (UnaryKind::Tanh, DType::U8) => Some(quanta(1.0 / 128.0, 128)),
        (UnaryKind::Tanh, _) => Some(quanta(1.0 / 128.0, 0)),
        _ => None,
    }
}

pub fn activations(acl: &AclBackend, functions: &[UnaryKind], extent: Extent) {
    let old = acl.describe().device.contains("v20.08");
    let mut results = Vec::new();
    for &dtype in extent.of(&BYTES) {
        for &kind in functions {
            if old && matches!(kind, UnaryKind::LeakyRelu { .. }) {
                println!("skipped: this release has no LeakyRelu of bytes");
                continue;
            }
            // The function that changes scales changes types, too.
            let others = BYTES
                .iter()
                .filter(|&&y| y == dtype || kind == UnaryKind::Identity);
            for &output in others {
                results.extend(activation(acl, extent, kind, dtype, output));
            }
        }
    }
    all(results);
}

fn activation(
    acl: &AclBackend,
    extent: Extent,
    kind: UnaryKind,
    dtype: DType,
    output: DType,
) -> Vec<Result<(), String>> {
    let (inputs, outputs) = (scales(dtype), scales(output));
    let mut results = Vec::new();
    for (&[from, ..], &[.., to]) in extent.of(&inputs).iter().zip(&outputs) {
        for shape in extent.of(&[vec![285], vec![2, 5, 3, 16]]) {
            let to = own(kind, output).unwrap_or(to);
            let of = Tabulated {
                function: kind,
                from: affine(from),
                to: affine(to),
            };
            let real = |given: &[Tensor]| {
                let x = from.real(&given[0]).into_iter();
                x.map(|v| to.steps(applied(kind, v))).collect()
            };
            let name = format!(
                "{kind:?} of {dtype} to {output} {shape:?} zero {}",
                from.zero
            );
            // What is in the table is not read.
            let table = Constant(of_type(output, &[256], 1));
            let inputs = [Fed(of_type(dtype, shape, 37)), table];
            let op = TableLookup { of: Some(of) };
            results.push(check(
                acl,
                &name,
                op,
                &inputs,
                (output, shape),
                limits(output),
                real,
            ));
        }
    }
    results
}

pub fn averages(acl: &AclBackend, extent: Extent) {
    let mut results = Vec::new();
    for &dtype in extent.of(&BYTES) {
        for &(x, g) in extent.of(&[
            ([2, 7, 9, 8], geometry(3, 1, 1, 1)),
            ([1, 8, 8, 33], geometry(2, 2, 0, 1)),
            ([2, 9, 7, 16], geometry(3, 2, 1, 1)),
            ([1, 8, 8, 64], geometry(8, 1, 0, 1)),
            ([3, 25, 25, 5], geometry(25, 1, 0, 1)),
        ]) {
            let op = AveragePool {
                window: Window {
                    kernel: vec![g.kernel; 2],
                    strides: vec![g.stride; 2],
                    dilations: vec![1, 1],
                    padding: Padding::Explicit(vec![g.pad; 4]),
                    ceil_mode: false,
                },
                count_include_pad: false,
                channels_last: true,
                activation: Activation::None,
            };
            let y = [x[0], g.output(x[1]), g.output(x[2]), x[3]];
            let real = |given: &[Tensor]| real::average(&given[0].to_f64s().unwrap(), x, g);
            let name = format!("average of {dtype} {x:?} {}", g.kernel);
            let inputs = [Fed(of_type(dtype, &x, 37))];
            results.push(check(
                acl,
                &name,
                op,
                &inputs,
                (dtype, &y),
                limits(dtype),
                real,
            ));
        }
    }
    all(results);
}

pub fn softmaxes(acl: &AclBackend, extent: Extent) {
    let mut results = Vec::new();
    for &dtype in extent.of(&BYTES) {
        for &(shape, scale) in extent.of(&[
            ([5, 10], 0.05f32),
            ([3, 17], 0.2),
            ([1, 256], 0.02),
            ([7, 1001], 0.1),
            ([2, 3], 0.0078),
        ]) {
            let op = QuantizedSoftmax {
                factor: Factor::new(f64::from(scale) * f64::from(1 << 26)).unwrap(),
                smallest: i32::MIN / 2,
            };
            let y = quanta(1.0 / 256.0, if dtype == DType::I8 { -128 } else { 0 });
            let real = |given: &[Tensor]| {
                let x = quanta(scale, 0).real(&given[0]);
                let shares = real::softmax(&x, shape[1]);
                shares.into_iter().map(|v| y.steps(v)).collect()
            };
            let name = format!("softmax of {dtype} {shape:?} {scale}");
            let inputs = [Fed(of_type(dtype, &shape, 37))];
            results.push(check(
                acl,
                &name,
                op,
                &inputs,
                (dtype, &shape),
                limits(dtype),
                real,
            ));
        }
    }
    all(results);
}

pub fn resizes(acl: &AclBackend, extent: Extent) {
    let mut results = Vec::new();
    for &dtype in extent.of(&BYTES) {
        for &(x, y) in extent.of(&[
            ([1, 6, 6, 8], [12, 12]),
            ([2, 5, 7, 3], [9, 10]),
            ([1, 9, 11, 16], [4, 5]),
        ]) {
            for (align_corners, half_pixel) in [(false, false), (true, false), (false, true)] {
                let op = QuantizedResize {
                    align_corners,
                    half_pixel,
                };
                let sizes = y.map(|v| v as i64);
                let inputs = [
                    Fed(of_type(dtype, &x, 37)),
                    Constant(Tensor::from_slice(&[2], &sizes).unwrap()),
                ];
                let real = |given: &[Tensor]| {
                    let x_real = given[0].to_f64s().unwrap();
                    real::bilinear(&x_real, x, y, align_corners, half_pixel)
                };
                let name = format!("{dtype} {x:?} to {y:?}, {align_corners} {half_pixel}");
                let shape = [x[0], y[0], y[1], x[3]];
                results.push(check(
                    acl,
                    &name,
                    op,
                    &inputs,
                    (dtype, &shape),
                    limits(dtype),
                    real,
                ));
            }
        }
    }
    all(results);
}

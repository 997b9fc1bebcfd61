//! Functions of one byte: tables of 256 results, made when the model is read.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::fixed::{self, Factor, divide_by_power, high_product};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, Affine, AffineQuantize, Concat, Requantize, TableLookup, Tabulated, UnaryKind,
};
use kilim_core::tensor::Tensor;

use super::{Import, Op, Quanta, limits};

/// `f` of all bytes of type `x`, in the order of their bits.
fn entries(x: &Quanta, f: impl Fn(i32) -> i32) -> Vec<i32> {
    let number = |byte: u8| match x.dtype {
        DType::I8 => f((byte as i8).into()),
        _ => f(byte.into()),
    };
    (0..=255).map(number).collect()
}

/// The value of an `int32` function of quantised `x`.
pub(super) fn looked_up(
    imp: &mut Import,
    x: ValueId,
    quanta: &Quanta,
    f: impl Fn(i32) -> i32,
) -> Result<ValueId> {
    let table = Tensor::from_slice(&[256], &entries(quanta, f))?;
    let table = imp.node_constant("table", table);
    imp.step(TableLookup::default(), &[Some(x), Some(table)])
}

/// A table of bytes of type `y`, to which its entries are clamped.
fn table(imp: &mut Import, x: &Quanta, y: &Quanta, f: impl Fn(i32) -> i32) -> Result<ValueId> {
    let (low, high) = limits(y.dtype)?;
    let bytes: Vec<u8> = entries(x, f)
        .into_iter()
        .map(|v| v.clamp(low, high) as u8)
        .collect();
    let table = Tensor::from_raw(y.dtype, &[256], &bytes)?;
    Ok(imp.node_constant("table", table))
}

/// The lookup in a table that stands for `function`, where that has a name.
fn lookup(function: Option<UnaryKind>, x: &Quanta, y: &Quanta) -> TableLookup {
    let affine = |q: &Quanta| Affine {
        scale: q.scale,
        zero: q.zero_point as f32,
    };
    let of = function.map(|function| Tabulated {
        function,
        from: affine(x),
        to: affine(y),
    });
    TableLookup { of }
}

/// The output of `op` as a function of its input, which on real numbers is `function`.
fn emit(
    imp: &mut Import,
    op: &Op,
    x: &Quanta,
    y: &Quanta,
    function: Option<UnaryKind>,
    f: impl Fn(i32) -> i32,
) -> Result<()> {
    let data = imp.input(op, 0)?;
    let table = table(imp, x, y, f)?;
    imp.emit(op, lookup(function, x, y), &[Some(data), Some(table)])
}

/// Emits `operator` on quantised tensors, and a node of its own for an activation that `operator` cannot
/// take.
pub fn emit_activated(
    imp: &mut Import,
    op: &Op,
    operator: impl kilim_core::ops::Operator,
    inputs: &[Option<ValueId>],
    activation: Activation,
) -> Result<()> {
    if activation == Activation::None {
        return imp.emit(op, operator, inputs);
    }
    let y = Quanta::output(imp, op)?;
    let [low, high] = y.range(activation)?;
    let value = imp.step(operator, inputs)?;
    let table = table(imp, &y, &y, |v| v.max(low).min(high))?;
    let operator = lookup(clamp(activation), &y, &y);
    imp.emit(op, operator, &[Some(value), Some(table)])
}

fn clamp(activation: Activation) -> Option<UnaryKind> {
    match activation {
        Activation::Clip { min, max } => Some(UnaryKind::Clip {
            min: min.into(),
            max: max.into(),
        }),
        Activation::Relu => Some(UnaryKind::Relu),
        _ => None,
    }
}

/// The factor from the scale of `x` to that of `y`.
fn rescaled(x: &Quanta, y: &Quanta, by: f32) -> Result<Factor> {
    Factor::new(f64::from(x.scale * by / y.scale))
}

fn relu_like(imp: &mut Import, op: &Op, activation: Activation) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let (factor, [low, high]) = (rescaled(&x, &y, 1.0)?, y.range(activation)?);
    emit(imp, op, &x, &y, clamp(activation), |v| {
        (y.zero_point + factor.apply(v - x.zero_point))
            .max(low)
            .min(high)
    })
}

pub fn relu(imp: &mut Import, op: &Op) -> Result<()> {
    relu_like(imp, op, Activation::Relu)
}

macro_rules! clipped {
    ($($name:ident => $min:expr, $max:expr);* $(;)?) => {
        $(pub fn $name(imp: &mut Import, op: &Op) -> Result<()> {
            relu_like(imp, op, Activation::Clip { min: $min, max: $max })
        })*
    };
}

clipped!(
    relu6 => 0.0, 6.0;
    relu_n1_to_1 => -1.0, 1.0;
    relu_0_to_1 => 0.0, 1.0;
);

pub fn leaky_relu(imp: &mut Import, op: &Op) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let alpha = op.float(0)?;
    let positive = rescaled(&x, &y, 1.0)?;
    let mut negative = rescaled(&x, &y, alpha.abs())?;
    if alpha < 0.0 {
        negative.multiplier = -negative.multiplier;
    }
    let function = UnaryKind::LeakyRelu { alpha };
    emit(imp, op, &x, &y, Some(function), |v| {
        let v = v - x.zero_point;
        let factor = if v >= 0 { positive } else { negative };
        y.zero_point + factor.apply(v)
    })
}

/// A function with results in -1..1 or 0..1, in fixed point with four bits before the point. Its
/// results have `bits` bits behind the point, and `zero` stands for zero.
fn squashed(
    imp: &mut Import,
    op: &Op,
    function: UnaryKind,
    f: fn(i32, u32) -> i32,
    bits: u32,
    low: i32,
) -> Result<()> {
    const INTEGER: u32 = 4;
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let factor = Factor::new(f64::from(x.scale) * f64::from(1 << (31 - INTEGER)))?;
    let radius = radius(INTEGER, factor);
    let (smallest, largest) = limits(y.dtype)?;
    // Zero is the smallest byte, or the middle one where there are negative results.
    let zero = smallest - low;
    emit(imp, op, &x, &y, Some(function), |v| {
        let v = v - x.zero_point;
        if v <= -radius {
            return smallest;
        }
        if v >= radius {
            return largest;
        }
        zero + divide_by_power(f(factor.apply(v), INTEGER), 31 - bits)
    })
}

/// The largest difference that scaled by `factor` has at most `integer` bits before the point
/// (`CalculateInputRadius`).
pub fn radius(integer: u32, factor: Factor) -> i32 {
    let largest = f64::from((1 << integer) - 1) * f64::from(1 << (31 - integer));
    (largest / 2f64.powi(factor.shift)).floor() as i32
}

pub fn logistic(imp: &mut Import, op: &Op) -> Result<()> {
    squashed(imp, op, UnaryKind::Sigmoid, fixed::logistic::<32>, 8, 0)
}

pub fn tanh(imp: &mut Import, op: &Op) -> Result<()> {
    squashed(imp, op, UnaryKind::Tanh, fixed::tanh::<32>, 7, -128)
}

/// Maps HARD_SWISH: `x * relu6(x + 3) / 6` in 16 bits.
pub fn hard_swish(imp: &mut Import, op: &Op) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let fine = 1.0 / 128.0 * x.scale;
    let outer = Factor::new((fine / y.scale).into())?;
    let inner = Factor::new((fine / (3.0 / 32768.0)).into())?;
    if outer.shift > 0 {
        return Err(unsupported(
            "a HARD_SWISH whose output has a finer scale than its input",
        ));
    }
    let halved = |f: Factor| f.multiplier.saturating_add(1 << 15) >> 16;
    let saturated =
        |v: i32, shift: i32| (i64::from(v) << shift).clamp(i16::MIN.into(), i16::MAX.into()) as i32;
    emit(imp, op, &x, &y, Some(UnaryKind::HardSwish), |v| {
        let v = (v - x.zero_point) << 7;
        let scaled = high_product::<16>(v, halved(outer));
        let mut part = v;
        if inner.shift > 0 {
            part = saturated(part, inner.shift - 1);
        }
        part = high_product::<16>(part, halved(inner));
        match inner.shift {
            1.. => part = saturated(part, 1),
            0 => {}
            _ => part = divide_by_power(part, inner.shift.unsigned_abs()),
        }
        let part = (part + (1 << 15)) >> 1;
        y.zero_point + divide_by_power(part * scaled / (1 << 15), outer.shift.unsigned_abs())
    })
}

/// A function in floating point, as TFLite fills its own tables.
fn real(imp: &mut Import, op: &Op, f: impl Fn(f32) -> f32) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let inverse = 1.0 / y.scale;
    emit(imp, op, &x, &y, None, |v| {
        let real = f(x.scale * (v - x.zero_point) as f32);
        ((real * inverse).round() + y.zero_point as f32) as i32
    })
}

/// Functions are taken of double precision: its roundings are too small to be seen in a byte.
fn precise(f: impl Fn(f64) -> f64) -> impl Fn(f32) -> f32 {
    move |x| f(x.into()) as f32
}

pub fn elu(imp: &mut Import, op: &Op) -> Result<()> {
    real(imp, op, precise(|x| if x < 0.0 { x.exp_m1() } else { x }))
}

pub fn exp(imp: &mut Import, op: &Op) -> Result<()> {
    real(imp, op, precise(f64::exp))
}

pub fn log(imp: &mut Import, op: &Op) -> Result<()> {
    real(imp, op, precise(f64::ln))
}

pub fn gelu(imp: &mut Import, op: &Op) -> Result<()> {
    if !op.flag(0)? {
        return Err(unsupported("the exact GELU of quantised data"));
    }
    let root = (2.0 / std::f64::consts::PI).sqrt();
    let gelu = move |x: f64| 0.5 * x * (1.0 + (root * (x + 0.044_715 * x.powi(3))).tanh());
    real(imp, op, precise(gelu))
}

pub fn rsqrt(imp: &mut Import, op: &Op) -> Result<()> {
    real(imp, op, precise(|x| 1.0 / x.sqrt()))
}

pub fn abs(imp: &mut Import, op: &Op) -> Result<()> {
    let (x, y) = (Quanta::input(imp, op, 0)?, Quanta::output(imp, op)?);
    let factor = rescaled(&x, &y, 1.0)?;
    emit(imp, op, &x, &y, None, |v| {
        y.zero_point + factor.apply((v - x.zero_point).abs())
    })
}

pub fn neg(imp: &mut Import, op: &Op) -> Result<()> {
    real(imp, op, |x| -x)
}

/// QUANTIZE of numbers that are quantised already, or of real ones.
pub fn requantize(imp: &mut Import, op: &Op) -> Result<()> {
    let info = imp.info(op, 0)?;
    if info.dtype()? == DType::F32 {
        let y = Quanta::of_any(imp.output_info(op, 0)?)?;
        let operator = AffineQuantize {
            scale: y.scale,
            zero_point: y.zero_point,
            output: y.dtype,
        };
        let data = imp.input(op, 0)?;
        return imp.emit(op, operator, &[Some(data)]);
    }
    let (x, y) = (
        Quanta::of_any(info)?,
        Quanta::of_any(imp.output_info(op, 0)?)?,
    );
    let factor = Factor::new(f64::from(x.scale) / f64::from(y.scale))?;
    let shifted = |v: i32| factor.apply(v).saturating_add(y.zero_point);
    if x.dtype.size() == 1 && y.dtype.size() == 1 {
        let function = Some(UnaryKind::Identity);
        return emit(imp, op, &x, &y, function, |v| shifted(v - x.zero_point));
    }
    if x.zero_point != 0 {
        return Err(unsupported(format!("{} with a zero point", x.dtype)));
    }
    let data = imp.input(op, 0)?;
    let (low, high) = limits(y.dtype)?;
    let operator = Requantize {
        factors: vec![factor],
        zero_point: y.zero_point,
        range: [low, high],
        output: y.dtype,
    };
    imp.emit(op, operator, &[Some(data)])
}

/// Parts of other scales than the output's are brought to it first.
pub fn concatenation(imp: &mut Import, op: &Op) -> Result<()> {
    let y = Quanta::output(imp, op)?;
    let mut parts = Vec::with_capacity(op.input_count());
    for i in 0..op.input_count() {
        let (part, x) = (imp.input(op, i)?, Quanta::input(imp, op, i)?);
        parts.push(Some(if x == y {
            part
        } else {
            let scale = x.scale * (1.0 / y.scale);
            let bias = -(x.zero_point as f32) * scale;
            let table = table(imp, &x, &y, |v| {
                ((v as f32 * scale + bias).round() as i32).saturating_add(y.zero_point)
            })?;
            let operator = lookup(Some(UnaryKind::Identity), &x, &y);
            imp.step(operator, &[Some(part), Some(table)])?
        }));
    }
    let axis = op.int(0)?.into();
    emit_activated(imp, op, Concat { axis }, &parts, op.activation(1)?)
}

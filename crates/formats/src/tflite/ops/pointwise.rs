//! Pointwise operators and changes of element type.

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Binary, BinaryKind, Cast, DequantizeLinear, Reshape, Unary, UnaryKind, Where,
};
use kilim_core::tensor::Tensor;

use super::super::import::{Import, Op};
use super::super::schema::TensorInfo;

fn unary(imp: &mut Import, op: &Op, kind: UnaryKind) -> Result<()> {
    let x = imp.input(op, 0)?;
    imp.emit(op, Unary(kind), &[Some(x)])
}

/// Two inputs, and the fused activation in slot 0 of the operators that have one.
fn fused(imp: &mut Import, op: &Op, kind: BinaryKind) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    let activation = op.activation(0)?;
    if imp.output_info(op, 0)?.dtype()? == DType::F32 {
        return imp.emit(op, Binary { kind, activation }, &inputs);
    }
    imp.emit_activated(op, Binary::new(kind), &inputs, activation)
}

fn binary(imp: &mut Import, op: &Op, kind: BinaryKind) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    imp.emit(op, Binary::new(kind), &inputs)
}

macro_rules! rows {
    ($how:ident: $($name:ident => $kind:expr),* $(,)?) => {
        $(pub fn $name(imp: &mut Import, op: &Op) -> Result<()> { $how(imp, op, $kind) })*
    };
}

rows!(unary:
    floor => UnaryKind::Floor,
    ceil => UnaryKind::Ceil,
    round => UnaryKind::Round,
    logistic => UnaryKind::Sigmoid,
    tanh => UnaryKind::Tanh,
    relu => UnaryKind::Relu,
    relu6 => UnaryKind::Clip { min: 0.0, max: 6.0 },
    relu_n1_to_1 => UnaryKind::Clip { min: -1.0, max: 1.0 },
    relu_0_to_1 => UnaryKind::Clip { min: 0.0, max: 1.0 },
    hard_swish => UnaryKind::HardSwish,
    elu => UnaryKind::Elu { alpha: 1.0 },
    exp => UnaryKind::Exp,
    log => UnaryKind::Log,
    sqrt => UnaryKind::Sqrt,
    sin => UnaryKind::Sin,
    cos => UnaryKind::Cos,
    neg => UnaryKind::Neg,
    abs => UnaryKind::Abs,
    sign => UnaryKind::Sign,
    logical_not => UnaryKind::Not,
);

rows!(fused:
    add => BinaryKind::Add,
    sub => BinaryKind::Sub,
    mul => BinaryKind::Mul,
    div => BinaryKind::Div,
);

rows!(binary:
    maximum => BinaryKind::Max,
    minimum => BinaryKind::Min,
    pow => BinaryKind::Pow,
    prelu => BinaryKind::PRelu,
    less => BinaryKind::Less,
    less_equal => BinaryKind::LessOrEqual,
    greater => BinaryKind::Greater,
    greater_equal => BinaryKind::GreaterOrEqual,
    equal => BinaryKind::Equal,
    logical_or => BinaryKind::Or,
    logical_and => BinaryKind::And,
    bitwise_xor => BinaryKind::BitwiseXor,
    floor_mod => BinaryKind::Mod,
);

pub fn leaky_relu(imp: &mut Import, op: &Op) -> Result<()> {
    let alpha = op.float(0)?;
    unary(imp, op, UnaryKind::LeakyRelu { alpha })
}

pub fn gelu(imp: &mut Import, op: &Op) -> Result<()> {
    let tanh = op.flag(0)?;
    unary(imp, op, UnaryKind::Gelu { tanh })
}

pub fn rsqrt(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let root = imp.step(Unary(UnaryKind::Sqrt), &[Some(x)])?;
    imp.emit(op, Unary(UnaryKind::Reciprocal), &[Some(root)])
}

pub fn square(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    imp.emit(op, Binary::new(BinaryKind::Mul), &[Some(x), Some(x)])
}

pub fn squared_difference(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    let d = imp.step(Binary::new(BinaryKind::Sub), &inputs)?;
    imp.emit(op, Binary::new(BinaryKind::Mul), &[Some(d), Some(d)])
}

pub fn not_equal(imp: &mut Import, op: &Op) -> Result<()> {
    let inputs = [imp.optional(op, 0)?, imp.optional(op, 1)?];
    let equal = imp.step(Binary::new(BinaryKind::Equal), &inputs)?;
    imp.emit(op, Unary(UnaryKind::Not), &[Some(equal)])
}

/// Rounds towards minus infinity; integer division truncates, so the remainder goes first.
pub fn floor_div(imp: &mut Import, op: &Op) -> Result<()> {
    let (a, b) = (imp.optional(op, 0)?, imp.optional(op, 1)?);
    if imp.output_info(op, 0)?.dtype()?.is_float() {
        let quotient = imp.step(Binary::new(BinaryKind::Div), &[a, b])?;
        return imp.emit(op, Unary(UnaryKind::Floor), &[Some(quotient)]);
    }
    let rest = imp.step(Binary::new(BinaryKind::Mod), &[a, b])?;
    let whole = imp.step(Binary::new(BinaryKind::Sub), &[a, Some(rest)])?;
    imp.emit(op, Binary::new(BinaryKind::Div), &[Some(whole), b])
}

pub fn add_n(imp: &mut Import, op: &Op) -> Result<()> {
    let mut sum: ValueId = imp.input(op, 0)?;
    let last = op.input_count().saturating_sub(1);
    if last == 0 {
        return imp.emit(op, Unary(UnaryKind::Identity), &[Some(sum)]);
    }
    for i in 1..last {
        let x = imp.input(op, i)?;
        sum = imp.step(Binary::new(BinaryKind::Add), &[Some(sum), Some(x)])?;
    }
    let x = imp.input(op, last)?;
    imp.emit(op, Binary::new(BinaryKind::Add), &[Some(sum), Some(x)])
}

/// SELECT takes a condition of rank 1 along the first dimension, SELECT_V2 broadcasts all three.
pub fn select(imp: &mut Import, op: &Op) -> Result<()> {
    let mut condition = imp.input(op, 0)?;
    let (a, b) = (imp.input(op, 1)?, imp.input(op, 2)?);
    let rank = imp.input_rank(op, 1)?;
    if op.name == "SELECT" && imp.input_rank(op, 0)? == 1 && rank > 1 {
        let mut shape = vec![1; rank];
        shape[0] = -1;
        let shape = imp.i64s(&shape)?;
        let reshape = Reshape { allow_zero: false };
        condition = imp.step(reshape, &[Some(condition), Some(shape)])?;
    }
    imp.emit(op, Where, &[Some(condition), Some(a), Some(b)])
}

pub fn cast(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let to = imp.output_info(op, 0)?.dtype()?;
    imp.emit(op, Cast::new(to), &[Some(x)])
}

/// Maps DEQUANTIZE: half-precision weights become weights in single precision, quantised tensors their real
/// numbers.
pub fn dequantize(imp: &mut Import, op: &Op) -> Result<()> {
    let info = imp.info(op, 0)?;
    if !matches!(info.dtype()?, DType::F16 | DType::BF16) {
        let (scale, zero, axis) = parameters(imp, info)?;
        let x = imp.input(op, 0)?;
        let operator = DequantizeLinear { axis, block: 0 };
        return imp.emit(op, operator, &[Some(x), Some(scale), Some(zero)]);
    }
    if let Some(tensor) = imp.constant_input(op, 0)? {
        let wide: Vec<f32> = match tensor.dtype() {
            DType::F16 => tensor
                .as_slice::<half::f16>()?
                .iter()
                .map(|v| v.to_f32())
                .collect(),
            _ => tensor.to_f64s()?.into_iter().map(|v| v as f32).collect(),
        };
        imp.set_constant(op, Tensor::from_slice(tensor.shape(), &wide)?);
        return Ok(());
    }
    let x = imp.input(op, 0)?;
    imp.emit(op, Cast::new(DType::F32), &[Some(x)])
}

/// Scale and zero point of a quantised tensor as constants, and their axis.
fn parameters(imp: &mut Import, info: &TensorInfo) -> Result<(ValueId, ValueId, i64)> {
    let Some(q) = &info.quantization else {
        return Err(Error::new(
            ErrorCode::InvalidModel,
            "a quantised tensor has no scale",
        ));
    };
    let dims: &[usize] = if q.scale.len() == 1 {
        &[]
    } else {
        &[q.scale.len()]
    };
    let zeros: Vec<i64> = (0..q.scale.len())
        .map(|i| {
            q.zero_point
                .get(i)
                .or(q.zero_point.first())
                .map_or(0, |&z| z)
        })
        .collect();
    let out_of_range = || Error::new(ErrorCode::InvalidModel, "a zero point is out of range");
    macro_rules! narrow {
        ($t:ty) => {{
            let narrow: std::result::Result<Vec<$t>, _> =
                zeros.iter().map(|&z| <$t>::try_from(z)).collect();
            Tensor::from_slice(dims, &narrow.map_err(|_| out_of_range())?)?
        }};
    }
    let zero = match info.dtype()? {
        DType::U8 => narrow!(u8),
        DType::I8 => narrow!(i8),
        DType::I16 => narrow!(i16),
        DType::I32 => narrow!(i32),
        other => return Err(unsupported(format!("quantised {other} tensors"))),
    };
    let axis = if dims.is_empty() { 0 } else { q.axis as i64 };
    let scale = Tensor::from_slice(dims, &q.scale)?;
    let scale = imp.node_constant("scale", scale);
    let zero = imp.node_constant("zero_point", zero);
    Ok((scale, zero, axis))
}

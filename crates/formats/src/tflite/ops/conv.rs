//! Convolutions, pooling and matrix products. TFLite's data is `[n, h, w, c]`.

use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Activation, AveragePool, Binary, BinaryKind, Conv, ConvTranspose, MatMul, MaxPool, Padding,
    Reshape, Transpose, Unary, UnaryKind, Window,
};

use super::super::import::{Import, Op};

fn padding(op: &Op, slot: usize) -> Result<Padding> {
    match op.enumeration(slot)? {
        0 => Ok(Padding::SameUpper),
        1 => Ok(Padding::Valid),
        other => Err(Error::new(
            ErrorCode::InvalidModel,
            format!("padding number {other}"),
        )),
    }
}

fn divide(whole: usize, part: usize, what: &str) -> Result<usize> {
    if part == 0 || !whole.is_multiple_of(part) || whole == 0 {
        return Err(Error::new(
            ErrorCode::InvalidModel,
            format!("{what}: {whole} channels do not divide into {part}"),
        ));
    }
    Ok(whole / part)
}

/// Weights `[m, kernel.., c / groups]`: the convolution, and the weights in the graph's order.
pub fn spatial(imp: &mut Import, op: &Op) -> Result<(Conv, ValueId)> {
    let groups = divide(imp.input_dim(op, 0, 3)?, imp.input_dim(op, 1, 3)?, "groups")?;
    let conv = Conv {
        padding: padding(op, 0)?,
        strides: vec![op.positive(2, 1)?, op.positive(1, 1)?],
        dilations: vec![op.positive(5, 1)?, op.positive(4, 1)?],
        groups,
        channels_last: true,
        activation: op.activation(3)?,
    };
    Ok((conv, imp.permuted(op, 1, &[0, 3, 1, 2])?))
}

/// The convolution for depthwise weights `[1, kernel.., c * multiplier]`, and the weights in the graph's
/// order.
pub fn depthwise(imp: &mut Import, op: &Op) -> Result<(Conv, ValueId)> {
    let groups = imp.input_dim(op, 0, 3)?;
    divide(imp.input_dim(op, 1, 3)?, groups, "multiplier")?;
    let conv = Conv {
        padding: padding(op, 0)?,
        strides: vec![op.positive(2, 1)?, op.positive(1, 1)?],
        dilations: vec![op.positive(6, 1)?, op.positive(5, 1)?],
        groups,
        channels_last: true,
        activation: op.activation(4)?,
    };
    Ok((conv, imp.permuted(op, 1, &[3, 0, 1, 2])?))
}

pub fn conv_2d(imp: &mut Import, op: &Op) -> Result<()> {
    let (conv, weights) = spatial(imp, op)?;
    let inputs = [imp.optional(op, 0)?, Some(weights), imp.optional(op, 2)?];
    imp.emit(op, conv, &inputs)
}

pub fn depthwise_conv_2d(imp: &mut Import, op: &Op) -> Result<()> {
    let (conv, weights) = depthwise(imp, op)?;
    let inputs = [imp.optional(op, 0)?, Some(weights), imp.optional(op, 2)?];
    imp.emit(op, conv, &inputs)
}

/// Weights `[d, h, w, c / groups, m]`.
pub fn conv_3d(imp: &mut Import, op: &Op) -> Result<()> {
    let groups = divide(imp.input_dim(op, 0, 4)?, imp.input_dim(op, 1, 3)?, "groups")?;
    let weights = imp.permuted(op, 1, &[4, 3, 0, 1, 2])?;
    let conv = Conv {
        padding: padding(op, 0)?,
        strides: vec![op.positive(1, 1)?, op.positive(3, 1)?, op.positive(2, 1)?],
        dilations: vec![op.positive(5, 1)?, op.positive(7, 1)?, op.positive(6, 1)?],
        groups,
        channels_last: true,
        activation: op.activation(4)?,
    };
    let inputs = [imp.optional(op, 0)?, Some(weights), imp.optional(op, 2)?];
    imp.emit(op, conv, &inputs)
}

/// Inputs: output shape, weights `[m, kernel.., c]`, data, optional bias. The padding is that of
/// the convolution whose gradient this is.
pub fn transpose_conv(imp: &mut Import, op: &Op) -> Result<()> {
    let strides = [op.positive(2, 1)?, op.positive(1, 1)?];
    let same = padding(op, 0)? == Padding::SameUpper;
    let (mut begins, mut ends) = (vec![0; 2], vec![0; 2]);
    let mut output_padding = vec![0; 2];
    for axis in 0..2 {
        let (data, out) = (imp.info(op, 2)?, imp.output_info(op, 0)?);
        let fixed = |t: &super::super::schema::TensorInfo| {
            let dynamic = t.dynamic.get(axis + 1).copied().unwrap_or(true);
            t.shape.get(axis + 1).copied().filter(|_| !dynamic)
        };
        let asked = match imp.constant_input(op, 0)? {
            Some(t) => t.to_i64s()?.get(axis + 1).map(|&d| d.max(0) as usize),
            None => fixed(out),
        };
        let (Some(input), Some(output)) = (fixed(data), asked) else {
            return Err(unsupported("spatial dimensions known only at run time"));
        };
        let kernel = imp.input_dim(op, 1, axis + 1)?;
        let full = input
            .saturating_sub(1)
            .saturating_mul(strides[axis])
            .saturating_add(kernel);
        let total = full.saturating_sub(output);
        if !same && total > 0 {
            return Err(unsupported("VALID padding that crops the output"));
        }
        begins[axis] = total / 2;
        ends[axis] = total - total / 2;
        output_padding[axis] = output.saturating_sub(full);
    }
    begins.append(&mut ends);
    let conv = ConvTranspose {
        strides: strides.to_vec(),
        dilations: vec![1, 1],
        padding: Padding::Explicit(begins),
        output_padding,
        output_shape: None,
        groups: 1,
        channels_last: true,
        activation: op.activation(3)?,
    };
    let weights = imp.permuted(op, 1, &[3, 0, 1, 2])?;
    let inputs = [imp.optional(op, 2)?, Some(weights), imp.optional(op, 3)?];
    imp.emit(op, conv, &inputs)
}

fn window(op: &Op) -> Result<Window> {
    Ok(Window {
        padding: padding(op, 0)?,
        strides: vec![op.positive(2, 1)?, op.positive(1, 1)?],
        kernel: vec![op.positive(4, 1)?, op.positive(3, 1)?],
        dilations: vec![1, 1],
        ceil_mode: false,
    })
}

/// The pooling, and the activation fused into it.
pub fn average(op: &Op) -> Result<(AveragePool, Activation)> {
    let pool = AveragePool {
        window: window(op)?,
        count_include_pad: false,
        channels_last: true,
        activation: Activation::None,
    };
    Ok((pool, op.activation(5)?))
}

/// The max pooling, and the activation fused into it.
pub fn maximum(op: &Op) -> Result<(MaxPool, Activation)> {
    let pool = MaxPool {
        window: window(op)?,
        column_major: false,
        channels_last: true,
    };
    Ok((pool, op.activation(5)?))
}

pub fn average_pool(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let (pool, activation) = average(op)?;
    imp.emit(op, AveragePool { activation, ..pool }, &[Some(x)])
}

pub fn max_pool(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let (pool, activation) = maximum(op)?;
    imp.emit_activated(op, pool, &[Some(x)], activation)
}

/// The root of the mean of the squares.
pub fn l2_pool(imp: &mut Import, op: &Op) -> Result<()> {
    let x = imp.input(op, 0)?;
    let squares = imp.step(Binary::new(BinaryKind::Mul), &[Some(x), Some(x)])?;
    let pool = AveragePool {
        window: window(op)?,
        count_include_pad: false,
        channels_last: true,
        activation: Activation::None,
    };
    let mean = imp.step(pool, &[Some(squares)])?;
    let root = Unary(UnaryKind::Sqrt);
    imp.emit_activated(op, root, &[Some(mean)], op.activation(5)?)
}

/// Weights `[m, k]`; unless `keep_num_dims`, the data becomes `[-1, k]` first.
pub fn fully_connected(imp: &mut Import, op: &Op) -> Result<()> {
    let (x, activation) = flattened(imp, op)?;
    let product = MatMul {
        transpose_b: true,
        alpha: None,
        activation,
    };
    let inputs = [Some(x), imp.optional(op, 1)?, imp.optional(op, 2)?];
    imp.emit(op, product, &inputs)
}

/// The data as a matrix, and the fused activation.
pub fn flattened(imp: &mut Import, op: &Op) -> Result<(ValueId, Activation)> {
    if op.enumeration(1)? != 0 {
        return Err(unsupported("shuffled weights"));
    }
    let mut x = imp.input(op, 0)?;
    let k = imp.input_dim(op, 1, 1)?;
    let rank = imp.input_rank(op, 0)?;
    if (!op.flag(2)? && rank != 2) || rank < 2 {
        let shape = imp.i64s(&[-1, i64::try_from(k).unwrap_or(i64::MAX)])?;
        let reshape = Reshape { allow_zero: false };
        x = imp.step(reshape, &[Some(x), Some(shape)])?;
    }
    Ok((x, op.activation(0)?))
}

pub fn batch_matmul(imp: &mut Import, op: &Op) -> Result<()> {
    let mut a: ValueId = imp.input(op, 0)?;
    let rank = imp.input_rank(op, 0)?;
    if op.flag(0)? && rank >= 2 {
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(rank - 1, rank - 2);
        a = imp.step(Transpose { perm }, &[Some(a)])?;
    }
    let product = MatMul {
        transpose_b: op.flag(1)?,
        alpha: None,
        activation: Activation::None,
    };
    let b = imp.optional(op, 1)?;
    imp.emit(op, product, &[Some(a), b])
}

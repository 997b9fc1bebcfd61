//! Normalisations.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BatchNorm, GroupNorm, InstanceNorm, LayerNorm, LpNorm, Lrn, MeanVarianceNorm, ReduceKind,
    RmsNorm, UnaryKind,
};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub static OPERATORS: Family = OpTable(&[
    ("BatchNormalization", batch_norm),
    ("GroupNormalization", group_norm),
    ("InstanceNormalization", |b| {
        let epsilon = epsilon(b)?;
        b.emit_same(InstanceNorm { epsilon })
    }),
    ("LRN", lrn),
    ("LayerNormalization", layer_norm),
    ("LpNormalization", lp_norm),
    ("MeanVarianceNormalization", |b| {
        let axes = b.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
        b.emit_same(MeanVarianceNorm { axes })
    }),
    ("RMSNormalization", rms_norm),
]);

/// The statistics, outputs 1 and 2, are of the type of the first stage.
fn layer_norm(b: &mut NodeBuilder) -> Result<()> {
    let axis = b.int_or("axis", -1)?;
    let epsilon = epsilon(b)?;
    let stage = dtype(b.int_or("stash_type", 1)?)?;
    let inputs = b.inputs_from(0)?;
    let count = b.output_count();
    let outputs = b.apply(LayerNorm { axis, epsilon }, &inputs, count)?;
    for (i, y) in outputs.into_iter().enumerate() {
        let y = match i > 0 && b.has_output(i) {
            true => b.cast(y, stage)?,
            false => y,
        };
        b.bind(i, y)?;
    }
    Ok(())
}

/// Data and scale may differ in type; the result is of the scale's.
fn rms_norm(b: &mut NodeBuilder) -> Result<()> {
    let axis = b.int_or("axis", -1)?;
    let op = RmsNorm {
        axis,
        epsilon: epsilon(b)?,
    };
    let (x, scale) = (b.input(0)?, b.input(1)?);
    let types = [b.dtype(x), b.dtype(scale)];
    if types[0] == types[1] || !types.contains(&Some(DType::F64)) {
        return b.emit(op, &[Some(x), Some(scale)]);
    }
    let wide = [b.cast(x, DType::F64)?, b.cast(scale, DType::F64)?];
    let y = b.op(op, &wide)?;
    let y = b.cast_like(y, scale)?;
    b.bind(0, y)
}

fn epsilon(b: &NodeBuilder) -> Result<f32> {
    b.float_or("epsilon", 1e-5)
}

fn batch_norm(b: &mut NodeBuilder) -> Result<()> {
    let per_element = b.version() < 9 && b.int_or("spatial", 1)? == 0;
    let op = BatchNorm {
        epsilon: epsilon(b)?,
        channels_last: false,
    };
    let training = match b.version() {
        ..7 => b.int_or("is_test", 0)? == 0 && b.has_output(1),
        7..14 => b.has_output(1),
        _ => b.flag("training_mode")?,
    };
    if per_element {
        if training {
            return Err(unsupported(
                "training with statistics per element (spatial = 0)",
            ));
        }
        return batch_norm_per_element(b, op.epsilon);
    }
    if !training {
        b.only_outputs(1)?;
        let x = b.input(0)?;
        let mut inputs = vec![Some(x)];
        for i in 1..5 {
            let parameter = b.input(i)?;
            inputs.push(Some(fitting(b, parameter, x)?));
        }
        let y = b.apply(op, &inputs, 1)?;
        return b.bind(0, y[0]);
    }
    batch_norm_training(b, op)
}

/// A parameter in the type of `x` where one of them is `float64`; narrower types are widened by the kernels.
fn fitting(b: &mut NodeBuilder, parameter: ValueId, x: ValueId) -> Result<ValueId> {
    let types = [b.dtype(x), b.dtype(parameter)];
    match types[0] != types[1] && types.contains(&Some(DType::F64)) {
        true => b.cast_like(parameter, x),
        false => Ok(parameter),
    }
}

/// Normalises with scale, bias and statistics of the shape of one item of the batch.
fn batch_norm_per_element(b: &mut NodeBuilder, epsilon: f32) -> Result<()> {
    b.only_outputs(1)?;
    let [x, scale, bias, mean, variance] = [0, 1, 2, 3, 4].map(|i| b.input(i));
    let (x, variance) = (x?, variance?);
    let epsilon = b.number(epsilon.into(), variance)?;
    let variance = b.add(variance, epsilon)?;
    let deviation = b.unary(UnaryKind::Sqrt, variance)?;
    let centred = b.sub(x, mean?)?;
    let normalised = b.div(centred, deviation)?;
    let scaled = b.mul(normalised, scale?)?;
    let y = b.add(scaled, bias?)?;
    b.bind(0, y)
}

/// Normalises with the statistics of the batch, towards which the running ones move. Before operator set 14
/// they are outputs, too.
fn batch_norm_training(b: &mut NodeBuilder, op: BatchNorm) -> Result<()> {
    let x = b.input(0)?;
    let axes: Vec<i64> = (0..b.rank(x)? as i64).filter(|&a| a != 1).collect();
    let mean = b.reduce(ReduceKind::Mean, x, &axes, true)?;
    let centred = b.sub(x, mean)?;
    let squares = b.mul(centred, centred)?;
    let mean = b.squeeze(mean, &axes)?;
    let variance = b.reduce(ReduceKind::Mean, squares, &axes, false)?;
    let (scale, bias) = (b.input(1)?, b.input(2)?);
    let (scale, bias) = (fitting(b, scale, x)?, fitting(b, bias, x)?);
    let y = b.op(op, &[x, scale, bias, mean, variance])?;
    b.bind(0, y)?;
    let momentum = f64::from(b.float_or("momentum", 0.9)?);
    for (output, input, current) in [(1, 3, mean), (2, 4, variance)] {
        let running = b.input(input)?;
        let keep = b.number(momentum, running)?;
        let take = b.number(1.0 - momentum, running)?;
        let kept = b.mul(running, keep)?;
        let current = b.cast_like(current, running)?;
        let taken = b.mul(current, take)?;
        let updated = b.add(kept, taken)?;
        b.bind(output, updated)?;
        b.bind(output + 2, current)?;
    }
    Ok(())
}

fn group_norm(b: &mut NodeBuilder) -> Result<()> {
    let groups = b.count("num_groups", None)?;
    let op = GroupNorm {
        groups,
        epsilon: epsilon(b)?,
    };
    if b.version() >= 21 {
        return b.emit_same(op);
    }
    // Before operator set 21 scale and bias stand once for each group.
    let x = b.input(0)?;
    let mut inputs = vec![Some(x)];
    for i in [1, 2] {
        let per_group = b.input(i)?;
        inputs.push(Some(per_channel(b, x, per_group, groups)?));
    }
    b.emit(op, &inputs)
}

fn per_channel(
    b: &mut NodeBuilder,
    x: ValueId,
    per_group: ValueId,
    groups: usize,
) -> Result<ValueId> {
    if groups == 0 {
        return Err(invalid("the attribute `num_groups` is 0"));
    }
    let groups = b.i64s(&[groups as i64])?;
    let known = b.fact(x).shape.and_then(|s| s.0.get(1)?.known());
    let size = match (known, b.constant(groups)) {
        (Some(channels), Some(g)) => {
            let size = channels as i64 / g.to_i64s()?.first().copied().unwrap_or(1);
            b.i64s(&[size])?
        }
        _ => {
            let channels = b.dim(x, 1)?;
            b.div(channels, groups)?
        }
    };
    let column = b.unsqueeze(per_group, &[1])?;
    let shape = b.concat(&[groups, size], 0)?;
    let table = b.expand(column, shape)?;
    b.reshape(table, &[-1])
}

fn lp_norm(b: &mut NodeBuilder) -> Result<()> {
    let axis = b.int_or("axis", -1)?;
    let p = b.int_or("p", 2)?;
    let p = u32::try_from(p).map_err(|_| invalid(format!("the attribute `p` is {p}")))?;
    b.emit_same(LpNorm { axis, p })
}

fn lrn(b: &mut NodeBuilder) -> Result<()> {
    let op = Lrn {
        alpha: b.float_or("alpha", 1e-4)?,
        beta: b.float_or("beta", 0.75)?,
        bias: b.float_or("bias", 1.0)?,
        size: b.count("size", None)?,
        channels_last: false,
    };
    b.emit_same(op)
}

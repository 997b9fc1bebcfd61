//! Operators that read or write by index.

use kilim_core::DType;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::*;

use super::Kernels;
use super::movement::{around, filled, ok};
use super::select::carrier;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::{MAX_RANK, Params};
use crate::storage::{Scalar, scalar};
use crate::walk::strides;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Gather>(gather);
    kernels.add::<GatherCast>(|op, l| gather(&op.0, l));
    kernels.add::<GatherElements>(|op, l| elements(op.axis, None, l));
    kernels.add::<ScatterElements>(|op, l| elements(op.axis, Some(op.reduction), l));
    kernels.add::<MaxUnpool>(max_unpool);
    kernels.add::<Compress>(compress);
    kernels.add::<ReverseSequence>(reverse);
    kernels.add::<GatherNd>(gather_nd);
    kernels.add::<ScatterNd>(scatter_nd);
    kernels.add::<OneHot>(one_hot);
}

/// How the shaders read indices of a type: their `INDEX`.
pub(crate) fn index_type(dtype: DType) -> Lowers<&'static str> {
    match (dtype, scalar(dtype)) {
        (DType::I64, _) => Ok("i64"),
        (_, Some(scalar)) => Ok(scalar.name),
        _ => refuse(format!("indices of type {dtype} are not on the GPU")),
    }
}

/// Refuses indices that are known and out of range: the CPU reports them.
fn in_range(l: &Lowering, input: usize, size: usize) -> Lowers {
    let value = l.optional(input).and_then(|s| s.value.as_ref());
    let Some(value) = value else { return Ok(()) };
    let size = size as i64;
    if ok(value.to_i64s())?
        .iter()
        .any(|i| !(-size..size).contains(i))
    {
        return refuse("an index is out of range");
    }
    Ok(())
}

fn gather(op: &Gather, l: &mut Lowering) -> Lowers {
    let (x, indices, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [_, size, mut inner] = around(&x.shape, axis);
    in_range(l, 1, size)?;
    let index = index_type(indices.dtype)?;
    let mut t = carrier(x.dtype)?;
    let mut count = y.elements();
    if t == "u32" && inner.is_multiple_of(4) {
        t = "vec4u";
        inner /= 4;
        count /= 4;
    }
    l.linear(
        "gather",
        &[("T", t), ("INDEX", index)],
        &[
            Operand::Input(0),
            Operand::Input(1),
            Operand::Output(0),
            Operand::Fault,
        ],
        Params::new()
            .u(count)
            .u(indices.elements())
            .u(size)
            .u(inner),
        count,
    );
    Ok(())
}

/// What the shaders of scatters are made for: the elements' type, and what they do where they write.
fn combining(
    reduction: Option<ScatterReduction>,
    dtype: DType,
) -> Lowers<[(&'static str, &'static str); 3]> {
    let name = match reduction {
        None | Some(ScatterReduction::None) => {
            let scatter = if reduction.is_some() { "1" } else { "0" };
            let t = carrier(dtype)?;
            return Ok([("T", t), ("SCATTER", scatter), ("REDUCTION", "None")]);
        }
        Some(ScatterReduction::Add) => "Add",
        Some(ScatterReduction::Mul) => "Mul",
        Some(ScatterReduction::Max) => "Max",
        Some(ScatterReduction::Min) => "Min",
    };
    // Nothing wraps narrower elements here.
    match scalar(dtype) {
        Some(Scalar { name: t, spare: 0 }) if dtype != DType::Bool => {
            Ok([("T", t), ("SCATTER", "1"), ("REDUCTION", name)])
        }
        _ => refuse(format!(
            "scattering {dtype} with a reduction is not on the GPU"
        )),
    }
}

/// GatherElements, or with a reduction ScatterElements.
fn elements(axis: i64, scatter: Option<ScatterReduction>, l: &mut Lowering) -> Lowers {
    let (x, indices) = (l.input(0)?, l.input(1)?);
    let axis = ok(normalize_axis(axis, x.shape.len()))?;
    if x.shape.len() > MAX_RANK {
        return refuse(format!("the GPU kernel has at most {MAX_RANK} dimensions"));
    }
    in_range(l, 1, x.shape[axis])?;
    let mut walk = strides(&x.shape);
    let stride = std::mem::take(&mut walk[axis]);
    let count = indices.elements();
    let params = Params::new()
        .dims(&indices.shape)
        .dims(&walk)
        .u(walk.len())
        .u(count)
        .u(x.shape[axis])
        .u(stride);
    by_indices("elements", scatter, params, count, l)
}

/// Launches what moves elements from where indices say, or with a reduction to there.
fn by_indices(
    shader: &'static str,
    scatter: Option<ScatterReduction>,
    params: Params,
    count: usize,
    l: &mut Lowering,
) -> Lowers {
    let (x, indices) = (l.input(0)?, l.input(1)?);
    let [t, scattered, reduction] = combining(scatter, x.dtype)?;
    let source = if scatter.is_some() {
        super::copy::whole(l)?;
        Operand::Input(2)
    } else {
        Operand::Input(0)
    };
    l.linear(
        shader,
        &[
            t,
            ("INDEX", index_type(indices.dtype)?),
            scattered,
            reduction,
        ],
        &[
            source,
            Operand::Input(1),
            Operand::Output(0),
            Operand::Fault,
        ],
        params,
        count,
    );
    Ok(())
}

/// The common part of GatherND and ScatterND; `count` elements are moved.
fn slices(
    l: &mut Lowering,
    batch_dims: usize,
    scatter: Option<ScatterReduction>,
    count: usize,
) -> Lowers {
    let (x, indices) = (l.input(0)?, l.input(1)?);
    let Some((&coordinates, tuples)) = indices.shape.split_last() else {
        return refuse("the indices have no coordinates");
    };
    if coordinates > MAX_RANK
        || batch_dims + coordinates > x.shape.len()
        || batch_dims > tuples.len()
    {
        return refuse("too many coordinates for the GPU kernel");
    }
    let sizes = &x.shape[batch_dims..batch_dims + coordinates];
    if let Some(value) = &indices.value {
        let known = ok(value.to_i64s())?;
        let outside = |(i, &v): (usize, &i64)| {
            let size = sizes[i % coordinates] as i64;
            !(-size..size).contains(&v)
        };
        if coordinates > 0 && known.iter().enumerate().any(outside) {
            return refuse("an index is out of range");
        }
    }
    let inner: usize = x.shape[batch_dims + coordinates..].iter().product();
    let params = Params::new()
        .dims(sizes)
        .dims(&strides(&x.shape)[batch_dims..batch_dims + coordinates])
        .u(coordinates)
        .u(count)
        .u(inner)
        .u(tuples[batch_dims..].iter().product())
        .u(x.shape[batch_dims..].iter().product());
    by_indices("slices", scatter, params, count, l)
}

fn gather_nd(op: &GatherNd, l: &mut Lowering) -> Lowers {
    let count = l.output(0)?.elements();
    slices(l, op.batch_dims, None, count)
}

fn scatter_nd(op: &ScatterNd, l: &mut Lowering) -> Lowers {
    let count = l.input(2)?.elements();
    slices(l, 0, Some(op.reduction), count)
}

fn one_hot(op: &OneHot, l: &mut Lowering) -> Lowers {
    let (indices, y) = (l.input(0)?, l.output(0)?);
    let axis = ok(normalize_axis(op.axis, y.shape.len()))?;
    let [_, depth, inner] = around(&y.shape, axis);
    let count = y.elements();
    l.linear(
        "one_hot",
        &[
            ("T", carrier(y.dtype)?),
            ("INDEX", index_type(indices.dtype)?),
        ],
        &[Operand::Input(0), Operand::Input(2), Operand::Output(0)],
        Params::new().u(count).u(depth).u(inner),
        count,
    );
    Ok(())
}

/// The output is zero but where the indices, of the whole tensor, say.
fn max_unpool(op: &MaxUnpool, l: &mut Lowering) -> Lowers {
    let (x, indices, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let pooled = NodeSpec {
        inputs: &l.node.inputs[..2.min(l.node.inputs.len())],
        ..l.node.clone()
    };
    if ok(op.output_shape(&x.shape, &pooled))? != y.shape {
        return refuse("another output shape than that of the pooling is not on the GPU");
    }
    filled(l, Operand::Output(0), [0, 0], y)?;
    let [t, scattered, reduction] = combining(Some(ScatterReduction::None), x.dtype)?;
    let count = x.elements();
    let (source, target) = (Operand::Input(0), Operand::Output(0));
    l.linear(
        "elements",
        &[
            t,
            ("INDEX", index_type(indices.dtype)?),
            scattered,
            reduction,
        ],
        &[source, Operand::Input(1), target, Operand::Fault],
        Params::new()
            .dims(&[count])
            .dims(&[0])
            .u(1)
            .u(count)
            .u(y.elements())
            .u(1),
        count,
    );
    Ok(())
}

/// A Gather of what the condition keeps, which is known while planning.
fn compress(op: &Compress, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let [_, size, inner] = match op.axis {
        Some(axis) => around(&x.shape, ok(normalize_axis(axis, x.shape.len()))?),
        None => [1, x.elements(), 1],
    };
    let selected = ok(op.selected(size, l.node))?;
    let count = y.elements();
    let params = Params::new()
        .u(count)
        .u(selected.len().max(1))
        .u(size)
        .u(inner);
    let table = l.table(selected.into_iter().map(|i| i as u32).collect());
    l.linear(
        "gather",
        &[("T", carrier(x.dtype)?), ("INDEX", "u32")],
        &[Operand::Input(0), table, Operand::Output(0), Operand::Fault],
        params,
        count,
    );
    Ok(())
}

fn reverse(op: &ReverseSequence, l: &mut Lowering) -> Lowers {
    let (x, lengths) = (l.input(0)?, l.input(1)?);
    let (batch, time) = (op.batch_axis, op.time_axis);
    if batch.max(time) != 1 || batch == time || x.shape.len() < 2 {
        return refuse("batch and time are the first two axes");
    }
    let own = strides(&x.shape);
    let count = x.elements();
    l.linear(
        "reverse",
        &[
            ("T", carrier(x.dtype)?),
            ("INDEX", index_type(lengths.dtype)?),
        ],
        &[
            Operand::Input(0),
            Operand::Input(1),
            Operand::Output(0),
            Operand::Fault,
        ],
        Params::new()
            .u(count)
            .u(x.shape[batch])
            .u(x.shape[time])
            .u(own[batch])
            .u(own[time]),
        count,
    );
    Ok(())
}

//! Operators that read or write by index.

mod packed;
mod qkv;
mod tensor_scatter;

use kilim_core::DType;
use kilim_core::backend::NodeSpec;
use kilim_core::interrupt::{Interrupt, Meter};
use kilim_core::ops::{
    Compress, Gather, GatherCast, GatherElements, GatherNd, MaxUnpool, OneHot, ReverseSequence,
    ScatterElements, ScatterNd, ScatterReduction, normalize_axis,
};

use crate::device::storage::{Scalar, scalar};
use crate::kernels::Kernels;
use crate::kernels::movement::{copy, filled};
use crate::lowering::elements::{carrier, carrier4, index_type};
use crate::lowering::walk::{MAX_RANK, around, strides};
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::index::{
    bounds as bounds_shader, elements as elements_shader, gather as gather_shader,
    one_hot as one_hot_shader, reverse as reverse_shader, slices as slices_shader,
};
use crate::shaders::shared::by_indices::{Case, CombineReduction};
use crate::shaders::{Index, Operand, Target};

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
    packed::register(kernels);
    qkv::register(kernels);
    tensor_scatter::register(kernels);
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

/// Sees to it that the first `count` numbers of an `int32` input are of `0..size`: those that are not known are looked at by a launch.
pub(crate) fn within(l: &mut Lowering, input: usize, count: usize, size: usize) -> Lowers {
    let Some(value) = l.optional(input).and_then(|s| s.value.as_ref()) else {
        let indices = Operand::Input(input);
        let params = bounds_shader::Params { count, size };
        l.linear(bounds_shader::Launch { indices, params }, count);
        return Ok(());
    };
    let inside = |&i: &i64| usize::try_from(i).is_ok_and(|i| i < size);
    match ok(value.to_i64s())?.iter().take(count).all(inside) {
        true => Ok(()),
        false => refuse("an index is out of range"),
    }
}

fn gather(op: &Gather, l: &mut Lowering) -> Lowers {
    let (x, indices, y) = (l.input(0)?, l.input(1)?, l.output(0)?);
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [_, size, mut inner] = around(&x.shape, axis);
    in_range(l, 1, size)?;
    let (t, unit) = carrier4(x.dtype, inner.is_multiple_of(4))?;
    inner /= unit;
    let count = y.elements() / unit;
    let launch = gather_shader::Launch {
        t,
        index: index_type(indices.dtype)?,
        x: Operand::Input(0),
        indices: Operand::Input(1),
        y: Target::Output(0),
        params: gather_shader::Params {
            count,
            picked: indices.elements(),
            size,
            inner,
        },
    };
    l.linear(launch, count);
    Ok(())
}

/// What moves elements of a type to, or without `scatter` from, where indices say.
fn by_indices(scatter: Option<ScatterReduction>, dtype: DType) -> Lowers<Case> {
    let reduction = match scatter {
        None | Some(ScatterReduction::None) => {
            return Ok(Case::Move {
                t: carrier(dtype)?,
                scatter: scatter.is_some(),
            });
        }
        Some(ScatterReduction::Add) => CombineReduction::Add,
        Some(ScatterReduction::Mul) => CombineReduction::Mul,
        Some(ScatterReduction::Max) => CombineReduction::Max,
        Some(ScatterReduction::Min) => CombineReduction::Min,
    };
    // Nothing wraps narrower elements here.
    match scalar(dtype) {
        Some(Scalar { word: t, spare: 0 }) if dtype != DType::Bool => {
            Ok(Case::Combine { t, reduction })
        }
        _ => refuse(format!(
            "scattering {dtype} with a reduction is not on the GPU"
        )),
    }
}

/// Input 0 where elements are moved from there; where they are scattered over it, the updates, and the
/// output is its copy.
fn source(scatter: Option<ScatterReduction>, l: &mut Lowering) -> Lowers<Operand> {
    if scatter.is_none() {
        return Ok(Operand::Input(0));
    }
    copy::whole(l)?;
    Ok(Operand::Input(2))
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
    let launch = elements_shader::Launch {
        case: by_indices(scatter, x.dtype)?,
        index: index_type(indices.dtype)?,
        x: source(scatter, l)?,
        indices: Operand::Input(1),
        y: Target::Output(0),
        params: elements_shader::Params {
            dims: &indices.shape,
            walk: &walk,
            rank: walk.len(),
            count,
            size: x.shape[axis],
            stride,
        },
    };
    l.linear(launch, count);
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
    let launch = slices_shader::Launch {
        case: by_indices(scatter, x.dtype)?,
        index: index_type(indices.dtype)?,
        x: source(scatter, l)?,
        indices: Operand::Input(1),
        y: Target::Output(0),
        params: slices_shader::Params {
            sizes,
            walk: &strides(&x.shape)[batch_dims..batch_dims + coordinates],
            coordinates,
            count,
            inner,
            tuples: tuples[batch_dims..].iter().product(),
            batch: x.shape[batch_dims..].iter().product(),
        },
    };
    l.linear(launch, count);
    Ok(())
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
    let launch = one_hot_shader::Launch {
        t: carrier(y.dtype)?,
        index: index_type(indices.dtype)?,
        indices: Operand::Input(0),
        values: Operand::Input(2),
        y: Target::Output(0),
        params: one_hot_shader::Params {
            count,
            depth,
            inner,
        },
    };
    l.linear(launch, count);
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
    filled(l, Target::Output(0), [0, 0], y)?;
    let count = x.elements();
    let launch = elements_shader::Launch {
        case: by_indices(Some(ScatterReduction::None), x.dtype)?,
        index: index_type(indices.dtype)?,
        x: Operand::Input(0),
        indices: Operand::Input(1),
        y: Target::Output(0),
        params: elements_shader::Params {
            dims: &[count],
            walk: &[0],
            rank: 1,
            count,
            size: y.elements(),
            stride: 1,
        },
    };
    l.linear(launch, count);
    Ok(())
}

/// A Gather of what the condition keeps, which is known while planning.
fn compress(op: &Compress, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    let [_, size, inner] = match op.axis {
        Some(axis) => around(&x.shape, ok(normalize_axis(axis, x.shape.len()))?),
        None => [1, x.elements(), 1],
    };
    let selected = ok(op.selected(&Meter::new(&Interrupt::NEVER), size, l.node))?;
    let count = y.elements();
    let picked = selected.len().max(1);
    let table = l.table(selected.into_iter().map(|i| i as u32).collect());
    let (t, _) = carrier4(x.dtype, false)?;
    let launch = gather_shader::Launch {
        t,
        index: Index::U32,
        x: Operand::Input(0),
        indices: table,
        y: Target::Output(0),
        params: gather_shader::Params {
            count,
            picked,
            size,
            inner,
        },
    };
    l.linear(launch, count);
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
    let launch = reverse_shader::Launch {
        t: carrier(x.dtype)?,
        index: index_type(lengths.dtype)?,
        x: Operand::Input(0),
        lengths: Operand::Input(1),
        y: Target::Output(0),
        params: reverse_shader::Params {
            count,
            batch: x.shape[batch],
            time: x.shape[time],
            batch_step: own[batch],
            time_step: own[time],
        },
    };
    l.linear(launch, count);
    Ok(())
}

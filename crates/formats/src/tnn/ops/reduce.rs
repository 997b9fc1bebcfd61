//! Reductions, softmax, and places of the largest numbers.

use kilim_core::dtype::DType;
use kilim_core::error::unsupported;
use kilim_core::ops::{ArgReduce, ReduceKind, Softmax, SoftmaxKind, TopK};

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::layer::Layer;

/// Whether dimensions are kept, then axes: all where there are none.
pub fn of(imp: &mut Import, layer: &Layer, kind: ReduceKind) -> Outputs {
    let x = layer.input(0)?;
    let mut params = layer.params();
    let keep = params.int(0)? != 0;
    let mut axes = params.ints(params.left())?;
    if axes.is_empty() {
        axes = (0..imp.rank(x)? as i64).collect();
    }
    Ok(vec![imp.reduce(kind, x, &axes, keep)?])
}

fn softmax_of(imp: &mut Import, layer: &Layer, kind: SoftmaxKind) -> Outputs {
    let softmax = Softmax {
        kind,
        axis: layer.params().int(1)?,
        beta: 1.0,
    };
    Ok(vec![imp.op(softmax, &[layer.input(0)?])?])
}

pub fn softmax(imp: &mut Import, layer: &Layer) -> Outputs {
    softmax_of(imp, layer, SoftmaxKind::Softmax)
}

pub fn log_softmax(imp: &mut Import, layer: &Layer) -> Outputs {
    softmax_of(imp, layer, SoftmaxKind::LogSoftmax)
}

/// The layer `ArgMaxOrMin`: the first of equal numbers counts.
pub fn arg(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let arg = ArgReduce {
        max: params.int(0)? != 0,
        axis: params.int(0)?,
        keep_dims: params.int(1)? != 0,
        select_last: false,
        output: DType::I32,
    };
    if params.int(0)? != 0 {
        return Err(unsupported("the last of equal numbers"));
    }
    Ok(vec![imp.op(arg, &[layer.input(0)?])?])
}

pub fn top_k(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let top = TopK {
        axis: params.int(-1)?,
        largest: params.int(1)? != 0,
        sorted: params.int(1)? != 0,
    };
    let k = match (layer.inputs.get(1), params.int(-1)?) {
        (Some(&k), _) => imp.as_sizes(k)?,
        (None, k) => imp.i64s(&[k])?,
    };
    let made = imp.apply(top, &[Some(layer.input(0)?), Some(k)], 2)?;
    let places = imp.cast(made[1], DType::I32)?;
    Ok(vec![made[0], places])
}

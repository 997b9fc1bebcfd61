//! Constants, shapes and element types.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{ConstantOfShape, OneHot, Range, Size};
use kilim_core::tensor::Tensor;

use super::Outputs;
use crate::tnn::import::Import;
use crate::tnn::invalid;
use crate::tnn::layer::Layer;
use crate::tnn::model::element_type;

/// The layer `Cast`. How exactly floats are stored is not kept.
pub fn cast(imp: &mut Import, layer: &Layer) -> Outputs {
    let to = match element_type(layer.params().int(0)?)? {
        DType::F16 | DType::BF16 => DType::F32,
        to => to,
    };
    Ok(vec![imp.cast(layer.input(0)?, to)?])
}

/// The layer `Const`: numbers in the shape that the network gives.
pub fn constant(imp: &mut Import, layer: &Layer) -> Outputs {
    let dims = layer.params().list()?;
    let dims: Option<Vec<usize>> = dims.iter().map(|&n| usize::try_from(n).ok()).collect();
    let dims = dims.ok_or_else(|| invalid("a dimension is negative"))?;
    Ok(vec![match imp.buffer(layer, 0)? {
        None => imp.weights(layer, 0, "numbers", &dims)?,
        Some(buffer) => {
            let value = imp.node_constant("numbers", buffer.tensor.reshaped(&dims)?);
            imp.widened(value)?
        }
    }])
}

/// The layer `ConstantOfShape`: one number everywhere.
pub fn constant_of_shape(imp: &mut Import, layer: &Layer) -> Outputs {
    let value = imp.as_stored(layer, 0, "a number")?.tensor;
    if value.len() != 1 {
        return Err(invalid("one number is to be repeated").with_got(value.len()));
    }
    let shape = imp.as_sizes(layer.input(0)?)?;
    let made = imp.op(
        ConstantOfShape {
            value: value.reshaped(&[1])?,
        },
        &[shape],
    )?;
    Ok(vec![imp.widened(made)?])
}

pub fn shape(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let Some(dims) = imp.shape(x) else {
        let dims = imp.shape_of(x)?;
        return Ok(vec![imp.cast(dims, DType::I32)?]);
    };
    let dims: Option<Vec<i32>> = dims.iter().map(|&n| i32::try_from(n).ok()).collect();
    let dims = dims.ok_or_else(|| unsupported("sizes beyond 32 bits"))?;
    let tensor = Tensor::from_slice(&[dims.len()], &dims)?;
    Ok(vec![imp.tensor_value(tensor)])
}

pub fn size(imp: &mut Import, layer: &Layer) -> Outputs {
    let size = imp.op(Size, &[layer.input(0)?])?;
    Ok(vec![imp.cast(size, DType::I32)?])
}

/// A blob of one number as a scalar.
fn scalar(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    match imp.rank(x)? {
        0 => Ok(x),
        _ => imp.reshape(x, &[]),
    }
}

pub fn range(imp: &mut Import, layer: &Layer) -> Outputs {
    let ends = [layer.input(0)?, layer.input(1)?, layer.input(2)?];
    let [start, limit, delta] = ends.map(|x| scalar(imp, x));
    Ok(vec![imp.op(Range, &[start?, limit?, delta?])?])
}

pub fn one_hot(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut params = layer.params();
    let axis = params.int(-1)?;
    let depth = params.positive(0)? as i64;
    let (off, on) = (params.float(0.0)?, params.float(1.0)?);
    let values = Tensor::from_slice(&[2], &[off, on])?;
    let inputs = [
        layer.input(0)?,
        imp.i64(depth)?,
        imp.node_constant("values", values),
    ];
    Ok(vec![imp.op(OneHot { axis }, &inputs)?])
}

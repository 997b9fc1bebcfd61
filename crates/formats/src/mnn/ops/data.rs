//! Constants, shapes, and numbers that are made.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{ConstantOfShape, OneHot, Range, ShapeOf, Size, Where};
use kilim_core::tensor::Tensor;

use super::Outputs;
use super::arrange::one;
use crate::mnn::blob;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::layout::Layout;
use crate::mnn::op::{Op, Params};

/// The tables of parameters.
const ONE_HOT: u8 = 83;
const SHAPE: u8 = 101;

/// Numbers of a LinSpace that are written out.
const MOST: i64 = 1 << 16;

/// The operators Const and TrainableParam.
pub fn constant(imp: &mut Import, op: &Op) -> Outputs {
    let blob = op.params(blob::TABLE)?;
    imp.gives(Layout::of(blob::layout_number(&blob)?)?);
    let tensor = blob::tensor(&blob, imp.numbers)?;
    let halves = matches!(tensor.dtype(), DType::F16 | DType::BF16);
    let name = imp.node_name().to_string();
    let value = imp.add_constant(&name, tensor);
    match halves {
        true => Ok(vec![imp.cast(value, DType::F32)?]),
        false => Ok(vec![value]),
    }
}

/// The operator Shape. One that was made for NHWC tells of pictures in that order.
pub fn shape(imp: &mut Import, op: &Op) -> Outputs {
    let (x, p): (ValueId, Params) = (op.input(0)?, op.params(SHAPE)?);
    imp.gives(op.info.layout);
    let turned = op.layout() == Layout::Nc4hw4 && op.info.layout == Layout::Nhwc;
    let bound = |has: usize, at: usize| -> Result<Option<i64>> {
        Ok(match p.flag(has, false)? {
            true => Some(p.int(at, 0)?.into()),
            false => None,
        })
    };
    let (start, end) = (bound(0, 1)?, bound(2, 3)?);
    if !turned || imp.rank(x)? != 4 {
        let shape = ShapeOf {
            start: start.unwrap_or(0),
            end,
        };
        let shape = imp.op(shape, &[x])?;
        return Ok(vec![imp.cast(shape, DType::I32)?]);
    }
    let mut dims = Vec::new();
    for axis in [0, 2, 3, 1] {
        dims.push(imp.dim(x, axis)?);
    }
    let mut shape = imp.vector(&dims)?;
    if start.is_some() || end.is_some() {
        shape = imp.slice(shape, 0, start.unwrap_or(0), end.unwrap_or(4))?;
    }
    Ok(vec![imp.cast(shape, DType::I32)?])
}

/// The operator Size.
pub fn size(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    imp.gives(op.info.layout);
    let size = imp.op(Size, &[x])?;
    Ok(vec![imp.cast(size, DType::I32)?])
}

/// The operator Rank.
pub fn rank(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    imp.gives(op.info.layout);
    let rank = Tensor::scalar(imp.rank(x)? as i32)?;
    Ok(vec![imp.tensor_value(rank)])
}

/// The operator Fill: one number in a shape.
pub fn fill(imp: &mut Import, op: &Op) -> Outputs {
    let (shape, value) = (op.input(0)?, op.input(1)?);
    imp.gives(op.layouts[1]);
    let shape = imp.vector_of(shape)?;
    Ok(vec![imp.expand(value, shape)?])
}

/// The operator ZerosLike.
pub fn zeros_like(imp: &mut Import, op: &Op) -> Outputs {
    let x = op.input(0)?;
    let dtype = imp.dtype(x);
    let dtype = dtype.ok_or_else(|| unsupported("zeros of an unknown element type"))?;
    let shape = imp.shape_of(x)?;
    let value = Tensor::zeros(dtype, &[1])?;
    Ok(vec![imp.op(ConstantOfShape { value }, &[shape])?])
}

/// The operator Range.
pub fn range(imp: &mut Import, op: &Op) -> Outputs {
    let mut bounds = [op.input(0)?, op.input(1)?, op.input(2)?];
    if let Some(list) = imp.counted(bounds)? {
        return Ok(vec![list]);
    }
    for bound in &mut bounds {
        if imp.rank(*bound)? > 0 {
            *bound = imp.reshape(*bound, &[])?;
        }
    }
    Ok(vec![imp.op(Range, &bounds)?])
}

/// The operator LinSpace: so many numbers from one to another, in equal steps.
pub fn lin_space(imp: &mut Import, op: &Op) -> Outputs {
    let (start, stop) = (op.input(0)?, op.input(1)?);
    let count = one(imp, op.input(2)?, "the number of steps")?;
    if !(1..=MOST).contains(&count) {
        return Err(unsupported("so many numbers between two").with_got(count));
    }
    let steps: Vec<f32> = (0..count)
        .map(|i| i as f32 / (count - 1).max(1) as f32)
        .collect();
    let steps = Tensor::from_slice(&[steps.len()], &steps)?;
    let steps = imp.tensor_value(steps);
    let (start, stop) = (imp.cast(start, DType::F32)?, imp.cast(stop, DType::F32)?);
    let (start, stop) = (imp.reshape(start, &[])?, imp.reshape(stop, &[])?);
    let length = imp.sub(stop, start)?;
    let way = imp.mul(steps, length)?;
    Ok(vec![imp.add(way, start)?])
}

/// The operator OneHot: indices, their number, what stands at an index and elsewhere.
pub fn one_hot(imp: &mut Import, op: &Op) -> Outputs {
    let (indices, depth, on, off) = (op.input(0)?, op.input(1)?, op.input(2)?, op.input(3)?);
    let axis = op.params(ONE_HOT)?.int(1, -1)?.into();
    let (off, on) = (imp.reshape(off, &[1])?, imp.reshape(on, &[1])?);
    let values = imp.concat(&[off, on], 0)?;
    let depth = imp.scalar_of(depth)?;
    Ok(vec![imp.op(OneHot { axis }, &[indices, depth, values])?])
}

/// The operator Select: the second input where the first is not 0, else the third.
pub fn select(imp: &mut Import, op: &Op) -> Outputs {
    let (condition, a, b) = (op.input(0)?, op.input(1)?, op.input(2)?);
    imp.gives(op.layouts[1]);
    let condition = imp.truths(condition)?;
    if imp.dtype(a) != imp.dtype(b) {
        return Err(invalid("a choice between numbers of different types"));
    }
    Ok(vec![imp.op(Where, &[condition, a, b])?])
}

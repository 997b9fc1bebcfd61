//! The image that overlapping columns add up to.

use super::Padding;
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};
use crate::ops::axes::MAX_RANK;
use crate::ops::rules::{ANY, INDICES, InputValues, fact, sizes, too_large, unify, wrong_count};
use crate::ops::window::{WindowAxis, window_rules};

/// Inputs: `[n, c * block, blocks]`, image shape, block shape. Empty steps are ones, empty pads zeros.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Col2Im {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub pads: Vec<usize>,
}

/// The blocks of [`Col2Im`] and where they lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Col2ImGeometry {
    pub batch: usize,
    pub channels: usize,
    /// One axis for each dimension of the image: `input` is the image's size, `kernel` the block's,
    /// `output` the number of blocks along it.
    pub axes: Vec<WindowAxis>,
}

impl Col2ImGeometry {
    /// The geometry, from the shape of the data and the values of image and block shape.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where they do not fit each other.
    pub fn new(op: &Col2Im, x: &[usize], values: &dyn InputValues) -> Result<Col2ImGeometry> {
        let axes = op.axes(values)?;
        let shape = op.shape(&Shape::fixed(x), &axes)?;
        Ok(Col2ImGeometry {
            batch: x[0],
            channels: shape.0[1].known().unwrap_or(0),
            axes,
        })
    }
}

impl Col2Im {
    fn axes(&self, values: &dyn InputValues) -> Result<Vec<WindowAxis>> {
        let image = sizes(&values.need_ints(1)?, "an image dimension")?;
        let block = sizes(&values.need_ints(2)?, "a block dimension")?;
        if image.len() != block.len() {
            return Err(wrong_count("the block shape", image.len(), block.len()));
        }
        let or = |given: &[usize], n: usize, default: usize| match given {
            [] => vec![default; n],
            given => given.to_vec(),
        };
        let n = block.len();
        let padding = Padding::Explicit(or(&self.pads, 2 * n, 0));
        let (strides, dilations) = (or(&self.strides, n, 1), or(&self.dilations, n, 1));
        window_rules(&block, &strides, &dilations, &padding, false)?
            .iter()
            .zip(&image)
            .map(|(rule, &input)| rule.resolve(input))
            .collect()
    }

    fn shape(&self, x: &Shape, axes: &[WindowAxis]) -> Result<Shape> {
        if x.rank() != 3 {
            return Err(shape_error("Col2Im takes columns of rank 3")
                .with_expected("[n, c * block, blocks]")
                .with_got(x));
        }
        let count = |f: fn(&WindowAxis) -> usize| {
            axes.iter()
                .try_fold(1usize, |n, a| n.checked_mul(f(a)))
                .ok_or_else(too_large)
        };
        let (blocks, block) = (count(|a| a.output)?, count(|a| a.kernel)?);
        unify(&x.0[2], &Dim::Known(blocks), || {
            "the number of blocks".into()
        })?;
        if let Dim::Known(c) = x.0[1]
            && !c.is_multiple_of(block)
        {
            return Err(shape_error("the columns do not divide into blocks")
                .with_expected(format!("a multiple of {block}"))
                .with_got(c));
        }
        let mut dims = vec![x.0[0].clone(), x.0[1].map(|c| Some(c / block))];
        dims.extend(axes.iter().map(|a| Dim::Known(a.input)));
        Ok(Shape(dims))
    }
}

impl Operator for Col2Im {
    fn name(&self) -> &'static str {
        "Col2Im"
    }

    signature! { (data, image_shape, block_shape) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &ANY)?;
        ctx.typed(1, &INDICES)?;
        ctx.typed(2, &INDICES)?;
        let x = ctx.shape_of_rank(0, 3)?;
        let shape = if ctx.known(self.value_inputs()) {
            let axes = self.axes(ctx)?;
            let unknown = Shape::unknown(3);
            Some(self.shape(x.unwrap_or(&unknown), &axes)?)
        } else {
            let spatial = ctx.length(1)?;
            spatial.map(|n| Shape::unknown(n.saturating_add(2).min(MAX_RANK)))
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2]
    }
}

//! Blocks of space that become channels or batches, and back.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error, value_error};
use crate::fact::Fact;
use crate::graph::{Axes, Flow, InferContext, Operator, Spatial};
use crate::ops::rules::{InputValues, fact, sizes, sum, times, too_large, wrong_count};
use crate::ops::window::{arrange, layout};

/// Blocks of the channel dimension become space. NCHW, or NHWC with `channels_last`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct DepthToSpace {
    pub block: usize,
    /// Column-row-depth order; false is depth-column-row.
    pub crd: bool,
    pub channels_last: bool,
}

/// The inverse of [`DepthToSpace`] in depth-column-row order.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SpaceToDepth {
    pub block: usize,
    pub channels_last: bool,
}

/// TFLite's SPACE_TO_BATCH_ND on NHWC-like data; inputs: data, block shape `[m]`, paddings `[m, 2]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SpaceToBatch;

/// TFLite's BATCH_TO_SPACE_ND; inputs: data, block shape `[m]`, crops `[m, 2]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct BatchToSpace;

/// `dim / by`; `Shape` where it does not divide.
fn divide(dim: &Dim, by: usize, what: &str) -> Result<Dim> {
    match dim {
        d if by == 1 => Ok(d.clone()),
        Dim::Known(n) if by > 0 && n.is_multiple_of(by) => Ok(Dim::Known(n / by)),
        Dim::Known(n) => Err(shape_error(format!("{what} does not divide into blocks"))
            .with_expected(format!("a multiple of {by}"))
            .with_got(n)),
        _ => Ok(Dim::Unknown),
    }
}

/// Moves blocks between channels and space; `to_space` says which way.
fn blocks(ctx: &InferContext, block: usize, last: bool, to_space: bool) -> Result<Vec<Fact>> {
    let dtype = ctx.dtype(0)?;
    let area = block.checked_mul(block).ok_or_else(too_large)?;
    if block == 0 {
        return Err(value_error("a block must not be empty"));
    }
    let Some(x) = ctx.shape_of_rank(0, 4)? else {
        return Ok(vec![fact(dtype, Some(Shape::unknown(4)))]);
    };
    let (channel, spatial) = layout(4, last);
    let channels = if to_space {
        divide(&x.0[channel], area, "the number of channels")?
    } else {
        times(&x.0[channel], &Dim::Known(area))?
    };
    let scaled = x.0[spatial].iter().map(|d| {
        if to_space {
            times(d, &Dim::Known(block))
        } else {
            divide(d, block, "a spatial dimension")
        }
    });
    let scaled = scaled.collect::<Result<Vec<_>>>()?;
    let shape = arrange(x.0[0].clone(), channels, &scaled, last);
    Ok(vec![fact(dtype, Some(Shape(shape)))])
}

impl Operator for DepthToSpace {
    fn name(&self) -> &'static str {
        "DepthToSpace"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        blocks(ctx, self.block, self.channels_last, true)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = || DepthToSpace {
            channels_last: true,
            ..self.clone()
        };
        let turned = (!self.channels_last).then(turned);
        Some(Spatial::new(turned, false))
    }
}

impl Operator for SpaceToDepth {
    fn name(&self) -> &'static str {
        "SpaceToDepth"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        blocks(ctx, self.block, self.channels_last, false)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = || SpaceToDepth {
            channels_last: true,
            ..self.clone()
        };
        let turned = (!self.channels_last).then(turned);
        Some(Spatial::new(turned, false))
    }
}

/// Block shape and padding (or crops) of [`SpaceToBatch`] and [`BatchToSpace`], of the dimensions
/// that follow the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchBlocks {
    pub block: Vec<usize>,
    /// Before and after.
    pub pads: Vec<(usize, usize)>,
}

impl BatchBlocks {
    /// The blocks, from the values of inputs 1 and 2.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where they do not fit data of this rank.
    pub fn new(values: &dyn InputValues, rank: usize) -> Result<BatchBlocks> {
        let block = sizes(&values.need_ints(1)?, "a block dimension")?;
        let pads = sizes(&values.need_ints(2)?, "a padding")?;
        if pads.len() != 2 * block.len() {
            return Err(wrong_count("the padding", 2 * block.len(), pads.len()));
        }
        if block.len() >= rank {
            return Err(shape_error("the block has too many dimensions")
                .with_expected(format!("fewer than {rank}"))
                .with_got(block.len()));
        }
        if block.contains(&0) {
            return Err(value_error("a block must not be empty"));
        }
        Ok(BatchBlocks {
            pads: pads.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
            block,
        })
    }

    /// The number of elements of a block.
    pub fn area(&self) -> Result<usize> {
        let area = self.block.iter().try_fold(1usize, |n, &b| n.checked_mul(b));
        area.ok_or_else(too_large)
    }
}

/// The inference of both directions, given how batch and spatial dimensions change.
fn batch_blocks(
    ctx: &InferContext,
    batch: impl Fn(&Dim, usize) -> Result<Dim>,
    spatial: impl Fn(&Dim, usize, (usize, usize)) -> Result<Dim>,
) -> Result<Vec<Fact>> {
    let dtype = ctx.dtype(0)?;
    ctx.require(3)?;
    let Some(x) = ctx.shape_of_min_rank(0, 2)? else {
        return Ok(vec![fact(dtype, None)]);
    };
    if !ctx.known(&[1, 2]) {
        return Ok(vec![fact(dtype, Some(Shape::unknown(x.rank())))]);
    }
    let blocks = BatchBlocks::new(ctx, x.rank())?;
    let mut shape = x.clone();
    shape.0[0] = batch(&x.0[0], blocks.area()?)?;
    for (i, (&block, &pads)) in blocks.block.iter().zip(&blocks.pads).enumerate() {
        shape.0[i + 1] = spatial(&x.0[i + 1], block, pads)?;
    }
    Ok(vec![fact(dtype, Some(shape))])
}

impl Operator for SpaceToBatch {
    fn name(&self) -> &'static str {
        "SpaceToBatchND"
    }

    signature! { (data, block_shape, paddings) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        batch_blocks(
            ctx,
            |n, area| times(n, &Dim::Known(area)),
            |d, block, (before, after)| {
                let padded = sum(&sum(d, &Dim::Known(before))?, &Dim::Known(after))?;
                divide(&padded, block, "a padded dimension")
            },
        )
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2]
    }
}

impl Operator for BatchToSpace {
    fn name(&self) -> &'static str {
        "BatchToSpaceND"
    }

    signature! { (data, block_shape, crops) -> (output) }

    fn flow(&self) -> Flow {
        Flow::moved(Axes::Other)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        batch_blocks(
            ctx,
            |n, area| divide(n, area, "the batch"),
            |d, block, (before, after)| match times(d, &Dim::Known(block))? {
                whole if before == 0 && after == 0 => Ok(whole),
                Dim::Known(n) => {
                    let crops = before.checked_add(after).ok_or_else(too_large)?;
                    let left = n.checked_sub(crops).ok_or_else(|| {
                        shape_error("more is cropped than there is")
                            .with_expected(format!("at most {n}"))
                            .with_got(crops)
                    })?;
                    Ok(Dim::Known(left))
                }
                _ => Ok(Dim::Unknown),
            },
        )
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2]
    }
}

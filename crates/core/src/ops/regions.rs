//! Pooling of regions.

use super::rules::{FLOATS, INDICES, fact, unify};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};

/// Inputs: data NCHW, regions `[n, 5]` (batch, x1, y1, x2, y2).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct MaxRoiPool {
    pub pooled: [usize; 2],
    pub spatial_scale: f32,
}

/// Inputs: data NCHW, regions `[n, 4]`, batch indices `[n]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct RoiAlign {
    pub output: [usize; 2],
    pub sampling_ratio: usize,
    pub spatial_scale: f32,
    pub max: bool,
    /// Shifts by half a pixel (`coordinate_transformation_mode = half_pixel`).
    pub half_pixel: bool,
}

/// Pools regions of NCHW data: `[regions, c, height, width]`.
fn pool_regions(ctx: &InferContext, columns: usize, out: [usize; 2]) -> Result<Vec<Fact>> {
    ctx.require(2)?;
    ctx.typed(0, &FLOATS)?;
    let dtype = ctx.common_type([0, 1])?;
    let x = ctx.shape_of_rank(0, 4)?;
    let regions = ctx.shape_of_rank(1, 2)?;
    if let Some(r) = regions {
        unify(&r.0[1], &Dim::Known(columns), || "the regions".into())?;
    }
    let count = regions.map_or(Dim::Unknown, |r| r.0[0].clone());
    let channels = x.map_or(Dim::Unknown, |x| x.0[1].clone());
    let [h, w] = out;
    let shape = Shape(vec![count, channels, Dim::Known(h), Dim::Known(w)]);
    Ok(vec![fact(dtype, Some(shape))])
}

impl Operator for MaxRoiPool {
    fn name(&self) -> &'static str {
        "MaxRoiPool"
    }

    signature! { (data, regions) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        pool_regions(ctx, 5, self.pooled)
    }
}

impl Operator for RoiAlign {
    fn name(&self) -> &'static str {
        "RoiAlign"
    }

    signature! { (data, regions, batch_indices) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(2, &INDICES)?;
        let facts = pool_regions(ctx, 4, self.output)?;
        if let Some(regions) = ctx.shape(1)? {
            ctx.vector(2, &regions.0[0])?;
        }
        Ok(facts)
    }
}

//! Deformable convolutions: each tap is shifted by an offset that is an input.

use super::{Conv, ConvGeometry, Padding, check_groups, conv_shape};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, Operator};
use crate::ops::rules::{FLOATS, fact, times, unify_shapes, volume};

/// Inputs: data, weights, offsets, optional bias, optional mask; NCHW.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct DeformConv {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub pads: Vec<usize>,
    pub groups: usize,
    pub offset_groups: usize,
}

impl ConvGeometry {
    /// The geometry of a deformable convolution, from the shapes of data and weights.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shapes and attributes do not fit each other.
    pub fn deformed(op: &DeformConv, x: &[usize], w: &[usize]) -> Result<ConvGeometry> {
        ConvGeometry::new(&op.as_conv(), x, w)
    }
}

impl DeformConv {
    fn as_conv(&self) -> Conv {
        Conv {
            strides: self.strides.clone(),
            dilations: self.dilations.clone(),
            padding: Padding::Explicit(self.pads.clone()),
            groups: self.groups,
            channels_last: false,
            activation: Activation::None,
        }
    }
}

impl Operator for DeformConv {
    fn name(&self) -> &'static str {
        "DeformConv"
    }

    signature! { (data, weights, offsets, optional bias, optional mask) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(3)?;
        ctx.typed(0, &FLOATS)?;
        let dtype = ctx.common_type(0..5)?;
        let (Some(x), Some(w)) = (ctx.shape_of_rank(0, 4)?, ctx.shape_of_rank(1, 4)?) else {
            return Ok(vec![fact(dtype, None)]);
        };
        let shape = conv_shape(&self.as_conv(), x, w)?;
        check_groups(self.offset_groups, &x.0[1], "input channels")?;
        ctx.vector(3, &w.0[0])?;
        let taps = volume(&w.0[2..])?;
        let per_tap = times(&taps, &Dim::Known(self.offset_groups))?;
        for (i, channels) in [(2, times(&per_tap, &Dim::Known(2))?), (4, per_tap)] {
            if let Some(s) = ctx.shape_of_rank(i, 4)? {
                let dims = [&shape.0[..1], &[channels], &shape.0[2..]].concat();
                unify_shapes(s, &Shape(dims), || format!("input {i}"))?;
            }
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        Operator::cost(&self.as_conv(), inputs, outputs)
    }
}

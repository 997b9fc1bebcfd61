//! Convolutions. Data is `[n, c, spatial..]`, or `[n, spatial.., c]` with `channels_last`; weights
//! are `[m, c / groups, kernel..]` in either case (`[c, m / groups, kernel..]` when transposed).

mod deform;
mod image;
mod transpose;

pub use deform::DeformConv;
pub use image::{Col2Im, Col2ImGeometry};
pub use transpose::ConvTranspose;

use std::sync::Arc;

use super::rules::{FLOATS, fact, times, unify, unify_shapes};
use super::window::{WindowAxis, arrange, layout, window_dims, window_rules};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error, value_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, Operator, Spatial};

/// How the padding of a sliding window is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum Padding {
    /// Begin of each spatial axis, then end of each.
    Explicit(Vec<usize>),
    /// Output is `ceil(input / stride)`, the odd element at the end.
    SameUpper,
    /// Output is `ceil(input / stride)`, the odd element at the beginning.
    SameLower,
    Valid,
}

/// Inputs: data, weights, optional bias `[m]`, optional residual of the output's shape that is
/// added before the activation.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Conv {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub padding: Padding,
    pub groups: usize,
    pub channels_last: bool,
    pub activation: Activation,
}

/// A convolution with everything resolved: sizes of data and output, in elements. Of a transposed one
/// ([`ConvGeometry::transposed`]), input element `i` and kernel position `k` of an axis add to output
/// element `i * stride + k * dilation - begin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvGeometry {
    pub batch: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub groups: usize,
    pub channels_last: bool,
    /// Spatial axes, outermost first.
    pub axes: Vec<WindowAxis>,
}

impl ConvGeometry {
    /// The geometry, from the shapes of data `[n, c, spatial..]`, or `[n, spatial.., c]`, and of weights `[m,
    /// c / groups, kernel..]`.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shapes and attributes do not fit each other.
    pub fn new(op: &Conv, x: &[usize], w: &[usize]) -> Result<ConvGeometry> {
        let (xs, ws) = (Shape::fixed(x), Shape::fixed(w));
        conv_shape(op, &xs, &ws)?;
        let (channel, spatial) = layout(x.len(), op.channels_last);
        let axes = window_rules(&w[2..], &op.strides, &op.dilations, &op.padding, false)?
            .iter()
            .zip(&x[spatial])
            .map(|(rule, &input)| rule.resolve(input))
            .collect::<Result<_>>()?;
        Ok(ConvGeometry {
            batch: x[0],
            in_channels: x[channel],
            out_channels: w[0],
            groups: op.groups,
            channels_last: op.channels_last,
            axes,
        })
    }

    /// The shape of the output in the layout of the data.
    pub fn output_shape(&self) -> Vec<usize> {
        let spatial: Vec<usize> = self.axes.iter().map(|a| a.output).collect();
        arrange(self.batch, self.out_channels, &spatial, self.channels_last)
    }
}

/// Channels that `groups` must divide.
fn check_groups(groups: usize, channels: &Dim, what: &str) -> Result<()> {
    if groups == 0 {
        return Err(value_error("the number of groups must not be 0"));
    }
    match channels {
        Dim::Known(c) if !c.is_multiple_of(groups) => {
            Err(shape_error(format!("{what} do not divide into the groups"))
                .with_expected(format!("a multiple of {groups}"))
                .with_got(c))
        }
        _ => Ok(()),
    }
}

/// Data and weights of a convolution: same rank, at least one spatial axis.
fn check_ranks(x: &Shape, w: &Shape) -> Result<()> {
    if x.rank() < 3 {
        return Err(shape_error("a convolution needs a spatial dimension")
            .with_expected("rank 3 or more")
            .with_got(x));
    }
    if x.rank() != w.rank() {
        return Err(shape_error("data and weights differ in rank")
            .with_expected(format!("rank {}", x.rank()))
            .with_got(w));
    }
    Ok(())
}

/// The output shape of a convolution on symbolic shapes.
pub(crate) fn conv_shape(op: &Conv, x: &Shape, w: &Shape) -> Result<Shape> {
    check_ranks(x, w)?;
    let (channel, spatial) = layout(x.rank(), op.channels_last);
    check_groups(op.groups, &w.0[0], "output channels")?;
    let channels = times(&w.0[1], &Dim::Known(op.groups))?;
    unify(&x.0[channel], &channels, || "the number of channels".into())?;
    let dims = window_dims(
        &x.0[spatial],
        &w.0[2..],
        &op.strides,
        &op.dilations,
        &op.padding,
        false,
    )?;
    Ok(Shape(arrange(
        x.0[0].clone(),
        w.0[0].clone(),
        &dims,
        op.channels_last,
    )))
}

/// Two operations for each multiplication of a convolution with these weights.
fn conv_cost(outputs: f64, weights: &[usize], base: Cost) -> Cost {
    let taps: f64 = weights.iter().skip(1).map(|&d| d as f64).product();
    Cost {
        flops: 2.0 * outputs * taps,
        ..base
    }
}

impl Conv {
    /// The convolution of channels-last data; `None` where it is that one.
    pub(super) fn on_channels_last(&self) -> Option<Conv> {
        (!self.channels_last).then(|| Conv {
            channels_last: true,
            ..self.clone()
        })
    }
}

impl Operator for Conv {
    fn name(&self) -> &'static str {
        "Conv"
    }

    signature! { (data, weights, optional bias, optional residual) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        let dtype = ctx.common_type(0..4)?;
        let (Some(x), Some(w)) = (ctx.shape(0)?, ctx.shape(1)?) else {
            return Ok(vec![fact(dtype, None)]);
        };
        let mut shape = conv_shape(self, x, w)?;
        ctx.vector(2, &w.0[0])?;
        if let Some(residual) = ctx.shape_optional(3) {
            shape = unify_shapes(residual, &shape, || "the residual".into())?;
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        match inputs.get(1) {
            Some(Some(w)) => conv_cost(base.flops, w, base),
            _ => base,
        }
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let activated = || Conv {
            activation,
            ..self.clone()
        };
        (self.activation == Activation::None).then(|| Arc::new(activated()) as Arc<dyn Operator>)
    }

    fn addend(&self) -> Option<usize> {
        Some(3)
    }

    fn spatial(&self) -> Option<Spatial> {
        Some(Spatial {
            data: &[0, 3],
            ..Spatial::new(self.on_channels_last(), true)
        })
    }
}

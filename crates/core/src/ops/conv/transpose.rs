//! Transposed convolutions.

use std::sync::Arc;

use super::{ConvGeometry, Padding, check_groups, check_ranks, conv_cost};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, Operator, Spatial};
use crate::ops::rules::{FLOATS, fact, times, too_large, unify, wrong_count};
use crate::ops::window::{
    AxisPadding, AxisRule, arrange, attribute, layout, paddings, window_rules,
};

/// Inputs: data, weights, optional bias `[m]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ConvTranspose {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub padding: Padding,
    pub output_padding: Vec<usize>,
    /// Asked-for spatial output shape; the padding follows from it.
    pub output_shape: Option<Vec<usize>>,
    pub groups: usize,
    pub channels_last: bool,
    pub activation: Activation,
}

impl ConvGeometry {
    /// The geometry of a transposed convolution, from the shapes of data and of weights `[c, m / groups,
    /// kernel..]`.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shapes and attributes do not fit each other.
    pub fn transposed(op: &ConvTranspose, x: &[usize], w: &[usize]) -> Result<ConvGeometry> {
        transpose_shape(op, &Shape::fixed(x), &Shape::fixed(w))?;
        let (channel, spatial) = layout(x.len(), op.channels_last);
        let rules = window_rules(&w[2..], &op.strides, &op.dilations, &op.padding, false)?;
        let (extra, asked) = op.extra(rules.len())?;
        let axes = (0..rules.len())
            .map(|i| {
                let asked = asked.as_ref().map(|a| a[i]);
                rules[i].resolve_transposed(x[spatial.start + i], extra[i], asked)
            })
            .collect::<Result<_>>()?;
        Ok(ConvGeometry {
            batch: x[0],
            in_channels: x[channel],
            out_channels: w[1].checked_mul(op.groups).ok_or_else(too_large)?,
            groups: op.groups,
            channels_last: op.channels_last,
            axes,
        })
    }
}

fn transpose_shape(op: &ConvTranspose, x: &Shape, w: &Shape) -> Result<Shape> {
    check_ranks(x, w)?;
    let (channel, spatial) = layout(x.rank(), op.channels_last);
    check_groups(op.groups, &w.0[0], "input channels")?;
    unify(&x.0[channel], &w.0[0], || "the number of channels".into())?;
    let (extra, asked) = op.extra(spatial.len())?;
    let strides = attribute(&op.strides, spatial.len(), "strides")?;
    let dilations = attribute(&op.dilations, spatial.len(), "dilations")?;
    let pads = paddings(&op.padding, spatial.len())?;
    let mut dims = Vec::with_capacity(spatial.len());
    for (i, input) in x.0[spatial].iter().enumerate() {
        let asked = asked.as_ref().map(|a| a[i]);
        let dim = match (input, &w.0[2 + i], asked) {
            (Dim::Known(n), Dim::Known(k), _) => {
                let rule = AxisRule {
                    kernel: *k,
                    stride: strides[i],
                    dilation: dilations[i],
                    padding: pads[i],
                    ceil_mode: false,
                };
                Dim::Known(rule.resolve_transposed(*n, extra[i], asked)?.output)
            }
            (_, _, Some(output)) => Dim::Known(output),
            (n, _, None) if matches!(pads[i], AxisPadding::SameUpper | AxisPadding::SameLower) => {
                times(n, &Dim::Known(strides[i]))?
            }
            _ => Dim::Unknown,
        };
        dims.push(dim);
    }
    let channels = times(&w.0[1], &Dim::Known(op.groups))?;
    Ok(Shape(arrange(
        x.0[0].clone(),
        channels,
        &dims,
        op.channels_last,
    )))
}

impl ConvTranspose {
    /// Output padding and asked-for output shape of each axis.
    fn extra(&self, axes: usize) -> Result<(Vec<usize>, Option<Vec<usize>>)> {
        let extra = match self.output_padding.len() {
            0 => vec![0; axes],
            n if n == axes => self.output_padding.clone(),
            n => return Err(wrong_count("output_padding", axes, n)),
        };
        let asked = match &self.output_shape {
            Some(a) if a.len() != axes => return Err(wrong_count("output_shape", axes, a.len())),
            other => other.clone(),
        };
        Ok((extra, asked))
    }
}

impl Operator for ConvTranspose {
    fn name(&self) -> &'static str {
        "ConvTranspose"
    }

    signature! { (data, weights, optional bias) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        let dtype = ctx.common_type(0..3)?;
        let (Some(x), Some(w)) = (ctx.shape(0)?, ctx.shape(1)?) else {
            return Ok(vec![fact(dtype, None)]);
        };
        let shape = transpose_shape(self, x, w)?;
        let (channel, _) = layout(x.rank(), self.channels_last);
        ctx.vector(2, &shape.0[channel])?;
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        match (inputs.first(), inputs.get(1)) {
            (Some(Some(x)), Some(Some(w))) => {
                conv_cost(x.iter().map(|&d| d as f64).product(), w, base)
            }
            _ => base,
        }
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let activated = || ConvTranspose {
            activation,
            ..self.clone()
        };
        (self.activation == Activation::None).then(|| Arc::new(activated()) as Arc<dyn Operator>)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = || ConvTranspose {
            channels_last: true,
            ..self.clone()
        };
        let turned = (!self.channels_last).then(turned);
        Some(Spatial::new(turned, true))
    }
}

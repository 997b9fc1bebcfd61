//! Sliding-window pooling. Layout as in [`super::conv`].

use std::sync::Arc;

use super::axes::MAX_RANK;
use super::conv::Padding;
use super::rules::{
    FLOATS, INDICES, InputValues, NUMBERS, Types, fact, sizes, some_of, too_large, unify_shapes,
    wrong_count,
};
use super::window::{AxisRule, WindowAxis, arrange, layout, window_rules};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, NodeView, Operator, Spatial};

/// What all pooling windows have.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Window {
    pub kernel: Vec<usize>,
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub padding: Padding,
    pub ceil_mode: bool,
}

/// Outputs: maxima, optional flat indices (`int64`, of the whole tensor).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct MaxPool {
    pub window: Window,
    /// Indices count columns first.
    pub column_major: bool,
    pub channels_last: bool,
}

/// Means; those of `int8` and `uint8` are rounded to the nearest, ties away from zero.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct AveragePool {
    pub window: Window,
    /// Padding counts in the divisor.
    pub count_include_pad: bool,
    pub channels_last: bool,
    pub activation: Activation,
}

/// `(sum |x|^p)^(1/p)`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct LpPool {
    pub window: Window,
    pub p: u32,
    pub channels_last: bool,
}

/// Inputs: maxima, flat indices, optional output shape; NCHW.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct MaxUnpool {
    pub window: Window,
}

/// A pooling window over an input, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolGeometry {
    pub batch: usize,
    pub channels: usize,
    pub channels_last: bool,
    /// Spatial axes, outermost first.
    pub axes: Vec<WindowAxis>,
}

impl PoolGeometry {
    /// The geometry, from the shape of the data.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shape and attributes do not fit each other.
    pub fn new(window: &Window, channels_last: bool, x: &[usize]) -> Result<PoolGeometry> {
        window.shape(channels_last, &Shape::fixed(x))?;
        let (channel, spatial) = layout(x.len(), channels_last);
        let axes = window
            .rules()?
            .iter()
            .zip(&x[spatial])
            .map(|(rule, &input)| rule.resolve(input))
            .collect::<Result<_>>()?;
        Ok(PoolGeometry {
            batch: x[0],
            channels: x[channel],
            channels_last,
            axes,
        })
    }

    /// The shape of the output in the layout of the data.
    pub fn output_shape(&self) -> Vec<usize> {
        let spatial: Vec<usize> = self.axes.iter().map(|a| a.output).collect();
        arrange(self.batch, self.channels, &spatial, self.channels_last)
    }
}

impl Window {
    fn rules(&self) -> Result<Vec<AxisRule>> {
        window_rules(
            &self.kernel,
            &self.strides,
            &self.dilations,
            &self.padding,
            self.ceil_mode,
        )
    }

    fn check(&self, x: &Shape) -> Result<()> {
        if x.rank() < 3 || x.rank() - 2 != self.kernel.len() {
            return Err(shape_error("the data does not fit the window")
                .with_expected(format!("rank {}", self.kernel.len() + 2))
                .with_got(x));
        }
        Ok(())
    }

    /// The output shape on symbolic shapes.
    fn shape(&self, channels_last: bool, x: &Shape) -> Result<Shape> {
        self.check(x)?;
        let (channel, spatial) = layout(x.rank(), channels_last);
        let dims = self
            .rules()?
            .iter()
            .zip(&x.0[spatial])
            .map(|(rule, input)| rule.dim(input))
            .collect::<Result<Vec<_>>>()?;
        Ok(Shape(arrange(
            x.0[0].clone(),
            x.0[channel].clone(),
            &dims,
            channels_last,
        )))
    }

    /// What all pooling operators have in common.
    fn infer(&self, ctx: &InferContext, types: &Types, channels_last: bool) -> Result<Fact> {
        let dtype = ctx.typed(0, types)?;
        let shape = match ctx.shape(0)? {
            Some(x) => Some(self.shape(channels_last, x)?),
            None => Some(Shape::unknown(self.kernel.len().min(MAX_RANK - 2) + 2)),
        };
        Ok(fact(dtype, shape))
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        let taps: f64 = self.kernel.iter().map(|&k| k as f64).product();
        Cost {
            flops: base.flops * taps,
            ..base
        }
    }
}

impl Operator for MaxPool {
    fn name(&self) -> &'static str {
        "MaxPool"
    }

    signature! { (data) -> (maxima, optional indices) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let maxima = self.window.infer(ctx, &NUMBERS, self.channels_last)?;
        let indices = fact(Some(DType::I64), maxima.shape.clone());
        Ok(some_of(ctx, [maxima, indices]))
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        self.window.cost(inputs, outputs)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = || MaxPool {
            channels_last: true,
            ..self.clone()
        };
        let turned = (!self.channels_last).then(turned);
        Some(Spatial::new(turned, false))
    }

    fn has_optional_outputs(&self) -> bool {
        true
    }

    /// A window of nothing but padding gives the smallest number there is, which depends on the type.
    fn selects(&self, node: &NodeView) -> bool {
        let shape = node.input(0).and_then(|x| x.fact.concrete());
        let geometry =
            shape.and_then(|s| PoolGeometry::new(&self.window, self.channels_last, &s).ok());
        geometry.is_some_and(|geometry| {
            geometry.axes.iter().all(|a| {
                let first = a.kernel.saturating_sub(1).saturating_mul(a.dilation);
                let last = a.output.saturating_sub(1).saturating_mul(a.stride);
                a.dilation == 1 && first >= a.begin && last < a.begin.saturating_add(a.input)
            })
        })
    }
}

const AVERAGED: Types = Types::new("a floating-point type, int8 or uint8", |d| {
    d.is_float() || matches!(d, DType::I8 | DType::U8)
});

impl Operator for AveragePool {
    fn name(&self) -> &'static str {
        "AveragePool"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        Ok(vec![self.window.infer(
            ctx,
            &AVERAGED,
            self.channels_last,
        )?])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        self.window.cost(inputs, outputs)
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let activated = || AveragePool {
            activation,
            ..self.clone()
        };
        (self.activation == Activation::None).then(|| Arc::new(activated()) as Arc<dyn Operator>)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = || AveragePool {
            channels_last: true,
            ..self.clone()
        };
        let turned = (!self.channels_last).then(turned);
        Some(Spatial::new(turned, false))
    }
}

impl Operator for LpPool {
    fn name(&self) -> &'static str {
        "LpPool"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        Ok(vec![self.window.infer(ctx, &FLOATS, self.channels_last)?])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        self.window.cost(inputs, outputs)
    }

    fn spatial(&self) -> Option<Spatial> {
        let turned = || LpPool {
            channels_last: true,
            ..self.clone()
        };
        let turned = (!self.channels_last).then(turned);
        Some(Spatial::new(turned, false))
    }
}

impl MaxUnpool {
    /// The shape of the output: input 2 if it is there, else the smallest input of the pooling.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shape and attributes do not fit each other.
    pub fn output_shape(&self, x: &[usize], values: &dyn InputValues) -> Result<Vec<usize>> {
        let shape = self.shape(&Shape::fixed(x), values)?;
        shape.concrete().ok_or_else(too_large)
    }

    fn shape(&self, x: &Shape, values: &dyn InputValues) -> Result<Shape> {
        self.window.check(x)?;
        if let Some(asked) = values.ints(2)? {
            let asked = sizes(&asked, "an output dimension")?;
            if asked.len() != x.rank() {
                return Err(wrong_count("the output shape", x.rank(), asked.len()));
            }
            return Ok(Shape::fixed(&asked));
        }
        let mut dims = x.0[..2].to_vec();
        for (rule, input) in self.window.rules()?.iter().zip(&x.0[2..]) {
            dims.push(match input {
                Dim::Known(n) => Dim::Known(rule.resolve_transposed(*n, 0, None)?.output),
                _ => Dim::Unknown,
            });
        }
        Ok(Shape(dims))
    }
}

impl Operator for MaxUnpool {
    fn name(&self) -> &'static str {
        "MaxUnpool"
    }

    signature! { (maxima, indices, optional shape) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &FLOATS)?;
        ctx.typed(1, &INDICES)?;
        ctx.typed_optional(2, &INDICES)?;
        if let (Some(x), Some(i)) = (ctx.shape(0)?, ctx.shape(1)?) {
            unify_shapes(i, x, || "the shape of the indices".into())?;
        }
        let unknown = Shape::unknown(self.window.kernel.len().min(MAX_RANK - 2) + 2);
        let x = ctx.shape(0)?.unwrap_or(&unknown);
        let shape = if ctx.known(&[2]) {
            self.shape(x, ctx)?
        } else {
            Shape::unknown(x.rank())
        };
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[2]
    }
}

//! Convolutions. Data is `[n, c, spatial..]`, or `[n, spatial.., c]` with `channels_last`; weights
//! are `[m, c / groups, kernel..]` in either case (`[c, m / groups, kernel..]` when transposed).

use super::*;
use crate::error::value_error;

/// How the padding of a sliding window is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Begin of each spatial axis, then end of each.
    Explicit(Vec<usize>),
    /// Output is `ceil(input / stride)`, the odd element at the end.
    SameUpper,
    /// As above, the odd element at the beginning.
    SameLower,
    Valid,
}

/// Inputs: data, weights, optional bias `[m]`, optional residual of the output's shape that is
/// added before the activation.
#[derive(Clone, Debug, PartialEq)]
pub struct Conv {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub padding: Padding,
    pub groups: usize,
    pub channels_last: bool,
    pub activation: Activation,
}

/// Inputs: data, weights, optional bias `[m]`.
#[derive(Clone, Debug, PartialEq)]
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

/// Inputs: `[n, c * block, blocks]`, image shape, block shape. Empty steps are ones, empty pads zeros.
#[derive(Clone, Debug, PartialEq)]
pub struct Col2Im {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub pads: Vec<usize>,
}

/// Inputs: data, weights, offsets, optional bias, optional mask; NCHW.
#[derive(Clone, Debug, PartialEq)]
pub struct DeformConv {
    pub strides: Vec<usize>,
    pub dilations: Vec<usize>,
    pub pads: Vec<usize>,
    pub groups: usize,
    pub offset_groups: usize,
}

/// A convolution with everything resolved.
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
    /// From the shapes of data and weights.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shapes and attributes do not fit each other.
    pub fn new(op: &Conv, x: &[usize], w: &[usize]) -> Result<ConvGeometry> {
        let (xs, ws) = (Shape::fixed(x), Shape::fixed(w));
        conv_shape(op, &xs, &ws)?;
        let (channel, spatial) = layout(x.len(), op.channels_last);
        let axes = conv_rules(op, &w[2..])?
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

/// A transposed convolution with everything resolved. Along each axis, input element `i` and kernel
/// position `k` add to output element `i * stride + k * dilation - begin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransposeGeometry {
    pub batch: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub groups: usize,
    pub channels_last: bool,
    /// Spatial axes, outermost first.
    pub axes: Vec<WindowAxis>,
}

impl TransposeGeometry {
    /// From the shapes of data and weights.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shapes and attributes do not fit each other.
    pub fn new(op: &ConvTranspose, x: &[usize], w: &[usize]) -> Result<TransposeGeometry> {
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
        Ok(TransposeGeometry {
            batch: x[0],
            in_channels: x[channel],
            out_channels: w[1].checked_mul(op.groups).ok_or_else(too_large)?,
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
    /// From the shape of the data and the values of image and block shape.
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

/// A deformable convolution with everything resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeformGeometry {
    pub batch: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub groups: usize,
    pub offset_groups: usize,
    /// Spatial axes, outermost first.
    pub axes: Vec<WindowAxis>,
}

impl DeformGeometry {
    /// From the shapes of data and weights.
    ///
    /// # Errors
    /// `Shape` and `InvalidValue` where shapes and attributes do not fit each other.
    pub fn new(op: &DeformConv, x: &[usize], w: &[usize]) -> Result<DeformGeometry> {
        let plain = op.as_conv();
        let g = ConvGeometry::new(&plain, x, w)?;
        Ok(DeformGeometry {
            batch: g.batch,
            in_channels: g.in_channels,
            out_channels: g.out_channels,
            groups: g.groups,
            offset_groups: op.offset_groups,
            axes: g.axes,
        })
    }
}

fn conv_rules(op: &Conv, kernel: &[usize]) -> Result<Vec<AxisRule>> {
    window_rules(kernel, &op.strides, &op.dilations, &op.padding, false)
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

/// Two operations for each multiplication of a convolution with these weights.
fn conv_cost(outputs: f64, weights: &[usize], base: Cost) -> Cost {
    let taps: f64 = weights.iter().skip(1).map(|&d| d as f64).product();
    Cost {
        flops: 2.0 * outputs * taps,
        ..base
    }
}

impl Operator for Conv {
    fn name(&self) -> &'static str {
        "Conv"
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

    fn cost(&self, inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
        let base = elementwise_cost(inputs, outputs);
        match inputs.get(1) {
            Some(Some(w)) => conv_cost(base.flops, w, base),
            _ => base,
        }
    }
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

    fn cost(&self, inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
        let base = elementwise_cost(inputs, outputs);
        match (inputs.first(), inputs.get(1)) {
            (Some(Some(x)), Some(Some(w))) => {
                conv_cost(x.iter().map(|&d| d as f64).product(), w, base)
            }
            _ => base,
        }
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
            let spatial = ctx.shape_of_rank(1, 1)?.and_then(|s| s.0[0].known());
            spatial.map(|n| Shape::unknown(n.saturating_add(2).min(MAX_RANK)))
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1, 2]
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

    fn cost(&self, inputs: &[Option<Vec<usize>>], outputs: &[Vec<usize>]) -> Cost {
        Operator::cost(&self.as_conv(), inputs, outputs)
    }
}

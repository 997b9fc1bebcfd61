//! Convolutions: general, depthwise, grouped where ACL has it, transposed.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Conv, ConvGeometry, ConvTranspose, WindowAxis};
use kilim_host::registry::KernelRegistry;

use super::activation::{self, NO_ACTIVATION};
use super::{Lower, constant, elementwise, finite, input, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{
    ActivationInfo, ConvolutionInfo, DeconvolutionInfo, DepthwiseConvolutionInfo, Layout, Window,
};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, Conv>(registry);
    add::<A, ConvTranspose>(registry);
}

/// The axes of a window as height and width; one axis is the width of a picture of height 1.
pub fn two_axes(axes: &[WindowAxis]) -> Result<[WindowAxis; 2], Refusal> {
    let axes = match axes {
        [x] => [WindowAxis::POINT, *x],
        [y, x] => [*y, *x],
        _ => return refuse("ACL's windows have one or two dimensions"),
    };
    match axes.iter().all(|a| a.input > 0 && a.output > 0) {
        true => Ok(axes),
        false => refuse("a tensor without elements"),
    }
}

/// A window in ACL's words. With `ceil_mode` the last window may reach past the padding, which grows then.
pub fn window([y, x]: &[WindowAxis; 2]) -> Window {
    let end = |a: &WindowAxis| {
        let reach = (a.output - 1) * a.stride + a.extent();
        a.end.max(reach.saturating_sub(a.input + a.begin)) as u32
    };
    Window {
        stride_x: x.stride as u32,
        stride_y: y.stride as u32,
        pad_left: x.begin as u32,
        pad_right: end(x),
        pad_top: y.begin as u32,
        pad_bottom: end(y),
        dilation_x: x.dilation as u32,
        dilation_y: y.dilation as u32,
    }
}

/// Data of a spatial operator, in the layout it has.
pub struct Picture {
    pub batch: usize,
    pub channels: usize,
    pub channels_last: bool,
}

impl Picture {
    pub fn layout(&self) -> Layout {
        match self.channels_last {
            true => Layout::Nhwc,
            false => Layout::Nchw,
        }
    }

    pub fn shape(&self, height: usize, width: usize) -> [usize; 4] {
        match self.channels_last {
            true => [self.batch, height, width, self.channels],
            false => [self.batch, self.channels, height, width],
        }
    }
}

/// How weights `[m, c, (kh,) kw]` come to be as ACL wants them.
pub struct Weights {
    pub shape: Vec<usize>,
    pub order: Vec<usize>,
}

impl Weights {
    /// `shape` is `[m, c, kh, kw]`, and `order` permutes all four dimensions. `rank` is that of the model's
    /// weights: 3 where they lack `kh`.
    fn new(shape: [usize; 4], order: [usize; 4], rank: usize) -> Weights {
        let lacks = |axis: usize| rank == 3 && axis == 2;
        Weights {
            shape: order.iter().map(|&axis| shape[axis]).collect(),
            order: order
                .iter()
                .filter(|&&axis| !lacks(axis))
                .map(|&axis| if rank == 3 && axis == 3 { 2 } else { axis })
                .collect(),
        }
    }
}

/// A convolution in ACL's words, whatever its element type.
pub struct Convolution {
    pub layout: Layout,
    /// The shape of the data, with height and width between or behind the channels; `y` is that of the
    /// output.
    pub x: [usize; 4],
    pub y: [usize; 4],
    pub weights: Weights,
    window: Window,
    kind: Kind,
}

enum Kind {
    Groups(usize),
    /// Output channels of each input channel.
    Depthwise(usize),
}

impl Convolution {
    pub fn new(op: &Conv, x: &[usize], w: &[usize]) -> Result<Convolution, Refusal> {
        let g = resolved(ConvGeometry::new(op, x, w))?;
        let axes = two_axes(&g.axes)?;
        let [vertical, horizontal] = axes;
        let data = Picture {
            batch: g.batch,
            channels: g.in_channels,
            channels_last: g.channels_last,
        };
        let result = Picture {
            channels: g.out_channels,
            ..data
        };
        let depthwise = g.groups > 1 && g.groups == g.in_channels;
        let order = match (depthwise, g.channels_last) {
            (true, true) => [1, 2, 3, 0],
            (true, false) => [1, 0, 2, 3],
            (false, true) => [0, 2, 3, 1],
            (false, false) => [0, 1, 2, 3],
        };
        let kernel = [
            g.out_channels,
            g.in_channels / g.groups,
            vertical.kernel,
            horizontal.kernel,
        ];
        Ok(Convolution {
            layout: data.layout(),
            x: data.shape(vertical.input, horizontal.input),
            y: result.shape(vertical.output, horizontal.output),
            weights: Weights::new(kernel, order, w.len()),
            window: window(&axes),
            kind: match depthwise {
                true => Kind::Depthwise(g.out_channels / g.in_channels),
                false => Kind::Groups(g.groups),
            },
        })
    }

    pub fn is_in_groups(&self) -> bool {
        matches!(self.kind, Kind::Groups(2..))
    }

    /// `inputs` are data, weights and bias.
    pub fn call(&self, inputs: [Option<Operand>; 3], y: Form, activation: ActivationInfo) -> Call {
        let window = self.window;
        match self.kind {
            Kind::Groups(groups) => {
                let info = ConvolutionInfo {
                    window,
                    groups: groups as u32,
                    activation,
                };
                Call::new(info, inputs.into(), y)
            }
            Kind::Depthwise(multiplier) => {
                let info = DepthwiseConvolutionInfo {
                    window,
                    multiplier: multiplier as u32,
                    activation,
                };
                Call::new(info, inputs.into(), y)
            }
        }
    }
}

/// The data of a node.
fn data(form: Form) -> Option<Operand> {
    Some(Operand {
        source: Source::Input(0),
        form,
    })
}

/// Weights and bias in the data's element type.
fn parameters(
    node: &NodeSpec,
    weights: &Weights,
    layout: Layout,
) -> Result<[Option<Operand>; 2], Refusal> {
    let spec = finite(node, 1, "weights")?;
    let weights = Operand {
        form: Form::new(spec, &weights.shape)?.with_layout(layout),
        source: Source::Constant {
            input: 1,
            order: weights.order.clone(),
        },
    };
    let bias = match node.input(2) {
        None => None,
        Some(_) => {
            let spec = constant(node, 2, "a bias")?;
            Some(Operand {
                source: Source::Constant {
                    input: 2,
                    order: vec![0],
                },
                form: Form::new(spec, &spec.shape)?,
            })
        }
    };
    Ok([Some(weights), bias])
}

impl Lower for Conv {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, w) = (input(node, 0)?, input(node, 1)?);
        let c = Convolution::new(self, &x.shape, &w.shape)?;
        let x = data(Form::new(x, &c.x)?.with_layout(c.layout));
        let y = Form::new(output(node)?, &c.y)?.with_layout(c.layout);
        let [weights, bias] = parameters(node, &c.weights, c.layout)?;
        let residual = node.input(3).is_some();
        let within = match residual {
            true => None,
            false => activation::within(self.activation, &y),
        };
        let call = c.call(
            [x, weights, bias],
            y.clone(),
            within.unwrap_or(NO_ACTIVATION),
        );
        let mut calls = vec![call];
        if residual {
            calls.push(elementwise::add_input(3, &y));
        }
        if within.is_none() {
            calls.extend(activation::calls(self.activation, &y)?);
        }
        Ok(calls)
    }
}

impl Lower for ConvTranspose {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, w) = (input(node, 0)?, input(node, 1)?);
        let g = resolved(ConvGeometry::transposed(self, &x.shape, &w.shape))?;
        if g.groups != 1 {
            return refuse("ACL has no transposed convolution in groups");
        }
        let axes = two_axes(&g.axes)?;
        for axis in &axes {
            let full = (axis.input - 1) * axis.stride + axis.kernel;
            if axis.dilation != 1 || full != axis.output + axis.begin + axis.end {
                return refuse(
                    "ACL's transposed convolution has no dilation and no output padding",
                );
            }
        }
        let from = Picture {
            batch: g.batch,
            channels: g.in_channels,
            channels_last: g.channels_last,
        };
        let to = Picture {
            channels: g.out_channels,
            ..from
        };
        let [vertical, horizontal] = axes;
        let layout = from.layout();
        let x = Form::new(x, &from.shape(vertical.input, horizontal.input))?.with_layout(layout);
        let y_shape = to.shape(vertical.output, horizontal.output);
        let y = Form::new(output(node)?, &y_shape)?.with_layout(layout);
        let kernel = [
            g.in_channels,
            g.out_channels,
            vertical.kernel,
            horizontal.kernel,
        ];
        let order = match g.channels_last {
            true => [1, 2, 3, 0],
            false => [1, 0, 2, 3],
        };
        let weights = Weights::new(kernel, order, w.shape.len());
        let [weights, bias] = parameters(node, &weights, layout)?;
        let info = DeconvolutionInfo {
            window: Window {
                stride_x: horizontal.stride as u32,
                stride_y: vertical.stride as u32,
                pad_left: horizontal.begin as u32,
                pad_right: horizontal.end as u32,
                pad_top: vertical.begin as u32,
                pad_bottom: vertical.end as u32,
                dilation_x: 1,
                dilation_y: 1,
            },
        };
        let mut calls = vec![Call::new(info, vec![data(x), weights, bias], y.clone())];
        calls.extend(activation::calls(self.activation, &y)?);
        Ok(calls)
    }
}

//! Pooling, and means over a whole picture.

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{
    Activation, AveragePool, InputValues, MaxPool, PoolGeometry, Reduce, ReduceKind, WindowAxis,
    normalize_axes,
};
use kilim_host::registry::KernelRegistry;

use super::convolution::{Picture, two_axes, window};
use super::{Lower, activation, input, output, refuse, resolved};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::PoolingInfo;
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, AveragePool>(registry);
    add::<A, MaxPool>(registry);
    add::<A, Reduce>(registry);
}

type FormOf = fn(&TensorSpec, &[usize]) -> Result<Form, Refusal>;

struct Pooling {
    max: bool,
    exclude_padding: bool,
    data: Picture,
    axes: [WindowAxis; 2],
}

impl Pooling {
    fn new(max: bool, exclude_padding: bool, g: &PoolGeometry) -> Result<Pooling, Refusal> {
        Ok(Pooling {
            max,
            exclude_padding,
            data: Picture {
                batch: g.batch,
                channels: g.channels,
                channels_last: g.channels_last,
            },
            axes: two_axes(&g.axes)?,
        })
    }

    /// Bytes are averaged only where the caller wants that.
    fn call(&self, x: &TensorSpec, y: &TensorSpec) -> Result<Call, Refusal> {
        match self.max {
            true => self.call_of(Form::of_elements, x, y),
            false => self.call_of(Form::new, x, y),
        }
    }

    fn call_of(&self, form: FormOf, x: &TensorSpec, y: &TensorSpec) -> Result<Call, Refusal> {
        let [vertical, horizontal] = self.axes;
        if vertical.dilation != 1 || horizontal.dilation != 1 {
            return refuse("ACL's pooling has no dilation");
        }
        let covers = |a: &WindowAxis| a.begin < a.kernel && a.end < a.kernel;
        if !covers(&vertical) || !covers(&horizontal) {
            return refuse("a window that lies in the padding");
        }
        let small = [2, 3].contains(&vertical.kernel) && vertical.kernel == horizontal.kernel;
        if self.max && x.dtype == DType::F16 && !self.data.channels_last && !small {
            return refuse(
                "in float16 and channels first ACL turns NaN into a number, but for 2x2 and 3x3",
            );
        }
        let layout = self.data.layout();
        let in_shape = self.data.shape(vertical.input, horizontal.input);
        let out_shape = self.data.shape(vertical.output, horizontal.output);
        let info = PoolingInfo {
            max: self.max.into(),
            kernel_x: horizontal.kernel as u32,
            kernel_y: vertical.kernel as u32,
            window: window(&self.axes),
            exclude_padding: self.exclude_padding.into(),
        };
        let data = Operand {
            source: Source::Input(0),
            form: form(x, &in_shape)?.with_layout(layout),
        };
        let form = form(y, &out_shape)?.with_layout(layout);
        Ok(Call::new(info, vec![Some(data)], form))
    }
}

impl Lower for MaxPool {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let g = PoolGeometry::new(&self.window, self.channels_last, &x.shape);
        Ok(vec![Pooling::new(true, true, &resolved(g)?)?.call(x, y)?])
    }
}

impl Lower for AveragePool {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        if matches!(x.dtype, DType::I8 | DType::U8) {
            return refuse("ACL averages bytes in an arithmetic of its own, to other bytes");
        }
        let g = PoolGeometry::new(&self.window, self.channels_last, &x.shape);
        let pooling = Pooling::new(false, !self.count_include_pad, &resolved(g)?)?;
        let reaches_past =
            |a: &WindowAxis| (a.output - 1) * a.stride + a.extent() > a.input + a.begin + a.end;
        if self.count_include_pad && pooling.axes.iter().any(reaches_past) {
            return refuse("a window that reaches past the padding, which counts");
        }
        let call = pooling.call(x, y)?;
        let after = activation::calls(self.activation, &call.output)?;
        Ok(std::iter::once(call).chain(after).collect())
    }

    fn native(&self, node: &NodeSpec) -> Option<Result<Vec<Call>, Refusal>> {
        let bytes = matches!(node.input(0)?.dtype, DType::I8 | DType::U8);
        bytes.then(|| of_bytes(self, node))
    }
}

/// The average of bytes has the scale of its input.
fn of_bytes(op: &AveragePool, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
    let (x, y) = (input(node, 0)?, output(node)?);
    if op.activation != Activation::None {
        return refuse("an activation behind an average of bytes");
    }
    let g = resolved(PoolGeometry::new(&op.window, op.channels_last, &x.shape))?;
    let pooling = Pooling::new(false, true, &g)?;
    let padded = |a: &WindowAxis| a.begin + a.end > 0;
    if op.count_include_pad && pooling.axes.iter().any(padded) {
        return refuse("an average of bytes in which the padding counts");
    }
    Ok(vec![pooling.call_of(Form::of_elements, x, y)?])
}

/// The mean over height and width is one window.
impl Lower for Reduce {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let axes = resolved(node.ints(1))?.unwrap_or_default();
        let mut axes = resolved(normalize_axes(&axes, x.shape.len()))?;
        axes.sort_unstable();
        let (channels_last, [batch, height, width, channels]) = match (&x.shape[..], &axes[..]) {
            (&[n, h, w, c], [1, 2]) => (true, [n, h, w, c]),
            (&[n, c, h, w], [2, 3]) => (false, [n, h, w, c]),
            _ => return refuse("ACL reduces a picture's height and width"),
        };
        if self.kind != ReduceKind::Mean {
            return refuse("ACL reduces to the mean");
        }
        if x.elements() == 0 {
            return refuse("a tensor without elements");
        }
        let whole = |size: usize| WindowAxis {
            input: size,
            kernel: size,
            stride: 1,
            dilation: 1,
            begin: 0,
            end: 0,
            output: 1,
        };
        let pooling = Pooling {
            max: false,
            exclude_padding: true,
            data: Picture {
                batch,
                channels,
                channels_last,
            },
            axes: [whole(height), whole(width)],
        };
        Ok(vec![pooling.call(x, y)?])
    }
}

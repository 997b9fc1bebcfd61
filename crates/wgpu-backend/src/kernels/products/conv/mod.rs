//! Convolutions. A pointwise one is a product; one with constant weights and enough channels an
//! implicit product; depthwise and transposed ones and what is left have kernels of their own.

mod direct;

use kilim_core::Result;
use kilim_core::ops::{Activation, Conv, ConvGeometry, ConvTranspose, WindowAxis};

use self::direct::{direct, transpose};
use super::matmul::{Bias, Product};
use super::tile::{Cut, Extent};
use crate::kernels::Kernels;
use crate::lowering::walk::both;
use crate::lowering::window::three;
use crate::lowering::{Lowering, Lowers, PackKind, ok};
use crate::shaders::products::depthwise as depthwise_shader;
use crate::shaders::products::matmul::{self, Case, Im2colReadA};
use crate::shaders::{self, Im2col, Operand, Parted, Stored, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Conv>(conv);
    kernels.add::<ConvTranspose>(transpose);
}

/// A convolution with up to three spatial axes, missing ones in front.
struct Window {
    batch: usize,
    /// Channels of one group.
    inputs: usize,
    outputs: usize,
    groups: usize,
    channels_last: bool,
    axes: [WindowAxis; 3],
    activation: Activation,
    bias: bool,
    residual: bool,
    /// The element type of all operands.
    stored: Stored,
}

impl Window {
    /// A convolution without a residual.
    fn new(g: Result<ConvGeometry>, activation: Activation, l: &mut Lowering) -> Lowers<Window> {
        let stored = l.float()?;
        let g = ok(g)?;
        Ok(Window {
            batch: g.batch,
            inputs: g.in_channels / g.groups.max(1),
            outputs: g.out_channels / g.groups.max(1),
            groups: g.groups,
            channels_last: g.channels_last,
            axes: three(&g.axes)?,
            activation,
            bias: l.optional(2).is_some(),
            residual: false,
            stored,
        })
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.kernel).product()
    }

    fn positions(&self) -> usize {
        self.axes.iter().map(|a| a.output).product()
    }

    /// The implicit product of each group.
    fn extent(&self) -> Extent {
        Extent {
            m: self.batch.saturating_mul(self.positions()),
            k: self.taps().saturating_mul(self.inputs),
            n: self.outputs,
            batch: self.groups,
        }
    }

    fn flat(&self) -> bool {
        self.axes[0].kernel == 1 && self.axes[0].input == 1 && self.axes[0].output == 1
    }

    fn pointwise(&self) -> bool {
        let plain = |a: &WindowAxis| {
            a.kernel == 1 && a.stride == 1 && a.begin == 0 && a.end == 0 && a.input == a.output
        };
        self.groups == 1 && self.axes.iter().all(plain)
    }

    /// Strides of image, channel and the three axes.
    fn walk(&self, sizes: [usize; 3], channels: usize) -> [usize; 5] {
        let [_, h, w] = sizes;
        let all = sizes.iter().product::<usize>() * channels;
        if self.channels_last {
            [all, 1, h * w * channels, w * channels, channels]
        } else {
            [all, sizes.iter().product(), h * w, w, 1]
        }
    }

    /// The bias and the residual.
    fn addends(&self) -> [Option<Operand>; 2] {
        [
            self.bias.then_some(Operand::Input(2)),
            self.residual.then_some(Operand::Input(3)),
        ]
    }
}

fn conv(op: &Conv, l: &mut Lowering) -> Lowers {
    let (x, w) = (l.input(0)?, l.input(1)?);
    let c = Window {
        residual: l.optional(3).is_some(),
        ..Window::new(ConvGeometry::new(op, &x.shape, &w.shape), op.activation, l)?
    };
    if c.pointwise() {
        return pointwise(&c, l);
    }
    let quads = c.groups.is_multiple_of(4);
    if l.is_known(1) && c.flat() {
        if c.channels_last && c.inputs == 1 && c.outputs == 1 && quads {
            return depthwise(&c, l);
        }
        if c.outputs >= 4 && c.inputs * c.taps() >= 8 {
            return match product_or_direct(&c, l) {
                Some(cut) => implicit(&c, cut, l),
                None => {
                    direct(&c, false, l);
                    Ok(())
                }
            };
        }
    }
    direct(&c, false, l);
    Ok(())
}

fn pointwise(c: &Window, l: &mut Lowering) -> Lowers {
    let (positions, inputs, outputs) = (c.positions(), c.inputs, c.outputs);
    let residual = c.residual.then_some(Operand::Input(3));
    let product = if c.channels_last {
        let (b, b_strides) = if l.is_known(1) {
            let wide = outputs.next_multiple_of(4);
            let kind = PackKind::Permute {
                shape: vec![outputs, inputs],
                perm: vec![1, 0],
                padded: vec![inputs, wide],
            };
            (l.pack(1, kind), [wide, 1])
        } else {
            (Operand::Input(1), [1, inputs])
        };
        Product {
            m: c.batch.saturating_mul(positions),
            n: outputs,
            k: inputs,
            batch: vec![1],
            walk_a: vec![0],
            walk_b: vec![0],
            a: Operand::Input(0),
            a_strides: [inputs, 1],
            b,
            b_strides,
            c: Target::Output(0),
            bias: c.bias.then_some(Bias {
                operand: Operand::Input(2),
                row: 0,
                column: 1,
                batch: 0,
                beta: 1.0,
            }),
            residual,
            alpha: 1.0,
            activation: c.activation,
            stored: c.stored,
        }
    } else {
        Product {
            m: outputs,
            n: positions,
            k: inputs,
            batch: vec![c.batch],
            walk_a: vec![0],
            walk_b: vec![inputs.saturating_mul(positions) as i64],
            a: Operand::Input(1),
            a_strides: [inputs, 1],
            b: Operand::Input(0),
            b_strides: [positions, 1],
            c: Target::Output(0),
            bias: c.bias.then_some(Bias {
                operand: Operand::Input(2),
                row: 1,
                column: 0,
                batch: 0,
                beta: 1.0,
            }),
            residual,
            alpha: 1.0,
            activation: c.activation,
            stored: c.stored,
        }
    };
    product.emit(l)
}

fn depthwise(c: &Window, l: &mut Lowering) -> Lowers {
    let channels = c.groups;
    let kind = PackKind::Permute {
        shape: vec![channels, c.taps()],
        perm: vec![1, 0],
        padded: vec![c.taps(), channels],
    };
    let weights = l.pack(1, kind);
    let [_, h, w] = &c.axes;
    let units = c.batch * c.positions() * channels / 4;
    let [bias, residual] = c.addends();
    let launch = depthwise_shader::Launch {
        s: c.stored,
        x: Operand::Input(0),
        w: weights,
        y: Target::Output(0),
        bias,
        residual,
        params: depthwise_shader::Params {
            act: (&c.activation).into(),
            units,
            quads: channels / 4,
            out_h: h.output,
            out_w: w.output,
            in_h: h.input,
            in_w: w.input,
            kernel_h: h.kernel,
            kernel_w: w.kernel,
            stride_h: h.stride,
            stride_w: w.stride,
            dilation_h: h.dilation,
            dilation_w: w.dilation,
            pad_h: h.begin as i64,
            pad_w: w.begin as i64,
        },
    };
    l.linear(launch, units);
    Ok(())
}

/// How the implicit product is cut up; `None` is one thread an output element.
fn product_or_direct(c: &Window, l: &mut Lowering) -> Option<Cut> {
    let cuts = Cut::all(&l.caps, c.extent());
    let mut kernels: Vec<_> = cuts.into_iter().map(|(name, c)| (name, Some(c))).collect();
    kernels.push(("direct", None));
    let [_, y, x] = &c.axes;
    let last = if c.channels_last { " last" } else { "" };
    let class = format!(
        "Conv of {}, {}x{}x{} channels{last}, {}x{} by {}x{}, {} and {} apart, to {}x{}x{}",
        c.stored.name(),
        c.batch,
        c.groups,
        c.inputs,
        y.input,
        x.input,
        y.kernel,
        x.kernel,
        y.stride,
        x.stride,
        c.outputs,
        y.output,
        x.output
    );
    l.choose(class, &kernels)
}

fn implicit(c: &Window, cut: Cut, l: &mut Lowering) -> Lowers {
    let wide = c.outputs.next_multiple_of(4);
    let taps = c.taps();
    let kind = PackKind::Permute {
        shape: vec![c.groups, c.outputs, c.inputs, taps],
        perm: vec![0, 3, 2, 1],
        padded: vec![c.groups, taps, c.inputs, wide],
    };
    let weights = l.pack(1, kind);
    let [_, h, w] = &c.axes;
    let [x_image, x_c, _, x_h, x_w] = c.walk([1, h.input, w.input], c.inputs * c.groups);
    let positions = c.positions();
    let all = c.outputs * c.groups;
    let (c_row, c_col) = if c.channels_last {
        (all, 1)
    } else {
        (1, positions)
    };
    let read_a = match c.channels_last && c.inputs.is_multiple_of(4) {
        true => Im2colReadA::Conv4,
        false => Im2colReadA::Conv1,
    };
    let extent = c.extent();
    let product = shaders::Product {
        m: extent.m,
        n: c.outputs,
        k: extent.k,
        a_row: 0,
        a_col: 0,
        b_row: wide,
        b_col: 1,
        c_row,
        c_col,
        c_batch: c.outputs * c_col,
        bias_row: 0,
        bias_col: 1,
        bias_batch: c.outputs,
        alpha: 1.0,
        beta: 1.0,
    };
    let im2col = Im2col {
        c_image: all.saturating_mul(positions),
        positions,
        out_w: w.output,
        in_h: h.input,
        in_w: w.input,
        kernel_w: w.kernel,
        channels: c.inputs,
        x_image,
        x_h,
        x_w,
        x_c,
        stride_h: h.stride,
        stride_w: w.stride,
        dilation_h: h.dilation,
        dilation_w: w.dilation,
        pad_h: h.begin as i64,
        pad_w: w.begin as i64,
    };
    let groups = [c.groups];
    let [walk_a, walk_b] = [c.inputs * x_c, extent.k * wide].map(|step| [step as i64]);
    let [bias, residual] = c.addends();
    let launch = matmul::Launch {
        case: Case::Im2col { read_a },
        s: c.stored,
        tile: cut.tile,
        fetch: cut.fetch,
        c4: c.channels_last && c.outputs.is_multiple_of(4),
        a: Operand::Input(0),
        b: weights,
        c: Target::Output(0),
        bias,
        residual,
        params: matmul::Params {
            walk: both(&groups, &walk_a, &walk_b),
            act: (&c.activation).into(),
            product,
            im2col,
            parted: Parted::default(),
        },
    };
    cut.emit(extent, launch, l);
    Ok(())
}

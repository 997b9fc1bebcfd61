//! Pooling.

use kilim_core::DType;
use kilim_core::ops::{Activation, AveragePool, LpPool, MaxPool, PoolGeometry, Window};

use crate::kernels::{Kernels, quantized};
use crate::lowering::window::three;
use crate::lowering::{Lowering, Lowers, ok, refuse};
use crate::shaders::window::pool::{Case, FloatOp, IntegerOp, Launch, Params};
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<MaxPool>(|op, l| {
        if l.node.outputs.len() > 1 {
            return refuse("the positions of maxima are not on the GPU");
        }
        pool(&Pool::new(FloatOp::Max, &op.window, op.channels_last), l)
    });
    kernels.add::<AveragePool>(|op, l| {
        let mut p = Pool::new(FloatOp::Average, &op.window, op.channels_last);
        p.padded = op.count_include_pad;
        p.activation = op.activation;
        pool(&p, l)
    });
    kernels.add::<LpPool>(|op, l| {
        let mut p = Pool::new(FloatOp::Lp, &op.window, op.channels_last);
        p.power = op.p.into();
        pool(&p, l)
    });
}

struct Pool<'a> {
    op: FloatOp,
    window: &'a Window,
    channels_last: bool,
    padded: bool,
    power: i64,
    activation: Activation,
}

impl<'a> Pool<'a> {
    fn new(op: FloatOp, window: &'a Window, channels_last: bool) -> Pool<'a> {
        Pool {
            op,
            window,
            channels_last,
            padded: false,
            power: 0,
            activation: Activation::None,
        }
    }

    /// The shader's case for elements of a type, and its power.
    fn case(&self, dtype: DType, l: &Lowering) -> Lowers<(Case, i64)> {
        let op = match self.op {
            FloatOp::Max => Some(IntegerOp::Max),
            FloatOp::Average => Some(IntegerOp::Average),
            FloatOp::Lp => None,
        };
        if let (DType::I8 | DType::U8, Some(op), Activation::None) = (dtype, op, &self.activation) {
            return Ok((Case::Integer { op }, quantized::range(dtype)?[0].into()));
        }
        l.want_f32()?;
        Ok((Case::Float { op: self.op }, self.power))
    }
}

fn pool(op: &Pool, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let (case, power) = op.case(x.dtype, l)?;
    let g = ok(PoolGeometry::new(op.window, op.channels_last, &x.shape))?;
    let axes = three(&g.axes)?;
    let outs = axes.map(|a| a.output);
    let ins = axes.map(|a| a.input);
    let space: usize = ins.iter().product();
    let (dims, what, walk) = if g.channels_last {
        let c = g.channels;
        (
            [g.batch, outs[0], outs[1], outs[2], c],
            [0, 2, 3, 4, 1],
            [space * c, 1, ins[1] * ins[2] * c, ins[2] * c, c],
        )
    } else {
        (
            [g.batch, g.channels, outs[0], outs[1], outs[2]],
            [0, 1, 2, 3, 4],
            [space * g.channels, space, ins[1] * ins[2], ins[2], 1],
        )
    };
    let count: usize = dims.iter().product();
    let launch = Launch {
        case,
        x: Operand::Input(0),
        y: Target::Output(0),
        params: Params {
            dims: &dims,
            what: &what,
            walk: &walk,
            window: (&axes).into(),
            act: (&op.activation).into(),
            room: axes.map(|a| a.begin + a.input + a.end),
            rank: dims.len(),
            count,
            padded: op.padded.into(),
            power,
        },
    };
    l.linear(launch, count);
    Ok(())
}

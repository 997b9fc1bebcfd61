//! Products and convolutions of bytes.

use kilim_core::DType;
use kilim_core::ops::{
    Activation, Conv, ConvGeometry, ConvInteger, MatMulGeometry, MatMulInteger,
    MatMulIntegerToFloat, QLinearConv, QLinearMatMul, Requantize, WindowAxis,
};

use super::is_byte;
use super::parameters::{self, Places, Results};
use crate::device::storage::scalar;
use crate::kernels::Kernels;
use crate::kernels::products::matmul::Batches;
use crate::lowering::walk::both;
use crate::lowering::window::three;
use crate::lowering::{Lowering, Lowers, PackKind, ok, refuse};
use crate::shaders::quantized::product::{Launch, Params, ReadW, ReadX, Rm};
use crate::shaders::quantized::requantize as requantize_shader;
use crate::shaders::{Finish, Operand, Target, Word};

pub(crate) fn register(kernels: &mut Kernels) {
    use Places as P;
    kernels.add::<QLinearConv>(|op, l| conv(&op.conv, &P::Q_LINEAR, None, l));
    kernels.add::<ConvInteger>(|op, l| conv(&op.conv, &P::INTEGER, op.requantize.as_ref(), l));
    kernels.add::<QLinearMatMul>(|op, l| matmul(op.activation, &P::Q_LINEAR, None, l));
    kernels.add::<MatMulInteger>(|op, l| {
        matmul(Activation::None, &P::INTEGER, op.requantize.as_ref(), l)
    });
    kernels.add::<MatMulIntegerToFloat>(|_, l| matmul(Activation::None, &P::TO_FLOAT, None, l));
    kernels.add::<Requantize>(requantize);
}

/// One form for both; strides count elements, those of packed weights words.
struct Product {
    /// Matrices, or groups of channels, and how data and weights go on from one to the next.
    batch: Vec<usize>,
    walk_x: Vec<i64>,
    walk_w: Vec<i64>,
    rows: usize,
    outputs: usize,
    /// Channels of the data for one tap.
    channels: usize,
    axes: [WindowAxis; 3],
    x_image: usize,
    x_c: usize,
    x_space: [usize; 3],
    /// Strides of the weights: of a channel of the output, of one of the data, and of a tap.
    w: [usize; 3],
    weights: Operand,
    packed: bool,
    /// Four channels that are convolved one by one.
    depthwise: bool,
    y_batch: usize,
    y_image: usize,
    y_row: usize,
    y_col: usize,
    /// Channels of a batch that have parameters of their own.
    own: usize,
    finish: Finish,
    parameters: Operand,
}

impl Product {
    fn emit(self, l: &mut Lowering) {
        let whole = |v: &[usize]| v.iter().all(|s| s % 4 == 0);
        let quads = self.outputs.div_ceil(4);
        let batch: usize = self.batch.iter().product();
        // Few rows would leave most of the device without work.
        let tall = self.rows * quads * batch >= 4096;
        let (rm, rows) = if tall { (Rm::N4, 4) } else { (Rm::N1, 1) };
        let blocks = self.rows.div_ceil(rows);
        let units = batch.saturating_mul(blocks).saturating_mul(quads);
        let [w_n, w_c, w_tap] = self.w;
        let launch = Launch {
            read_x: self.read_x(),
            read_w: match self.packed {
                true => ReadW::Packed,
                false => ReadW::Strided,
            },
            rm,
            c4: self.y_col == 1 && whole(&[self.outputs, self.y_batch, self.y_image, self.y_row]),
            finish: self.finish,
            x: Operand::Input(0),
            w: self.weights,
            parameters: self.parameters,
            y: Target::Output(0),
            params: Params {
                walk: both(&self.batch, &self.walk_x, &self.walk_w),
                window: (&self.axes).into(),
                output: self.axes.map(|a| a.output),
                x_space: self.x_space,
                units,
                rows: self.rows,
                outputs: self.outputs,
                blocks,
                quads,
                positions: self.axes.iter().map(|a| a.output).product(),
                channels: self.channels,
                x_image: self.x_image,
                x_c: self.x_c,
                w_n,
                w_c,
                w_tap,
                y_batch: self.y_batch,
                y_image: self.y_image,
                y_row: self.y_row,
                y_col: self.y_col,
                own: self.own,
            },
        };
        l.linear(launch, units);
    }

    fn read_x(&self) -> ReadX {
        let quads = self.x_c == 1
            && self.channels.is_multiple_of(4)
            && self.x_space.iter().all(|s| s % 4 == 0)
            && self.walk_x.iter().all(|s| s % 4 == 0)
            && self.x_image.is_multiple_of(4);
        match (self.depthwise, quads) {
            (true, _) => ReadX::N4,
            (false, true) => ReadX::K4,
            (false, false) => ReadX::Strided,
        }
    }
}

fn want_bytes(l: &Lowering, places: &Places) -> Lowers {
    for i in [0, places.weights] {
        let dtype = l.input(i)?.dtype;
        if !is_byte(dtype) {
            return refuse(format!("input {i} is {dtype}; the GPU kernel takes 8 bits"));
        }
    }
    Ok(())
}

/// What packing takes off the numbers of weights.
fn moved(l: &Lowering, i: usize) -> Lowers<i32> {
    let unsigned = l.input(i)?.dtype == DType::U8;
    Ok(if l.is_known(i) && unsigned { 128 } else { 0 })
}

fn conv(op: &Conv, places: &Places, again: Option<&Requantize>, l: &mut Lowering) -> Lowers {
    want_bytes(l, places)?;
    let weights = places.weights;
    let g = ok(ConvGeometry::new(
        op,
        &l.input(0)?.shape,
        &l.input(weights)?.shape,
    ))?;
    let axes = three(&g.axes)?;
    let groups = g.groups.max(1);
    let (inputs, outputs) = (g.in_channels / groups, g.out_channels / groups);
    let taps: usize = axes.iter().map(|a| a.kernel).product();
    let positions: usize = axes.iter().map(|a| a.output).product();
    let [_, h, w] = axes.map(|a| a.input);
    let space: usize = axes.iter().map(|a| a.input).product();
    let all = g.out_channels;
    let (x_c, x_space, y_row, y_col) = match g.channels_last {
        true => (1, [h * w, w, 1].map(|s| s * g.in_channels), all, 1),
        false => (space, [h * w, w, 1], 1, positions),
    };
    let activation = match places.results {
        Results::Quantized(_) => op.activation,
        _ if op.activation == Activation::None => Activation::None,
        _ => return refuse("an activation of integer sums is not on the GPU"),
    };
    let moved = moved(l, weights)?;
    let (finish, parameters) = parameters::of_product(l, places, all, moved, activation, again)?;
    let packed = l.is_known(weights);
    let depthwise =
        packed && g.channels_last && inputs == 1 && outputs == 1 && groups.is_multiple_of(4);
    // Channels that are convolved one by one are those of one group.
    let (groups, outputs, inputs_all) = match depthwise {
        true => (1, groups, groups),
        false => (groups, outputs, inputs),
    };
    let channels = if depthwise { 1 } else { inputs };
    let wide = outputs.next_multiple_of(4);
    let (operand, walk_w) = if packed {
        let kind = PackKind::Bytes {
            shape: vec![groups, outputs, channels, taps],
            perm: vec![0, 3, 2, 1],
            padded: vec![groups, taps, channels, wide],
        };
        (l.pack(weights, kind), taps * channels * wide / 4)
    } else {
        (Operand::Input(weights), outputs * inputs * taps)
    };
    Product {
        batch: vec![groups],
        walk_x: vec![(inputs_all * x_c) as i64],
        walk_w: vec![walk_w as i64],
        rows: g.batch.saturating_mul(positions),
        outputs,
        channels,
        axes,
        x_image: space * g.in_channels,
        x_c,
        x_space,
        w: [inputs * taps, taps, 1],
        weights: operand,
        packed,
        depthwise,
        y_batch: outputs * y_col,
        y_image: all * positions,
        y_row,
        y_col,
        own: outputs,
        finish,
        parameters,
    }
    .emit(l);
    Ok(())
}

fn matmul(
    activation: Activation,
    places: &Places,
    again: Option<&Requantize>,
    l: &mut Lowering,
) -> Lowers {
    want_bytes(l, places)?;
    let weights = places.weights;
    let (a, b) = (l.input(0)?, l.input(weights)?);
    let g = ok(MatMulGeometry::new(&a.shape, &b.shape, false))?;
    let moved = moved(l, weights)?;
    let (finish, parameters) = parameters::of_product(l, places, g.n, moved, activation, again)?;
    let packed = l.is_known(weights);
    let count: usize = g.b_batch.iter().product();
    let wide = g.n.next_multiple_of(4);
    let (operand, matrix) = if packed {
        let kind = PackKind::Bytes {
            shape: vec![count, g.k, g.n],
            perm: vec![0, 1, 2],
            padded: vec![count, g.k, wide],
        };
        (l.pack(weights, kind), g.k * wide / 4)
    } else {
        (Operand::Input(weights), g.k * g.n)
    };
    let batches = Batches::new(&g, matrix)?;
    Product {
        batch: batches.batch,
        walk_x: batches.walk_a,
        walk_w: batches.walk_b,
        rows: batches.m,
        outputs: g.n,
        channels: g.k,
        // A row is an image of one position.
        axes: [WindowAxis::POINT; 3],
        x_image: g.k,
        x_c: 1,
        x_space: [0; 3],
        w: [1, g.n, 0],
        weights: operand,
        packed,
        depthwise: false,
        y_batch: batches.m * g.n,
        y_image: g.n,
        y_row: 0,
        y_col: 1,
        own: 0,
        finish,
        parameters,
    }
    .emit(l);
    Ok(())
}

fn requantize(op: &Requantize, l: &mut Lowering) -> Lowers {
    let (x, y) = (l.input(0)?, l.output(0)?);
    if scalar(x.dtype).is_none_or(|s| s.word == Word::F32) || x.dtype == DType::U32 {
        return refuse(format!("Requantize of {} is not on the GPU", x.dtype));
    }
    let launch = requantize_shader::Launch {
        x: Operand::Input(0),
        parameters: parameters::of_requantize(l, op),
        y: Target::Output(0),
        params: requantize_shader::Params {
            count: y.elements(),
            channels: op.factors.len(),
        },
    };
    l.linear(launch, y.elements());
    Ok(())
}

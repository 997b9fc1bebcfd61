//! Recurrent layers: one product of all inputs and weights, then one dispatch through time.

use kilim_core::ops::{
    Activation, CellActivation, Direction, Gru, Lstm, Recurrent, RecurrentGeometry, Rnn,
};

use crate::kernels::Kernels;
use crate::kernels::movement::permuted;
use crate::kernels::products::matmul::Product;
use crate::lowering::{Lowering, Lowers, PackKind, ok, refuse};
use crate::shaders::recurrent::cell::{Cell, Launch, Params};
use crate::shaders::{Operand, Stored, Target};

/// Units that the workgroup memory of the kernel has room for.
const MOST_HIDDEN: usize = 1024;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Lstm>(|op, l| {
        if op.input_forget {
            return refuse("LSTM with coupled gates is not on the GPU");
        }
        if l.optional(7).is_some() {
            return refuse("LSTM with peepholes is not on the GPU");
        }
        if op.rounds_state {
            return refuse("LSTM with a state of 8 bits is not on the GPU");
        }
        let layer = Layer::new(4, &op.cell, l)?;
        let cell = Cell::Lstm {
            last_c: layer.state(2, l),
            first_c: or_zeros(6, layer.states(), l),
        };
        layer.emit(cell, op.cell_clip.unwrap_or(f32::MAX), false, l)
    });
    kernels.add::<Gru>(|op, l| {
        let layer = Layer::new(3, &op.cell, l)?;
        layer.emit(Cell::Gru, f32::MAX, op.linear_before_reset, l)
    });
    kernels.add::<Rnn>(|op, l| {
        let layer = Layer::new(1, &op.cell, l)?;
        layer.emit(Cell::Rnn, f32::MAX, false, l)
    });
}

/// Whether the activations are the usual ones of a cell.
fn usual(cell: &Recurrent, gates: usize) -> bool {
    use CellActivation::{Sigmoid, Tanh};
    let each: &[CellActivation] = match gates {
        4 => &[Sigmoid, Tanh, Tanh],
        3 => &[Sigmoid, Tanh],
        _ => &[Tanh],
    };
    cell.activations.is_empty()
        || (cell.activations.len() == each.len() * cell.direction.count()
            && cell.activations.chunks(each.len()).all(|c| c == each))
}

/// Input `i`, or as many zeros.
fn or_zeros(i: usize, count: usize, l: &mut Lowering) -> Operand {
    match l.optional(i) {
        Some(_) => Operand::Input(i),
        None => l.table(vec![0; count]),
    }
}

/// Output `i`, or a temporary of its size.
fn or_scratch(i: usize, count: usize, l: &mut Lowering) -> Target {
    match l.node.outputs.get(i) {
        Some(_) => Target::Output(i),
        None => l.scratch(count * 4),
    }
}

/// A layer, whose inputs have met their weights.
struct Layer<'a> {
    cell: &'a Recurrent,
    geometry: RecurrentGeometry,
    projected: Operand,
    weights: Operand,
}

impl<'a> Layer<'a> {
    fn new(gates: usize, cell: &'a Recurrent, l: &mut Lowering) -> Lowers<Layer<'a>> {
        let geometry = geometry(gates, cell, l)?;
        Ok(Layer {
            cell,
            projected: projected_inputs(&geometry, l)?,
            weights: recurrent_weights(&geometry, l)?,
            geometry,
        })
    }

    /// Elements of a state.
    fn states(&self) -> usize {
        let g = &self.geometry;
        g.directions * g.batch * g.hidden
    }

    /// Where the state goes that is output `i`.
    fn state(&self, i: usize, l: &mut Lowering) -> Target {
        or_scratch(i, self.states(), l)
    }

    fn emit(
        self,
        cell: Cell,
        cell_clip: f32,
        linear_before_reset: bool,
        l: &mut Lowering,
    ) -> Lowers {
        let g = &self.geometry;
        let y = or_scratch(0, g.time * g.batch * g.directions * g.hidden, l);
        let launch = Launch {
            cell,
            xw: self.projected,
            r: self.weights,
            y,
            last_h: self.state(1, l),
            bias: or_zeros(3, 2 * g.directions * g.gates * g.hidden, l),
            first_h: or_zeros(5, self.states(), l),
            params: Params {
                backward: (self.cell.direction == Direction::Reverse).into(),
                clip: self.cell.clip.unwrap_or(f32::MAX),
                cell_clip,
                linear_before_reset: linear_before_reset.into(),
                ..sizes(g)
            },
        };
        l.dispatch(launch, [g.batch, g.directions, 1]);
        Ok(())
    }
}

/// The sizes of a layer that the kernel can run.
fn geometry(gates: usize, cell: &Recurrent, l: &mut Lowering) -> Lowers<RecurrentGeometry> {
    let (x, w, r) = (l.input(0)?, l.input(1)?, l.input(2)?);
    let g = ok(RecurrentGeometry::new(
        cell, gates, &x.shape, &w.shape, &r.shape,
    ))?;
    if let Some(lengths) = l.known_ints(4)?
        && lengths.iter().any(|&n| n != g.time as i64)
    {
        return refuse("sequences of several lengths are not on the GPU");
    }
    for i in [0, 1, 2, 3, 5, 6] {
        l.want(i, kilim_core::DType::F32)?;
    }
    if !usual(cell, gates) {
        return refuse("other activations than the usual ones are not on the GPU");
    }
    if g.hidden > MOST_HIDDEN {
        return refuse(format!(
            "the GPU kernel has up to {MOST_HIDDEN} hidden units"
        ));
    }
    Ok(g)
}

/// The product of the inputs of all steps with their weights, `[time * batch, directions * gates * hidden]`.
fn projected_inputs(g: &RecurrentGeometry, l: &mut Lowering) -> Lowers<Operand> {
    let n = g.directions * g.gates * g.hidden;
    let (b, b_strides) = if l.is_known(1) {
        let wide = n.next_multiple_of(4);
        let kind = PackKind::Permute {
            shape: vec![n, g.input],
            perm: vec![1, 0],
            padded: vec![g.input, wide],
        };
        (l.pack(1, kind), [wide, 1])
    } else {
        (Operand::Input(1), [1, g.input])
    };
    let rows = g.time * g.batch;
    let projected = l.scratch(rows * n * 4);
    Product {
        m: rows,
        n,
        k: g.input,
        batch: vec![1],
        walk_a: vec![0],
        walk_b: vec![0],
        a: Operand::Input(0),
        a_strides: [g.input, 1],
        b,
        b_strides,
        c: projected,
        bias: None,
        residual: None,
        alpha: 1.0,
        activation: Activation::None,
        stored: Stored::F32,
    }
    .emit(l)?;
    Ok(projected.into())
}

/// Sizes, and the strides of the product, of the output and of the states.
fn sizes(g: &RecurrentGeometry) -> Params {
    let (h, d) = (g.hidden, g.directions);
    let ([xw_time, xw_batch], [y_time, y_batch, y_direction], [h_batch, h_direction]) =
        match g.batch_first {
            true => ([1, g.time], [d * h, g.time * d * h, h], [d * h, h]),
            false => (
                [g.batch, 1],
                [d * g.batch * h, h, g.batch * h],
                [h, g.batch * h],
            ),
        };
    Params {
        time: g.time,
        batch: g.batch,
        directions: d,
        hidden: h,
        xw_time,
        xw_batch,
        y_time,
        y_batch,
        y_direction,
        h_batch,
        h_direction,
        ..Params::default()
    }
}

/// `[directions, gates * hidden, hidden]` with the columns outermost, so that neighbouring threads
/// read neighbouring weights.
fn recurrent_weights(g: &RecurrentGeometry, l: &mut Lowering) -> Lowers<Operand> {
    let shape = vec![g.directions, g.gates, g.hidden, g.hidden];
    let perm = vec![0, 3, 1, 2];
    if l.is_known(2) {
        let padded = perm.iter().map(|&p| shape[p]).collect();
        return Ok(l.pack(
            2,
            PackKind::Permute {
                shape,
                perm,
                padded,
            },
        ));
    }
    let scratch = l.scratch(shape.iter().product::<usize>() * 4);
    let dtype = l.input(2)?.dtype;
    permuted(&shape, &perm).emit(l, dtype, Operand::Input(2), scratch)?;
    Ok(scratch.into())
}

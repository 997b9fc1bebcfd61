//! Recurrent layers: one product of all inputs and weights, then one dispatch through time.

use kilim_core::ops::*;

use super::Kernels;
use super::matmul::Product;
use super::movement::{ok, permuted};
use crate::constants::PackKind;
use crate::lower::{Lowering, Lowers, Operand, refuse};
use crate::params::Params;

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
        let clip = op.cell_clip.unwrap_or(f32::MAX);
        layer("lstm", 4, &op.cell, clip, false, l)
    });
    kernels.add::<Gru>(|op, l| {
        let linear = op.linear_before_reset;
        layer("gru", 3, &op.cell, f32::MAX, linear, l)
    });
    kernels.add::<Rnn>(|op, l| layer("rnn", 1, &op.cell, f32::MAX, false, l));
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

fn layer(
    name: &'static str,
    gates: usize,
    cell: &Recurrent,
    cell_clip: f32,
    linear_before_reset: bool,
    l: &mut Lowering,
) -> Lowers {
    let g = geometry(gates, cell, l)?;
    let projected = projected_inputs(&g, l)?;
    let weights = recurrent_weights(&g, l)?;
    let states = g.directions * g.batch * g.hidden;
    let or_zeros = |l: &mut Lowering, i: usize, count: usize| match l.optional(i) {
        Some(_) => Operand::Input(i),
        None => l.table(vec![0; count]),
    };
    let bias = or_zeros(l, 3, 2 * g.directions * gates * g.hidden);
    let first_h = or_zeros(l, 5, states);
    let out = |l: &mut Lowering, i: usize, count: usize| match l.node.outputs.get(i) {
        Some(_) => Operand::Output(i),
        None => l.scratch(count * 4),
    };
    let y = out(l, 0, g.time * g.batch * g.directions * g.hidden);
    let last_h = out(l, 1, states);
    let mut operands = vec![projected, weights, y, last_h, bias, first_h];
    if gates == 4 {
        operands.push(out(l, 2, states));
        operands.push(or_zeros(l, 6, states));
    }
    let params = strides(&g)
        .u(usize::from(cell.direction == Direction::Reverse))
        .f(cell.clip.unwrap_or(f32::MAX))
        .f(cell_clip)
        .u(usize::from(linear_before_reset));
    let groups = [g.batch, g.directions, 1];
    l.dispatch("cell", &[("CELL", name)], &operands, params, groups);
    Ok(())
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
        stored: "f32",
    }
    .emit(l)?;
    Ok(projected)
}

/// The first parameters of the kernel: sizes, then the strides of the product, of the output and of the states.
fn strides(g: &RecurrentGeometry) -> Params {
    let (h, d) = (g.hidden, g.directions);
    let (projected, y, states) = match g.batch_first {
        true => ([1, g.time], [d * h, g.time * d * h, h], [d * h, h]),
        false => (
            [g.batch, 1],
            [d * g.batch * h, h, g.batch * h],
            [h, g.batch * h],
        ),
    };
    let sizes = [g.time, g.batch, d, h];
    let all = sizes.iter().chain(&projected).chain(&y).chain(&states);
    all.fold(Params::new(), |params, &n| params.u(n))
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
    Ok(scratch)
}

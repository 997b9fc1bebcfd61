//! The operators that Circle has beside those of TFLite. What they compute is that of ONE's kernels
//! (`compute/cker/include/cker/operation/`, `compiler/luci-interpreter/src/kernels/` and `pal/linux/`).

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    CellActivation, Direction, Gru, InstanceNorm, Recurrent, RmsNorm, Transpose, Unary, UnaryKind,
};

use super::super::import::{Import, Op};
use super::{Mapping, computes};
use crate::build::OpTable;

/// The operators by their numbers in the schema.
pub static OPERATORS: OpTable<i32, Mapping> = OpTable(&[
    (-8, computes("RUN_MODEL", another_model)),
    (-7, computes("ROPE", rope)),
    (-6, computes("RMS_NORM", rms_norm)),
    (-5, computes("GRU", gru)),
    (-4, computes("BCQ_GATHER", binary_coded)),
    (-3, computes("BCQ_FULLY_CONNECTED", binary_coded)),
    (-2, computes("INSTANCE_NORM", instance_norm)),
]);

fn another_model(_: &mut Import, _: &Op) -> Result<()> {
    Err(unsupported("a model in another file"))
}

fn binary_coded(_: &mut Import, _: &Op) -> Result<()> {
    Err(unsupported("weights in binary codes (BCQ)"))
}

/// A vector of one number for each of `channels`; the file may have a single one for all.
fn per_channel(imp: &mut Import, op: &Op, i: usize, channels: usize) -> Result<ValueId> {
    let list = imp.input(op, i)?;
    if imp.input_dim(op, i, 0)? == channels {
        return Ok(list);
    }
    let shape = imp.i64s(&[i64::try_from(channels).unwrap_or(i64::MAX)])?;
    imp.expand(list, shape)
}

/// Writes the output of `op`, behind the activation that its options have in slot 1.
fn activated(imp: &mut Import, op: &Op, y: ValueId) -> Result<()> {
    let activation = op.activation(1)?;
    imp.emit_activated(op, Unary(UnaryKind::Identity), &[Some(y)], activation)
}

/// Inputs: data `[n, h, w, c]` or `[n, c, d]`, factors and offsets `[c]` or `[1]`.
fn instance_norm(imp: &mut Import, op: &Op) -> Result<()> {
    let epsilon = op.float(0)?;
    let norm = InstanceNorm { epsilon };
    let mut x = imp.input(op, 0)?;
    let channel = match imp.input_rank(op, 0)? {
        3 => 1,
        4 => 3,
        other => return Err(unsupported(format!("data of rank {other}"))),
    };
    let channels = imp.input_dim(op, 0, channel)?;
    let parameters = [1, 2].map(|i| per_channel(imp, op, i, channels));
    let [scale, bias] = parameters;
    let (scale, bias) = (scale?, bias?);
    if channel == 1 {
        let y = imp.op(norm, &[x, scale, bias])?;
        return activated(imp, op, y);
    }
    x = imp.transpose(x, &[0, 3, 1, 2])?;
    let y = imp.op(norm, &[x, scale, bias])?;
    if op.enumeration(1)? == 0 {
        let perm = vec![0, 2, 3, 1];
        return imp.emit(op, Transpose { perm }, &[Some(y)]);
    }
    let y = imp.transpose(y, &[0, 2, 3, 1])?;
    activated(imp, op, y)
}

/// Inputs: data, factors `[c]` or `[1]` of its last dimension, offsets of the same form or none.
fn rms_norm(imp: &mut Import, op: &Op) -> Result<()> {
    let epsilon = op.float(0)?;
    let last = imp.input_rank(op, 0)?.saturating_sub(1);
    let channels = imp.input_dim(op, 0, last)?;
    let x = imp.input(op, 0)?;
    let scale = per_channel(imp, op, 1, channels)?;
    let norm = RmsNorm { axis: -1, epsilon };
    // Files of 2024 have an activation in slot 1.
    if op.tensor(2).is_none() && op.enumeration(1)? == 0 {
        return imp.emit(op, norm, &[Some(x), Some(scale)]);
    }
    let mut y = imp.op(norm, &[x, scale])?;
    if op.tensor(2).is_some() {
        let offsets = imp.input(op, 2)?;
        y = imp.add(y, offsets)?;
    }
    activated(imp, op, y)
}

/// Inputs: data `[.., d]`, and a row of sines and one of cosines of the angles of `d` numbers. A number of the first half turns
/// with one of the second.
fn rope(imp: &mut Import, op: &Op) -> Result<()> {
    if op.int(0)? != 0 {
        return Err(unsupported(
            "pairs of neighbours (GPT_J), which ONE does not run",
        ));
    }
    let last = imp.input_rank(op, 0)?.saturating_sub(1);
    let size = imp.input_dim(op, 0, last)?;
    for table in [1, 2] {
        let shape = &imp.info(op, table)?.shape;
        // ONE reads the first row alone, whatever the shape.
        if shape.last() != Some(&size) || shape.iter().rev().skip(1).any(|&d| d != 1) {
            return Err(unsupported("angles of several places"));
        }
    }
    let x = imp.input(op, 0)?;
    let (sines, cosines) = (imp.input(op, 1)?, imp.input(op, 2)?);
    let [first, second] = imp.halves(x, -1)?;
    let negative = imp.unary(UnaryKind::Neg, second)?;
    let turned = imp.concat(&[negative, first], -1)?;
    let turned = imp.mul(turned, sines)?;
    let kept = imp.mul(x, cosines)?;
    let y = imp.add(kept, turned)?;
    written(imp, op, y)
}

/// Writes the output of `op`.
fn written(imp: &mut Import, op: &Op, y: ValueId) -> Result<()> {
    imp.emit(op, Unary(UnaryKind::Identity), &[Some(y)])
}

/// Inputs: data `[time, 1, i]`, its weights `[3 h, i]` and their bias, weights of the state `[3 h, h]` and their bias, the state
/// before. The file calls the weights of the data `hidden_hidden`. The output is the last state.
fn gru(imp: &mut Import, op: &Op) -> Result<()> {
    if !matches!(op.enumeration(0)?, 0 | 4) {
        return Err(unsupported("an activation other than tanh"));
    }
    if op.flag(1)? {
        return Err(unsupported("the states of all steps"));
    }
    if imp.input_rank(op, 0)? != 3 || imp.input_dim(op, 0, 1)? != 1 {
        return Err(unsupported("data that is no `[time, 1, size]`"));
    }
    let hidden = imp.input_dim(op, 3, 1)?;
    let inputs = (0..6)
        .map(|i| imp.input(op, i))
        .collect::<Result<Vec<_>>>()?;
    let state = inputs[5];
    let [w, r] = [inputs[1], inputs[3]].map(|m| imp.unsqueeze(m, &[0]));
    let bias = imp.concat(&[inputs[2], inputs[4]], 0)?;
    let bias = imp.unsqueeze(bias, &[0])?;
    let before = imp.reshape(state, &[1, 1, -1])?;
    let layer = Gru {
        cell: Recurrent {
            hidden,
            direction: Direction::Forward,
            activations: vec![CellActivation::Sigmoid, CellActivation::Tanh],
            clip: None,
            batch_first: false,
        },
        linear_before_reset: true,
    };
    let given = [
        Some(inputs[0]),
        Some(w?),
        Some(r?),
        Some(bias),
        None,
        Some(before),
    ];
    let made = imp.apply(layer, &given, 2)?;
    let shape = imp.shape_of(state)?;
    let last = imp.reshape_to(made[1], shape)?;
    written(imp, op, last)
}

//! Reductions and softmax.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{Cumulative, Einsum, ReduceKind, Softmax, SoftmaxKind};

use super::Outputs;
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

/// Files of before a mistake of ncnn was repaired lack this mark, and ncnn refuses them.
fn repaired(layer: &Layer, id: i32) -> Result<()> {
    match layer.params.flag(id, false)? {
        true => Ok(()),
        false => Err(unsupported("axes of an old file")
            .with_hint("convert the model again, by the current ncnn")),
    }
}

/// The layer `Reduction` (`src/layer/reduction.h`). A blob of one number is left where all dimensions go.
pub fn reduction(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let kind = match layer.params.int(0, 0)? {
        0 => ReduceKind::Sum,
        1 | 7 => ReduceKind::L1,
        2 => ReduceKind::SumSquare,
        3 => ReduceKind::Mean,
        4 => ReduceKind::Max,
        5 => ReduceKind::Min,
        6 => ReduceKind::Prod,
        8 => ReduceKind::L2,
        9 => ReduceKind::LogSum,
        10 => ReduceKind::LogSumExp,
        other => return Err(unsupported(format!("reduction number {other}"))),
    };
    let given = layer.params.ints(3)?;
    if !given.is_empty() {
        repaired(layer, 5)?;
    }
    let rank = imp.blob_rank(x)?;
    let mut axes: Vec<i64> = match layer.params.flag(1, true)? || rank == 1 {
        true => (1..=rank as i64).collect(),
        false => given
            .iter()
            .map(|&axis| imp.axis(x, axis))
            .collect::<Result<_>>()?,
    };
    axes.sort_unstable();
    axes.dedup();
    if axes.is_empty() {
        return Err(unsupported("a reduction along no axis"));
    }
    let keeps = layer.params.flag(4, false)?;
    let mut y = imp.reduce(kind, x, &axes, keeps)?;
    if !keeps && axes.len() == rank {
        y = imp.unsqueeze(y, &[1])?;
    }
    Ok(vec![imp.scaled(y, layer.params.float(2, 1.0)?)?])
}

pub fn softmax(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let axis = layer.params.int(0, 0)?;
    if axis != 0 {
        repaired(layer, 1)?;
    }
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: imp.axis(x, axis)?,
        beta: 1.0,
    };
    Ok(vec![imp.op(softmax, &[x])?])
}

pub fn cumulative_sum(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let axis = match imp.blob_rank(x)? {
        1 => 1,
        _ => imp.axis(x, layer.params.int(0, 0)?)?,
    };
    let sum = Cumulative {
        product: false,
        exclusive: false,
        reverse: false,
    };
    let axis = imp.i64(axis)?;
    Ok(vec![imp.op(sum, &[x, axis])?])
}

/// The letter of the dimension in front of all blobs; files use letters from `i` on.
const FRONT: char = 'a';

/// The layer `Einsum`, whose equation is a list of letters.
pub fn einsum(imp: &mut Import, layer: &Layer) -> Outputs {
    let letters = layer.params.ints(0)?;
    let letter = |&n: &i64| {
        u8::try_from(n)
            .ok()
            .map(char::from)
            .filter(|c| matches!(c, 'i'..='x' | ',' | '-' | '>'))
    };
    let equation: Option<String> = letters.iter().map(letter).collect();
    let equation =
        equation.ok_or_else(|| invalid("an equation has other signs than letters from i to x"))?;
    if equation == "ii" {
        let equation = format!("{FRONT}ii->{FRONT}");
        let y = imp.op(Einsum { equation }, &layer.inputs)?;
        return Ok(vec![imp.unsqueeze(y, &[1])?]);
    }
    let (terms, result) = equation
        .split_once("->")
        .ok_or_else(|| invalid("an equation has no result"))?;
    let terms: Vec<String> = terms
        .split(',')
        .map(|term| format!("{FRONT}{term}"))
        .collect();
    let equation = format!("{}->{FRONT}{result}", terms.join(","));
    Ok(vec![imp.op(Einsum { equation }, &layer.inputs)?])
}

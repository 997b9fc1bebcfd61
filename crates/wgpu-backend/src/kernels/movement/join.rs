//! Concat and Split.

use kilim_core::DType;
use kilim_core::ops::*;

use super::super::select::carrier;
use super::{Walk, around, ok};
use crate::lower::{Lowering, Lowers, Operand};
use crate::params::Params;

/// Parts that one dispatch joins or splits.
const PARTS: usize = 7;
pub(crate) const PART_COUNTS: &[&str] = &["2", "3", "4", "5", "6", "7"];

/// Joins `parts` into `whole` or splits it into them. A part is an operand and its width.
fn join(
    l: &mut Lowering,
    dtype: DType,
    rows: usize,
    whole: Operand,
    parts: &[(Operand, usize)],
    split: bool,
) -> Lowers {
    let mut t = carrier(dtype)?;
    let unit = if t == "u32" && parts.iter().all(|(_, w)| w.is_multiple_of(4)) {
        t = "vec4u";
        4
    } else {
        1
    };
    let total: usize = parts.iter().map(|(_, w)| w / unit).sum();
    let parts: Vec<_> = parts.iter().filter(|(_, w)| *w > 0).collect();
    let most = PARTS.min(l.caps.max_bindings.saturating_sub(1)).max(2);
    let mut start = 0;
    for chunk in parts.chunks(most) {
        if let [(part, width)] = chunk {
            let (width, far) = (width / unit * unit, total * unit);
            let whole_walk = vec![far as i64, 1];
            let own = vec![width as i64, 1];
            let at = start * unit;
            let walk = Walk {
                dims: vec![rows, width],
                x: if split {
                    whole_walk.clone()
                } else {
                    own.clone()
                },
                x_base: if split { at } else { 0 },
                y: if split { own } else { whole_walk },
                y_base: if split { 0 } else { at },
            };
            let (from, to) = if split {
                (whole, *part)
            } else {
                (*part, whole)
            };
            walk.emit(l, dtype, from, to)?;
            start += width / unit;
            continue;
        }
        let mut ends = Vec::with_capacity(chunk.len());
        let mut width = 0;
        let mut operands = vec![whole];
        for (part, w) in chunk {
            width += w / unit;
            ends.push(width);
            operands.push(*part);
        }
        let count = rows.saturating_mul(width);
        l.linear(
            "join",
            &[
                ("T", t),
                ("COUNT", PART_COUNTS[chunk.len() - 2]),
                ("SPLIT", if split { "1" } else { "0" }),
            ],
            &operands,
            Params::new()
                .dims(&ends)
                .u(count)
                .u(width)
                .u(total)
                .u(start),
            count,
        );
        start += width;
    }
    Ok(())
}

pub(super) fn concat(op: &Concat, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let axis = ok(normalize_axis(op.axis, y.shape.len()))?;
    let [rows, _, _] = around(&y.shape, axis);
    let mut parts = Vec::with_capacity(l.node.inputs.len());
    for i in 0..l.node.inputs.len() {
        let [_, size, inner] = around(&l.input(i)?.shape, axis);
        parts.push((Operand::Input(i), size * inner));
    }
    join(l, y.dtype, rows, Operand::Output(0), &parts, false)
}

pub(super) fn split(op: &Split, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [rows, _, inner] = around(&x.shape, axis);
    let parts: Vec<_> = l
        .node
        .outputs
        .iter()
        .enumerate()
        .map(|(i, o)| (Operand::Output(i), o.shape[axis] * inner))
        .collect();
    join(l, x.dtype, rows, Operand::Input(0), &parts, true)
}

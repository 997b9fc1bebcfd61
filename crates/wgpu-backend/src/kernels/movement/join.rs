//! Concat and Split.

use kilim_core::DType;
use kilim_core::ops::{Concat, Split, normalize_axis};

use super::Walk;
use crate::lowering::elements::carrier4;
use crate::lowering::walk::around;
use crate::lowering::{Lowering, Lowers, ok, wrong};
use crate::shaders::movement::{join, split as split_shader};
use crate::shaders::{Moved4, Operand, Parts, Target};

/// Parts that one dispatch joins or splits.
const PARTS: usize = 7;

/// Rows that are parted, all in the same way.
struct Rows {
    dtype: DType,
    count: usize,
    t: Moved4,
    /// Elements of a unit, units of a row.
    unit: usize,
    total: usize,
}

/// Parts that one dispatch treats.
struct Chunk {
    /// Which of all parts.
    parts: Vec<usize>,
    /// Units of a row in front of the parts.
    start: usize,
    /// Where each part ends, counted from there.
    ends: Vec<usize>,
}

/// Rows whose parts have these `widths`, and their parts that are not empty, as many at once as the device
/// binds.
fn parted(
    l: &Lowering,
    dtype: DType,
    count: usize,
    widths: &[usize],
) -> Lowers<(Rows, Vec<Chunk>)> {
    let (t, unit) = carrier4(dtype, widths.iter().all(|w| w.is_multiple_of(4)))?;
    let most = PARTS.min(l.caps.max_bindings.saturating_sub(1)).max(2);
    let filled: Vec<usize> = (0..widths.len()).filter(|&i| widths[i] > 0).collect();
    let mut total = 0;
    let chunk = |parts: &[usize]| {
        let start = total;
        let end = |&i: &usize| {
            total += widths[i] / unit;
            total - start
        };
        Chunk {
            ends: parts.iter().map(end).collect(),
            parts: parts.to_vec(),
            start,
        }
    };
    let chunks = filled.chunks(most).map(chunk).collect();
    let rows = Rows {
        dtype,
        count,
        t,
        unit,
        total,
    };
    Ok((rows, chunks))
}

impl Chunk {
    /// Units of a row in all parts.
    fn width(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn params(&self, rows: &Rows) -> Parts<'_> {
        Parts {
            ends: &self.ends,
            count: rows.count.saturating_mul(self.width()),
            width: self.width(),
            total: rows.total,
            start: self.start,
        }
    }

    /// Dimensions of a single part, its strides and those of the whole, and where it begins there.
    fn alone(&self, rows: &Rows) -> (Vec<usize>, Vec<i64>, Vec<i64>, usize) {
        let (width, far) = (self.width() * rows.unit, rows.total * rows.unit);
        let strides = |n: usize| vec![n as i64, 1];
        let dims = vec![rows.count, width];
        (dims, strides(width), strides(far), self.start * rows.unit)
    }
}

fn join_count(parts: &[usize]) -> Lowers<join::Count> {
    use join::Count;
    let input = Operand::Input;
    Ok(match *parts {
        [a, b] => Count::N2 {
            part: [a, b].map(input),
        },
        [a, b, c] => Count::N3 {
            part: [a, b, c].map(input),
        },
        [a, b, c, d] => Count::N4 {
            part: [a, b, c, d].map(input),
        },
        [a, b, c, d, e] => Count::N5 {
            part: [a, b, c, d, e].map(input),
        },
        [a, b, c, d, e, f] => Count::N6 {
            part: [a, b, c, d, e, f].map(input),
        },
        [a, b, c, d, e, f, g] => Count::N7 {
            part: [a, b, c, d, e, f, g].map(input),
        },
        _ => return wrong(format!("{} parts are joined at once", parts.len())),
    })
}

fn split_count(parts: &[usize]) -> Lowers<split_shader::Count> {
    use split_shader::Count;
    let output = Target::Output;
    Ok(match *parts {
        [a, b] => Count::N2 {
            part: [a, b].map(output),
        },
        [a, b, c] => Count::N3 {
            part: [a, b, c].map(output),
        },
        [a, b, c, d] => Count::N4 {
            part: [a, b, c, d].map(output),
        },
        [a, b, c, d, e] => Count::N5 {
            part: [a, b, c, d, e].map(output),
        },
        [a, b, c, d, e, f] => Count::N6 {
            part: [a, b, c, d, e, f].map(output),
        },
        [a, b, c, d, e, f, g] => Count::N7 {
            part: [a, b, c, d, e, f, g].map(output),
        },
        _ => return wrong(format!("{} parts are split at once", parts.len())),
    })
}

pub(super) fn concat(op: &Concat, l: &mut Lowering) -> Lowers {
    let y = l.output(0)?;
    let axis = ok(normalize_axis(op.axis, y.shape.len()))?;
    let [count, _, _] = around(&y.shape, axis);
    let mut widths = Vec::with_capacity(l.node.inputs.len());
    for i in 0..l.node.inputs.len() {
        let [_, size, inner] = around(&l.input(i)?.shape, axis);
        widths.push(size * inner);
    }
    let (rows, chunks) = parted(l, y.dtype, count, &widths)?;
    for chunk in chunks {
        if let [part] = chunk.parts[..] {
            let (dims, x, y, y_base) = chunk.alone(&rows);
            let x_base = 0;
            let walk = Walk {
                dims,
                x,
                x_base,
                y,
                y_base,
            };
            walk.emit(l, rows.dtype, Operand::Input(part), Target::Output(0))?;
            continue;
        }
        let parts = chunk.params(&rows);
        let items = parts.count;
        let launch = join::Launch {
            t: rows.t,
            count: join_count(&chunk.parts)?,
            whole: Target::Output(0),
            params: join::Params { parts },
        };
        l.linear(launch, items);
    }
    Ok(())
}

pub(super) fn split(op: &Split, l: &mut Lowering) -> Lowers {
    let x = l.input(0)?;
    let axis = ok(normalize_axis(op.axis, x.shape.len()))?;
    let [count, _, inner] = around(&x.shape, axis);
    let widths = l.node.outputs.iter().map(|o| o.shape[axis] * inner);
    let widths: Vec<usize> = widths.collect();
    let (rows, chunks) = parted(l, x.dtype, count, &widths)?;
    for chunk in chunks {
        if let [part] = chunk.parts[..] {
            let (dims, y, x, x_base) = chunk.alone(&rows);
            let y_base = 0;
            let walk = Walk {
                dims,
                x,
                x_base,
                y,
                y_base,
            };
            walk.emit(l, rows.dtype, Operand::Input(0), Target::Output(part))?;
            continue;
        }
        let parts = chunk.params(&rows);
        let items = parts.count;
        let launch = split_shader::Launch {
            t: rows.t,
            count: split_count(&chunk.parts)?,
            whole: Operand::Input(0),
            params: split_shader::Params { parts },
        };
        l.linear(launch, items);
    }
    Ok(())
}

//! Trilu and ReverseSequence.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::{shape_error, value_error};
use kilim_core::ops::{ReverseSequence, Trilu};
use kilim_core::{DType, Result};
use kilim_host::elements::{Codec, Wide, contiguous_strides};
use kilim_host::rules;
use kilim_host::{Build, Io, Kernel, by};

use super::data;

pub fn accepts_trilu(_: &Trilu, node: &NodeSpec) -> Result<(), Refusal> {
    rules::input_is(node, 1, &[DType::I64])
}

pub fn build_trilu(op: &Trilu, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let [.., rows, columns] = x.shape[..] else {
        return Err(shape_error("two dimensions are needed"));
    };
    Ok(Box::new(Triangle {
        upper: op.upper,
        rows,
        columns,
        size: x.dtype.size(),
    }))
}

struct Triangle {
    upper: bool,
    rows: usize,
    columns: usize,
    size: usize,
}

impl Kernel for Triangle {
    fn run(&self, io: &mut Io) -> Result<()> {
        let k = io
            .optional::<i64>(1)
            .and_then(|k| k.first().copied())
            .unwrap_or(0);
        let x = io.input_bytes(0);
        let y = io.output_bytes(0);
        let row = self.columns * self.size;
        let Some(rows) = y.len().checked_div(row) else {
            return Ok(());
        };
        let wide = self.columns as i64;
        io.cpu().rows(rows, by(y, row), row / 8, |piece, y, cpu| {
            for (i, y) in piece.zip(y.chunks_exact_mut(row)) {
                let r = (i % self.rows) as i64;
                // The upper triangle holds the columns from r + k on, the lower one those up to r + k.
                let border = r.saturating_add(k).saturating_add(i64::from(!self.upper));
                let border = border.clamp(0, wide) as usize * self.size;
                let ((left, right), x) = (y.split_at_mut(border), &x[i * row..][..row]);
                let (kept, other, x) = match self.upper {
                    true => (right, left, &x[border..]),
                    false => (left, right, &x[..border]),
                };
                cpu.copy(x, kept)?;
                cpu.fill(other, 0)?;
            }
            Ok(())
        })
    }
}

pub fn build_reverse(
    op: &ReverseSequence,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let x = data(node)?;
    let lens = kilim_host::rules::required(node, 1)?.dtype;
    let (b, t) = (op.batch_axis, op.time_axis);
    if b.max(t) != 1 || b == t || x.shape.len() < 2 {
        return Err(shape_error("batch and time are the first two axes"));
    }
    let strides = contiguous_strides(&x.shape);
    Ok(Box::new(Reverse {
        batch: x.shape[b],
        time: x.shape[t],
        batch_step: strides[b] as usize,
        time_step: strides[t] as usize,
        row: strides[1] as usize * x.dtype.size(),
        size: x.dtype.size(),
        lens: i64::codec(lens),
    }))
}

struct Reverse {
    batch: usize,
    time: usize,
    /// In elements.
    batch_step: usize,
    time_step: usize,
    /// Bytes of everything behind batch and time.
    row: usize,
    size: usize,
    lens: Codec<i64>,
}

impl Kernel for Reverse {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, lens) = (io.input_bytes(0), io.input_bytes(1));
        let (cpu, y) = (io.cpu(), io.output_bytes(0));
        for b in 0..self.batch {
            cpu.spend(8)?;
            let len = self.lens.get(lens, b);
            let len = usize::try_from(len)
                .ok()
                .filter(|&l| l <= self.time)
                .ok_or_else(|| {
                    value_error(format!(
                        "a sequence of length {len} does not fit in {} steps",
                        self.time
                    ))
                })?;
            for t in 0..self.time {
                let from = if t < len { len - 1 - t } else { t };
                let at = |t| (b * self.batch_step + t * self.time_step) * self.size;
                cpu.spend(8)?;
                cpu.copy(&x[at(from)..][..self.row], &mut y[at(t)..][..self.row])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run_as, run_f32};
    use kilim_host::testing::tensor;

    #[test]
    fn triangles() {
        let x = tensor(&[2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let k = |k: i64| tensor(&[], &[k]);
        let up = Trilu { upper: true };
        let low = Trilu { upper: false };
        assert_eq!(run_f32(&up, &[&x], &[2, 3]), [1.0, 2.0, 3.0, 0.0, 5.0, 6.0]);
        assert_eq!(
            run_f32(&low, &[&x, &k(1)], &[2, 3]),
            [1.0, 2.0, 0.0, 4.0, 5.0, 6.0]
        );
        assert_eq!(run_f32(&up, &[&x, &k(9)], &[2, 3]), [0.0; 6]);
        assert_eq!(run_f32(&low, &[&x, &k(-9)], &[2, 3]), [0.0; 6]);
    }

    #[test]
    fn reverses_both_orders_of_axes() {
        let x: Vec<i32> = (0..12).collect();
        let lens = tensor::<i64>(&[2], &[3, 2]);
        let op = ReverseSequence {
            batch_axis: 0,
            time_axis: 1,
        };
        assert_eq!(
            run_as::<i32>(&op, &[&tensor(&[2, 3, 2], &x), &lens], &[2, 3, 2]),
            [4, 5, 2, 3, 0, 1, 8, 9, 6, 7, 10, 11]
        );
        let op = ReverseSequence {
            batch_axis: 1,
            time_axis: 0,
        };
        assert_eq!(
            run_as::<i32>(&op, &[&tensor(&[3, 2, 2], &x), &lens], &[3, 2, 2]),
            [8, 9, 6, 7, 4, 5, 2, 3, 0, 1, 10, 11]
        );
    }
}

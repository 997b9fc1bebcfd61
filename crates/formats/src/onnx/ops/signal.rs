//! Fourier transforms and windows, written out. They compute in float64: where a sum should be zero,
//! single precision leaves more than the standard's tests allow.

use std::f64::consts::TAU;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, Gather, If, MatMul, Pad, PadMode, UnaryKind, normalize_axis};
use kilim_core::tensor::Tensor;

use super::OpTable;
use crate::onnx::builder::{NodeBuilder, number};
use crate::onnx::proto::invalid;
use crate::onnx::tensor::dtype;

pub fn register(table: &mut OpTable) {
    table.add("DFT", dft);
    table.add("STFT", stft);
    table.add("HannWindow", |b| window(b, &[0.5, -0.5]));
    table.add("HammingWindow", |b| window(b, &[25.0 / 46.0, -21.0 / 46.0]));
    table.add("BlackmanWindow", |b| window(b, &[0.42, -0.5, 0.08]));
}

/// The largest transform that is written out as a matrix.
const MAX_DFT: usize = 2048;

/// `sum(terms[i] * cos(2 π i k / n))`.
fn window(b: &mut NodeBuilder, terms: &[f64]) -> Result<()> {
    let size = b.input(0)?;
    let to = dtype(b.int_or("output_datatype", 1)?)?;
    let periodic = b.int_or("periodic", 1)? != 0;
    let size = b.cast(size, DType::I64)?;
    let size = b.reshape(size, &[1])?;
    let places = b.iota(size)?;
    let places = b.cast(places, DType::F64)?;
    let mut count = b.cast(size, DType::F64)?;
    if !periodic {
        let one = b.tensor_value(number(1.0, DType::F64)?);
        count = b.sub(count, one)?;
    }
    let mut sum = None;
    for (i, &term) in terms.iter().enumerate() {
        let factor = b.tensor_value(number(TAU * i as f64, DType::F64)?);
        let angle = b.mul(places, factor)?;
        let angle = b.div(angle, count)?;
        let wave = b.unary(UnaryKind::Cos, angle)?;
        let weight = b.tensor_value(number(term, DType::F64)?);
        let wave = b.mul(wave, weight)?;
        sum = Some(match sum {
            Some(before) => b.add(before, wave)?,
            None => wave,
        });
    }
    let y = sum.ok_or_else(|| invalid("a window without terms"))?;
    let y = b.cast(y, to)?;
    b.bind(0, y)
}

/// What a transform of the last axis but one does.
struct Transform {
    length: usize,
    inverse: bool,
    /// Half of the spectrum: the output's, or when inverse the input's.
    onesided: bool,
}

impl Transform {
    fn bins(&self) -> usize {
        self.length / 2 + 1
    }

    /// How many values of the axis are read.
    fn taken(&self) -> usize {
        if self.inverse && self.onesided {
            self.bins()
        } else {
            self.length
        }
    }

    /// The matrix `[given, parts * n]` that takes real (or imaginary) parts to the cosine and sine
    /// sums, `scale` included.
    fn matrices(&self) -> Result<[Tensor; 2]> {
        let n = self.length;
        let (rows, columns) = match (self.inverse, self.onesided) {
            (false, true) => (n, self.bins()),
            (true, true) => (self.bins(), n),
            _ => (n, n),
        };
        let sign = if self.inverse { 1.0 } else { -1.0 };
        let scale = if self.inverse { 1.0 / n as f64 } else { 1.0 };
        let mut cos = Vec::with_capacity(rows * columns);
        let mut sin = Vec::with_capacity(rows * columns);
        for r in 0..rows {
            // Of a half spectrum each bin but the first and the middle one stands for two.
            let twice = self.inverse && self.onesided && r != 0 && 2 * r != n;
            let scale = if twice { 2.0 * scale } else { scale };
            for c in 0..columns {
                let angle = TAU * ((r * c) % n) as f64 / n as f64;
                cos.push(scale * angle.cos());
                sin.push(scale * sign * angle.sin());
            }
        }
        let shape = [rows, columns];
        Ok([
            Tensor::from_slice(&shape, &cos)?,
            Tensor::from_slice(&shape, &sin)?,
        ])
    }

    /// `x` is `[.., length, 1 or 2]`.
    fn apply(&self, b: &mut NodeBuilder, x: ValueId) -> Result<ValueId> {
        if self.length == 0 || self.length > MAX_DFT {
            return Err(unsupported(format!(
                "a transform of {} values",
                self.length
            )));
        }
        let like = x;
        let parts = b.fact(x).shape.and_then(|s| s.0.last()?.known());
        let wide = b.cast(x, DType::F64)?;
        let [cos, sin] = self.matrices()?;
        let (cos, sin) = (b.tensor_value(cos), b.tensor_value(sin));
        // Real parts, and imaginary ones if there are, as rows.
        let part = |b: &mut NodeBuilder, i: i64| -> Result<ValueId> {
            let part = b.slice(wide, -1, i, i + 1)?;
            b.squeeze(part, &[-1])
        };
        let product = |b: &mut NodeBuilder, x, m| b.op(MatMul::default(), &[x, m]);
        let re = part(b, 0)?;
        let mut real = product(b, re, cos)?;
        let mut imaginary = product(b, re, sin)?;
        match parts {
            Some(1) => {}
            Some(2) => {
                let im = part(b, 1)?;
                let x = product(b, im, sin)?;
                real = b.sub(real, x)?;
                let x = product(b, im, cos)?;
                imaginary = b.add(imaginary, x)?;
            }
            _ => return Err(unsupported("a signal that may be real or complex")),
        }
        let real = b.unsqueeze(real, &[-1])?;
        let y = if self.inverse && self.onesided {
            real
        } else {
            let imaginary = b.unsqueeze(imaginary, &[-1])?;
            b.concat(&[real, imaginary], -1)?
        };
        b.cast_like(y, like)
    }
}

/// The attributes of DFT, and its length where it is given.
#[derive(Clone, Copy)]
struct Dft {
    length: Option<usize>,
    inverse: bool,
    onesided: bool,
}

fn dft(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let rank = b.rank(x)?;
    let length = match b.constant_ints(1)?.as_deref() {
        Some(&[n]) => Some(usize::try_from(n).map_err(|_| invalid("a negative length"))?),
        _ => None,
    };
    let dft = Dft {
        length,
        inverse: b.flag("inverse")?,
        onesided: b.flag("onesided")?,
    };
    let given = match b.version() {
        ..20 => None,
        _ => b.optional(2)?,
    };
    let known = match given {
        None if b.version() < 20 => Some(b.int_or("axis", 1)?),
        None => Some(-2),
        Some(v) => match b.constant(v) {
            Some(axis) => axis.to_i64s()?.first().copied(),
            None => None,
        },
    };
    let y = match (known, given) {
        (Some(axis), _) => {
            let axis = normalize_axis(axis, rank)?;
            dft.along(b, x, axis)?
        }
        (None, Some(axis)) if rank >= 2 => {
            let axis = b.cast(axis, DType::I64)?;
            let axis = b.reshape(axis, &[])?;
            // Nothing can be transformed along an axis that is too short.
            let mut axes = Vec::new();
            for a in 0..rank - 1 {
                if dft.length_along(b, x, a)? > 0 {
                    axes.push(a);
                }
            }
            dft.along_any(b, x, axis, &axes)?
        }
        _ => return Err(invalid("the axis has no elements")),
    };
    b.bind(0, y)
}

impl Dft {
    /// Along the axis that the scalar `axis` names, one of `axes`: a branch for each, since the shape
    /// of the result depends on it.
    fn along_any(
        self,
        b: &mut NodeBuilder,
        x: ValueId,
        axis: ValueId,
        axes: &[usize],
    ) -> Result<ValueId> {
        let (&first, rest) = match axes {
            [] => return Err(unsupported("a transform of no values")),
            [only] => return self.along(b, x, *only),
            [first, rest @ ..] => (first, rest),
        };
        let rank = b.rank(x)? as i64;
        let (front, back) = (b.i64(first as i64)?, b.i64(first as i64 - rank)?);
        let front = b.binary(BinaryKind::Equal, axis, front)?;
        let back = b.binary(BinaryKind::Equal, axis, back)?;
        let here = b.binary(BinaryKind::Or, front, back)?;
        let op = If {
            then_body: b.new_body(&[x, axis], |b, v| Ok(vec![self.along(b, v[0], first)?]))?,
            else_body: b.new_body(&[x, axis], |b, v| {
                Ok(vec![self.along_any(b, v[0], v[1], rest)?])
            })?,
        };
        b.op(op, &[here, x, axis])
    }

    /// How long a transform along `axis` is.
    fn length_along(self, b: &mut NodeBuilder, x: ValueId, axis: usize) -> Result<usize> {
        let given = b.fact(x).shape.and_then(|s| s.0.get(axis)?.known());
        let given = given.ok_or_else(|| unsupported("a length that is known only at run time"))?;
        let natural = match (self.inverse, self.onesided) {
            (true, true) => given.saturating_sub(1).saturating_mul(2),
            _ => given,
        };
        Ok(self.length.unwrap_or(natural))
    }

    fn along(self, b: &mut NodeBuilder, mut x: ValueId, axis: usize) -> Result<ValueId> {
        let rank = b.rank(x)?;
        if axis + 1 >= rank {
            return Err(invalid("a transform of the real and imaginary parts"));
        }
        let transform = Transform {
            length: self.length_along(b, x, axis)?,
            inverse: self.inverse,
            onesided: self.onesided,
        };
        let given = b.fact(x).shape.and_then(|s| s.0[axis].known());
        let given = given.unwrap_or_default();
        let taken = transform.taken();
        if given > taken {
            x = b.slice(x, axis as i64, 0, taken as i64)?;
        } else if given < taken {
            let mut pads = vec![0; 2 * rank];
            pads[rank + axis] = (taken - given) as i64;
            let pads = b.i64s(&pads)?;
            let mode = PadMode::Constant;
            x = b.op(Pad { mode }, &[x, pads])?;
        }
        // The transformed axis goes next to the last one.
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 2);
        if axis == rank - 2 {
            return transform.apply(b, x);
        }
        x = b.transpose(x, &perm)?;
        let y = transform.apply(b, x)?;
        b.transpose(y, &perm)
    }
}

fn stft(b: &mut NodeBuilder) -> Result<()> {
    let signal = b.input(0)?;
    let mut rank = b.rank(signal)?;
    let mut x = signal;
    if rank == 2 {
        x = b.unsqueeze(signal, &[2])?;
        rank = 3;
    }
    if rank != 3 {
        return Err(invalid("a signal needs three dimensions"));
    }
    let step = b.input(1)?;
    let step = b.cast(step, DType::I64)?;
    let step = b.reshape(step, &[1])?;
    let window = b.optional(2)?;
    let width = window.and_then(|w| b.shape(w)?.first().copied());
    let length = match width {
        Some(n) => n,
        None => {
            let given = b.constant_ints(3)?.and_then(|l| l.first().copied());
            let given = given.ok_or_else(|| invalid("neither window nor frame length"))?;
            usize::try_from(given).map_err(|_| invalid("a negative frame length"))?
        }
    };
    let whole = b.i64s(&[length as i64])?;
    let total = b.dim(x, 1)?;
    let one = b.i64s(&[1])?;
    let rest = b.sub(total, whole)?;
    let frames = b.div(rest, step)?;
    let frames = b.add(frames, one)?;
    let starts = b.iota(frames)?;
    let starts = b.mul(starts, step)?;
    let starts = b.unsqueeze(starts, &[1])?;
    let offsets = b.iota(whole)?;
    let places = b.add(starts, offsets)?;
    let mut x = b.op(Gather { axis: 1 }, &[x, places])?;
    if let Some(window) = window {
        let window = b.unsqueeze(window, &[1])?;
        x = b.mul(x, window)?;
    }
    let transform = Transform {
        length,
        inverse: false,
        onesided: b.int_or("onesided", 1)? != 0,
    };
    let y = transform.apply(b, x)?;
    b.bind(0, y)
}

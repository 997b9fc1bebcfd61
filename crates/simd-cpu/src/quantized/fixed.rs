//! Requantize, TableLookup, QuantizedBinary: integers from end to end.

use std::ops::Range;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{AffineQuantize, Combination, QuantizedBinary, Requantize, TableLookup};
use kilim_core::{DType, Result};

use super::finish::Scale;
use super::pairwise::{self, Combine};
use crate::isa::{IntegerTask, Integers, Isa, Simd};
use kilim_host::elements::BLOCK;
use kilim_host::rules::{range, required};
use kilim_host::{Build, Io, Kernel, by};

/// Reads elements `at`, `at + step`, .. of an integer tensor of at most 32 bits.
#[inline(always)]
fn load(dtype: DType, bytes: &[u8], at: usize, step: usize, out: &mut [i32]) {
    macro_rules! each {
        ($t:ty) => {{
            let x = &bytemuck::cast_slice::<u8, $t>(bytes)[at..];
            match step {
                0 => out.fill(x[0].into()),
                1 => out.iter_mut().zip(x).for_each(|(o, &x)| *o = x.into()),
                _ => {
                    let x = x.iter().step_by(step);
                    out.iter_mut().zip(x).for_each(|(o, &x)| *o = x.into());
                }
            }
        }};
    }
    match dtype {
        DType::I8 => each!(i8),
        DType::U8 => each!(u8),
        DType::I16 => each!(i16),
        DType::U16 => each!(u16),
        _ => each!(i32),
    }
}

/// Writes elements from `at` on, which fit the type.
#[inline(always)]
fn store(dtype: DType, bytes: &mut [u8], at: usize, values: &[i32]) {
    macro_rules! each {
        ($t:ty) => {{
            let y = &mut bytemuck::cast_slice_mut::<u8, $t>(bytes)[at..];
            y.iter_mut().zip(values).for_each(|(y, &v)| *y = v as $t);
        }};
    }
    match dtype.size() {
        1 => each!(u8),
        2 => each!(u16),
        _ => each!(i32),
    }
}

fn narrow(dtype: DType) -> bool {
    matches!(
        dtype,
        DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32
    )
}

/// All inputs are integers of at most 32 bits.
pub fn accepts<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    match node.inputs.iter().flatten().find(|s| !narrow(s.dtype)) {
        Some(s) => Err(Refusal::new(format!("{} of {}", node.op.name(), s.dtype))),
        None => Ok(()),
    }
}

pub fn build_requantize(
    op: &Requantize,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Requantized {
        requantize: op.clone(),
        input: required(node, 0)?.dtype,
        isa: Isa::best(),
    }))
}

struct Requantized {
    requantize: Requantize,
    input: DType,
    isa: Isa,
}

impl Kernel for Requantized {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (n, input, output) = (io.input_len(0), io.input_bytes(0), io.output_bytes(0));
        let output = by(output, self.requantize.output.size());
        io.cpu().rows(n, output, 4, |piece, output, _| {
            self.isa.dispatch_integers(RequantizePiece {
                kernel: self,
                piece,
                input,
                output,
            });
            Ok(())
        })
    }
}

/// Some elements given another scale.
struct RequantizePiece<'a> {
    kernel: &'a Requantized,
    piece: Range<usize>,
    input: &'a [u8],
    /// The elements of the piece.
    output: &'a mut [u8],
}

impl IntegerTask for RequantizePiece<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<P: Integers>(self, _: P) {
        let Requantized {
            requantize, input, ..
        } = self.kernel;
        let (from, channels) = (self.piece.start, requantize.factors.len());
        let mut block = [0; BLOCK];
        for first in (0..self.piece.len()).step_by(BLOCK) {
            let block = &mut block[..BLOCK.min(self.piece.len() - first)];
            load(*input, self.input, from + first, 1, block);
            if channels == 1 {
                finish(requantize, block);
            } else {
                for (i, v) in block.iter_mut().enumerate() {
                    *v = requantize.apply((from + first + i) % channels, *v);
                }
            }
            store(requantize.output, self.output, first, block);
        }
    }
}

pub fn build_affine(op: &AffineQuantize, _: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (low, high) = range(op.output)?;
    Ok(Box::new(Affine {
        op: op.clone(),
        range: [low as i64, high as i64],
        isa: Isa::best(),
    }))
}

struct Affine {
    op: AffineQuantize,
    range: [i64; 2],
    isa: Isa,
}

impl Kernel for Affine {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (input, output) = (io.input::<f32>(0), io.output_bytes(0));
        let output = by(output, self.op.output.size());
        io.cpu().rows(input.len(), output, 4, |piece, output, _| {
            self.isa.dispatch_integers(QuantizePiece {
                kernel: self,
                input: &input[piece],
                output,
            });
            Ok(())
        })
    }
}

/// Some elements divided and rounded, ties away from zero. What is no number becomes the zero point.
struct QuantizePiece<'a> {
    kernel: &'a Affine,
    input: &'a [f32],
    output: &'a mut [u8],
}

impl IntegerTask for QuantizePiece<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<P: Integers>(self, _: P) {
        let Affine {
            op,
            range: [low, high],
            ..
        } = self.kernel;
        let mut block = [0; BLOCK];
        for (i, input) in self.input.chunks(BLOCK).enumerate() {
            let block = &mut block[..input.len()];
            if op.output.size() < 4 {
                // A sum that saturates is outside of the range, too.
                let (low, high) = (*low as i32, *high as i32);
                for (v, x) in block.iter_mut().zip(input) {
                    let whole = away_from_zero(x / op.scale) as i32;
                    *v = whole.saturating_add(op.zero_point).clamp(low, high);
                }
            } else {
                for (v, x) in block.iter_mut().zip(input) {
                    let whole = away_from_zero(x / op.scale) as i64;
                    let moved = whole.saturating_add(op.zero_point.into());
                    *v = moved.clamp(*low, *high) as i32;
                }
            }
            store(op.output, self.output, i * BLOCK, block);
        }
    }
}

/// The nearest whole number: `f32::round` in instructions that vectors have.
#[inline(always)]
fn away_from_zero(x: f32) -> f32 {
    let whole = x.trunc();
    let more = if (x - whole).abs() >= 0.5 {
        1.0
    } else {
        0.0f32
    };
    whole + more.copysign(x)
}

pub fn build_lookup(_: &TableLookup, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Table {
        size: node.outputs[0].dtype.size(),
    }))
}

struct Table {
    size: usize,
}

impl Kernel for Table {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, table, y) = (io.input_bytes(0), io.input_bytes(1), io.output_bytes(0));
        let cpu = io.cpu();
        macro_rules! each {
            ($t:ty) => {{
                let table: &[$t] = bytemuck::cast_slice(table);
                let y: &mut [$t] = bytemuck::cast_slice_mut(y);
                cpu.rows(x.len(), by(y, 1), 1, |piece, y, _| {
                    for (y, &x) in y.iter_mut().zip(&x[piece]) {
                        *y = table[usize::from(x)];
                    }
                    Ok(())
                })
            }};
        }
        match self.size {
            1 => each!(u8),
            2 => each!(u16),
            4 => each!(u32),
            _ => each!(u64),
        }
    }
}

pub fn build_binary(
    op: &QuantizedBinary,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let types = [required(node, 0)?.dtype, required(node, 1)?.dtype];
    pairwise::kernel(
        FixedPoint {
            op: op.clone(),
            types,
        },
        node,
    )
}

struct FixedPoint {
    op: QuantizedBinary,
    types: [DType; 2],
}

impl Combine for FixedPoint {
    type Number = i32;

    #[inline(always)]
    fn load(&self, which: usize, bytes: &[u8], at: usize, step: usize, to: &mut [i32]) {
        load(self.types[which], bytes, at, step, to);
        to.iter_mut().for_each(|x| *x -= self.op.zero_points[which]);
    }

    #[inline(always)]
    fn combine<S: Simd>(&self, _: S, a: &mut [i32], b: &[i32]) {
        combine(&self.op.combination, a, b);
    }

    #[inline(always)]
    fn store(&self, values: &mut [i32], bytes: &mut [u8], at: usize) {
        finish(&self.op.result, values);
        store(self.op.result.output, bytes, at, values);
    }
}

#[inline(always)]
fn combine(combination: &Combination, a: &mut [i32], b: &[i32]) {
    let both = a.iter_mut().zip(b);
    match *combination {
        Combination::Sum {
            left_shift: s,
            factors,
        } => {
            let [f, g] = factors.map(Scale::new);
            both.for_each(|(a, &b)| {
                *a = f
                    .apply(a.wrapping_shl(s))
                    .wrapping_add(g.apply(b.wrapping_shl(s)))
            });
        }
        Combination::Difference {
            left_shift: s,
            factors,
        } => {
            let [f, g] = factors.map(Scale::new);
            both.for_each(|(a, &b)| {
                *a = f
                    .apply(a.wrapping_shl(s))
                    .wrapping_sub(g.apply(b.wrapping_shl(s)))
            });
        }
        Combination::Product => both.for_each(|(a, &b)| *a = a.wrapping_mul(b)),
    }
}

#[inline(always)]
fn finish(result: &Requantize, values: &mut [i32]) {
    let scale = Scale::new(result.factors[0]);
    let [low, high] = result.range;
    for v in values {
        *v = scale
            .apply(*v)
            .saturating_add(result.zero_point)
            .clamp(low, high);
    }
}

//! MatMulNBits: weights are widened a few at a time, where they are multiplied.

use std::ops::Range;

use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::error::value_error;
use kilim_core::ops::MatMulNBits;
use kilim_core::{DType, Result};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, by};

use crate::by_real;
use crate::common::Real;
use crate::common::real::activate;

/// Numbers that are widened at a time: a multiple of what a byte holds, and of [`LANES`].
const CHUNK: usize = 64;

/// Partial sums of a product, which the compiler keeps in vectors.
pub(super) const LANES: usize = 8;

/// Rows of the left matrix from which on a panel of weights is widened once for all of them.
const MANY_ROWS: usize = 4;

/// Rows of weights in a panel.
const PANEL: usize = 64;

/// Operations of widening a number.
const COST: usize = 2;

pub fn build(op: &MatMulNBits, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let a = required(node, 0)?;
    let rows = a.elements() / op.k;
    let product = Product::new(op.clone(), rows, node.input(3))?;
    by_real!(a.dtype, T => {
        Ok(Box::new(Typed::<T> { product, panel: PANEL.min(op.n), real: std::marker::PhantomData }))
    })
}

pub(super) struct Product {
    pub op: MatMulNBits,
    /// Rows of the left matrix.
    rows: usize,
    blocks: usize,
    /// Bytes of a block.
    bytes: usize,
    /// Bytes of the packed zero points of a row.
    zero_bytes: usize,
    zeros: Option<DType>,
}

impl Product {
    /// The product of `rows` rows; `zeros` are the zero points, if there are any.
    ///
    /// # Errors
    /// As of [`MatMulNBits::row`].
    pub fn new(op: MatMulNBits, rows: usize, zeros: Option<&TensorSpec>) -> Result<Product> {
        let [blocks, bytes, zero_bytes] = op.row()?;
        Ok(Product {
            op,
            rows,
            blocks,
            bytes,
            zero_bytes,
            zeros: zeros.map(|zeros| zeros.dtype),
        })
    }
}

struct Typed<T> {
    product: Product,
    /// Rows of weights that are widened together.
    panel: usize,
    real: std::marker::PhantomData<T>,
}

/// The weights of a run.
pub(super) struct Weights<'a, T> {
    product: &'a Product,
    packed: &'a [u8],
    scales: &'a [T],
    packed_zeros: Option<&'a [u8]>,
    real_zeros: Option<&'a [T]>,
    groups: Option<&'a [i32]>,
}

/// Writes the numbers of `bytes`, lowest bits first.
fn widen<T: Real + From<u8>, const BITS: usize>(bytes: &[u8], out: &mut [T]) {
    let mask = u8::MAX >> (8 - BITS);
    for (out, byte) in out.chunks_mut(8 / BITS).zip(bytes) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = T::from((byte >> (i * BITS)) & mask);
        }
    }
}

impl<'a, T: Real + From<u8>> Weights<'a, T> {
    /// The weights of a matrix behind others: inputs `first` and the next two hold the numbers, the scales and the zero points of all.
    pub fn at<'b: 'a>(
        product: &'a Product,
        io: &Io<'b>,
        first: usize,
        matrix: usize,
    ) -> Weights<'a, T> {
        let packed = product.zeros == Some(DType::U8);
        let row = matrix * product.op.n;
        let zeros = first + 2;
        Weights {
            product,
            packed: &io.input(first)[row * product.blocks * product.bytes..],
            scales: &io.input(first + 1)[row * product.blocks..],
            packed_zeros: packed.then(|| &io.input(zeros)[row * product.zero_bytes..]),
            real_zeros: (product.zeros.is_some() && !packed)
                .then(|| &io.input(zeros)[row * product.blocks..]),
            groups: None,
        }
    }

    fn new<'b: 'a>(product: &'a Product, io: &Io<'b>) -> Result<Weights<'a, T>> {
        let weights = Weights {
            groups: io.optional(4),
            ..Weights::at(product, io, 1, 0)
        };
        for &group in weights.groups.into_iter().flatten().take(product.op.k) {
            if usize::try_from(group).is_ok_and(|g| g < product.blocks) {
                continue;
            }
            let e = value_error("a column of packed weights has a block that is not there");
            return Err(e
                .with_input(4)
                .with_expected(format!("0..{}", product.blocks))
                .with_got(group));
        }
        Ok(weights)
    }

    /// Scale and zero point of a block of row `j`.
    fn parameters(&self, j: usize, block: usize) -> (T, T) {
        let (p, bits) = (self.product, self.product.op.bits);
        let at = j * p.blocks + block;
        let zero = match (self.packed_zeros, self.real_zeros) {
            (Some(zeros), _) => {
                let bit = block * bits;
                let byte = zeros[j * p.zero_bytes + bit / 8];
                T::from((byte >> (bit % 8)) & (u8::MAX >> (8 - bits)))
            }
            (_, Some(zeros)) => zeros[at],
            _ => T::from(1 << (bits - 1)),
        };
        (self.scales[at], zero)
    }

    /// Weights of `columns` of row `j`, which lie in one block and begin at a byte.
    fn load(&self, j: usize, columns: Range<usize>, out: &mut [T]) {
        let p = self.product;
        let start = j * p.blocks * p.bytes + columns.start * p.op.bits / 8;
        let bytes = &self.packed[start..];
        match p.op.bits {
            2 => widen::<T, 2>(bytes, out),
            4 => widen::<T, 4>(bytes, out),
            _ => widen::<T, 8>(bytes, out),
        }
        if let Some(groups) = self.groups {
            for (w, &group) in out.iter_mut().zip(&groups[columns]) {
                let (scale, zero) = self.parameters(j, group as usize);
                *w = (*w - zero) * scale;
            }
            return;
        }
        let (scale, zero) = self.parameters(j, columns.start / p.op.block);
        for w in out {
            *w = (*w - zero) * scale;
        }
    }

    /// Calls `f` with runs of at most [`CHUNK`] columns of row `j`, and their weights.
    fn each(&self, cpu: &CpuRun, j: usize, mut f: impl FnMut(usize, &[T])) -> Result<()> {
        let (k, block) = (self.product.op.k, self.product.op.block);
        let mut chunk = [T::default(); CHUNK];
        let mut at = 0;
        while at < k {
            let end = k
                .min(at + CHUNK)
                .min((at / block + 1).saturating_mul(block));
            let chunk = &mut chunk[..end - at];
            cpu.spend(chunk.len() * COST)?;
            self.load(j, at..end, chunk);
            f(at, chunk);
            at = end;
        }
        Ok(())
    }

    /// `y = a · wᵀ` of one row.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn row(&self, cpu: &CpuRun, a: &[T], y: &mut [T]) -> Result<()> {
        cpu.rows(y.len(), by(y, 1), a.len(), |piece, y, cpu| {
            for (y, j) in y.iter_mut().zip(piece) {
                let mut sums = [T::default(); LANES];
                self.each(cpu, j, |at, w| add_products(&a[at..], w, &mut sums))?;
                *y = total(sums);
            }
            Ok(())
        })
    }

    /// `y = a · wᵀ` of all rows; `panel` has room for some rows of weights.
    fn rows(&self, cpu: &CpuRun, a: &[T], y: &mut [T], panel: &mut [T]) -> Result<()> {
        let (k, n, m) = (self.product.op.k, self.product.op.n, self.product.rows);
        let step = panel.len() / k;
        for start in (0..n).step_by(step.max(1)) {
            let count = step.min(n - start);
            let panel = &mut panel[..count * k];
            cpu.rows(count, by(panel, k), k * COST, |piece, panel, cpu| {
                for (row, j) in panel.chunks_exact_mut(k).zip(piece) {
                    self.each(cpu, start + j, |at, w| {
                        row[at..at + w.len()].copy_from_slice(w);
                    })?;
                }
                Ok(())
            })?;
            let (panel, cost) = (&*panel, count.saturating_mul(k));
            cpu.rows(m, by(y, n), cost, |piece, y, cpu| {
                for (i, y) in piece.zip(y.chunks_exact_mut(n)) {
                    let a = &a[i * k..][..k];
                    for (y, w) in y[start..].iter_mut().zip(panel.chunks_exact(k)) {
                        let mut sums = [T::default(); LANES];
                        cpu.pieces(k, 1, |piece| {
                            add_products(&a[piece.clone()], &w[piece], &mut sums);
                            Ok(())
                        })?;
                        *y = total(sums);
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Adds the products of `w` and the beginning of `a`.
pub(super) fn add_products<T: Real>(a: &[T], w: &[T], sums: &mut [T; LANES]) {
    let a = &a[..w.len()];
    let (whole, rest) = w.as_chunks::<LANES>();
    let (a_whole, a_rest) = a.as_chunks::<LANES>();
    for (a, w) in a_whole.iter().zip(whole) {
        for i in 0..LANES {
            sums[i] += a[i] * w[i];
        }
    }
    for ((sum, &a), &w) in sums.iter_mut().zip(a_rest).zip(rest) {
        *sum += a * w;
    }
}

/// Makes `f` of each element of `y` and its counterpart in `other` the element of `y`.
pub(super) fn join<T: Real>(
    cpu: &CpuRun,
    y: &mut [T],
    other: &[T],
    f: impl Fn(T, T) -> T,
) -> Result<()> {
    cpu.pieces(y.len(), 1, |piece| {
        let pairs = y[piece.clone()].iter_mut().zip(&other[piece]);
        pairs.for_each(|(y, &other)| *y = f(*y, other));
        Ok(())
    })
}

pub(super) fn total<T: Real>(sums: [T; LANES]) -> T {
    sums.into_iter()
        .fold(T::default(), |total, sum| total + sum)
}

impl<T: Real + From<u8>> Kernel for Typed<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, p) = (io.cpu(), &self.product);
        let (a, y): (&[T], &mut [T]) = (io.input(0), io.output(0));
        if y.is_empty() {
            return Ok(());
        }
        let panel = io.scratch::<T>(self.room());
        let weights = Weights::new(p, io)?;
        if panel.is_empty() {
            for (a, y) in a.chunks_exact(p.op.k).zip(y.chunks_exact_mut(p.op.n)) {
                weights.row(cpu, a, y)?;
            }
        } else {
            weights.rows(cpu, a, y, panel)?;
        }
        if let Some(bias) = io.optional::<T>(5) {
            let n = p.op.n;
            cpu.rows(p.rows, by(y, n), n, |_, y, cpu| {
                for y in y.chunks_exact_mut(n) {
                    join(cpu, y, bias, |y, bias| y + bias)?;
                }
                Ok(())
            })?;
        }
        if let Some(addend) = io.optional(6) {
            join(cpu, y, addend, |y, addend| y + addend)?;
        }
        activate(cpu, p.op.activation, y)?;
        if let Some(factor) = io.optional(7) {
            join(cpu, y, factor, |y, factor| y * factor)?;
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<T>(self.room())
    }
}

impl<T> Typed<T> {
    /// Elements of the panel; none where there are few rows.
    fn room(&self) -> usize {
        match self.product.rows {
            0..MANY_ROWS => 0,
            _ => self.panel.saturating_mul(self.product.op.k),
        }
    }
}

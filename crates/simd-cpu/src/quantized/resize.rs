//! QuantizedResize: the neighbours of a row of the output are weighted row by row, then pixel by pixel, in
//! vectors across channels.

use std::marker::PhantomData;
use std::ops::{Add, Mul, Sub};

use bytemuck::Pod;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Neighbours, QuantizedResize};
use kilim_core::{DType, Result};

use crate::isa::{IntegerTask, Integers, Isa};
use kilim_host::{Build, Io, Kernel, Scratch, Table, by};

/// Bytes, and the numbers in which TFLite weights them.
trait Sampled: Pod + Send + Sync {
    type Number: Pod
        + Send
        + Sync
        + Add<Output = Self::Number>
        + Sub<Output = Self::Number>
        + Mul<Output = Self::Number>;
    /// The distance from one element to the next.
    const ONE: Self::Number;

    /// Where the outputs of an axis are.
    fn positions(
        op: &QuantizedResize,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<Self::Number>>;
    /// Whether the weighted sums of such an axis and of another fit.
    fn fits(position: &Neighbours<Self::Number>) -> bool;
    fn number(self) -> Self::Number;
    fn finish(sum: Self::Number) -> Self;
}

impl Sampled for u8 {
    type Number = f32;
    const ONE: f32 = 1.0;

    fn positions(
        op: &QuantizedResize,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<f32>> {
        op.places(input, output)
    }

    fn fits(_: &Neighbours<f32>) -> bool {
        true
    }

    #[inline(always)]
    fn number(self) -> f32 {
        self.into()
    }

    #[inline(always)]
    fn finish(sum: f32) -> u8 {
        let v = (sum + 0.5) as i32;
        v.clamp(0, 255) as u8
    }
}

impl Sampled for i8 {
    type Number = i32;
    const ONE: i32 = 1 << 10;

    fn positions(
        op: &QuantizedResize,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<i32>> {
        op.fixed_places(input, output)
    }

    /// The largest byte times the sums of both axes' weights stays below 2^31.
    fn fits(position: &Neighbours<i32>) -> bool {
        position.distance.abs() <= 2 << 10
    }

    #[inline(always)]
    fn number(self) -> i32 {
        self.into()
    }

    #[inline(always)]
    fn finish(sum: i32) -> i8 {
        let half = if sum > 0 { 1 << 19 } else { -(1 << 19) };
        ((sum + half) / (1 << 20)) as i8
    }
}

pub(super) fn accepts(op: &QuantizedResize, node: &NodeSpec) -> Result<(), Refusal> {
    let fits = match node.input(0).map(|x| x.dtype) {
        Some(DType::I8) => fits::<i8>(op, node),
        Some(DType::U8) => fits::<u8>(op, node),
        _ => false,
    };
    match fits {
        true => Ok(()),
        false => Err(Refusal::new(
            "the SIMD resize: an empty image, or one that is magnified too far for 32 bits",
        )),
    }
}

/// Whether no image is empty, and no sum overflows.
fn fits<T: Sampled>(op: &QuantizedResize, node: &NodeSpec) -> bool {
    let (Some(x), y) = (node.input(0), &node.outputs[0].shape) else {
        return false;
    };
    let axis = |d: usize| T::positions(op, x.shape[d], y[d]).all(|p| T::fits(&p));
    !x.shape.contains(&0) && !y.contains(&0) && axis(1) && axis(2)
}

/// Builds the kernel.
pub(super) fn kernel(
    op: &QuantizedResize,
    node: &NodeSpec,
    build: &Build,
    isa: Isa,
) -> Result<Box<dyn Kernel>> {
    accepts(op, node).map_err(|_| unsupported("this resize"))?;
    let x = node.input(0).ok_or_else(|| unsupported("this resize"))?;
    Ok(match x.dtype {
        DType::I8 => Box::new(Bilinear::<i8>::of(op, node, build, isa)?),
        _ => Box::new(Bilinear::<u8>::of(op, node, build, isa)?),
    })
}

struct Bilinear<T: Sampled> {
    isa: Isa,
    y: Table<Neighbours<T::Number>>,
    x: Table<Neighbours<T::Number>>,
    /// Elements of a row and of an image of the input.
    row: usize,
    image: usize,
    channels: usize,
    element: PhantomData<T>,
}

impl<T: Sampled> Bilinear<T> {
    fn of(op: &QuantizedResize, node: &NodeSpec, build: &Build, isa: Isa) -> Result<Bilinear<T>> {
        let x = node.input(0).ok_or_else(|| unsupported("this resize"))?;
        let (from, to) = (&x.shape, &node.outputs[0].shape);
        Ok(Bilinear {
            isa,
            y: build.table(T::positions(op, from[1], to[1]), COST)?,
            x: build.table(T::positions(op, from[2], to[2]), COST)?,
            row: from[2] * from[3],
            image: from[1] * from[2] * from[3],
            channels: from[3],
            element: PhantomData,
        })
    }
}

/// Operations of finding the neighbours of an output.
const COST: usize = 16;

impl<T: Sampled> Kernel for Bilinear<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (from, to) = (io.input::<T>(0), io.output::<T>(0));
        let weighted = io.thread_scratch::<T::Number>(2 * self.row);
        let size = self.x.len() * self.channels;
        let rows = to.len() / size;
        let cost = (self.row + size).saturating_mul(4);
        io.cpu().rows_with(
            rows,
            by(to, size),
            weighted,
            cost,
            |piece, to, weighted, _| {
                for (row, to) in piece.zip(to.chunks_exact_mut(size)) {
                    let image = &from[row / self.y.len() * self.image..][..self.image];
                    let y = &self.y[row % self.y.len()];
                    self.isa.dispatch_integers(Row {
                        kernel: self,
                        upper: &image[y.lower * self.row..][..self.row],
                        lower: &image[y.upper * self.row..][..self.row],
                        distance: y.distance,
                        weighted: &mut *weighted,
                        to,
                    });
                }
                Ok(())
            },
        )
    }

    fn scratch(&self) -> Scratch {
        Scratch::on_each_thread::<T::Number>(self.row.saturating_mul(2))
    }
}

/// A row of the output.
struct Row<'a, T: Sampled> {
    kernel: &'a Bilinear<T>,
    upper: &'a [T],
    lower: &'a [T],
    /// How far the output row is from the upper row.
    distance: T::Number,
    /// Room for both rows.
    weighted: &'a mut [T::Number],
    to: &'a mut [T],
}

impl<T: Sampled> IntegerTask for Row<'_, T> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set. Products and sums of
    // float32 are in TFLite's order.
    #[inline(always)]
    fn run<P: Integers>(self, _: P) {
        let Bilinear { x, channels, .. } = self.kernel;
        let (upper, lower) = self.weighted.split_at_mut(self.upper.len());
        for (to, from) in upper.iter_mut().zip(self.upper) {
            *to = from.number() * (T::ONE - self.distance);
        }
        for (to, from) in lower.iter_mut().zip(self.lower) {
            *to = from.number() * self.distance;
        }
        for (x, to) in x.iter().zip(self.to.chunks_exact_mut(*channels)) {
            let (right, left) = (x.distance, T::ONE - x.distance);
            let at = |x: usize| x * channels..(x + 1) * channels;
            let a = upper[at(x.lower)].iter().zip(&lower[at(x.lower)]);
            let b = upper[at(x.upper)].iter().zip(&lower[at(x.upper)]);
            for (to, ((&a, &c), (&b, &d))) in to.iter_mut().zip(a.zip(b)) {
                *to = T::finish(a * left + c * left + b * right + d * right);
            }
        }
    }
}

//! Bilinear resizing of quantised images (TFLite's `reference/resize_bilinear.h`).

use std::marker::PhantomData;

use bytemuck::Pod;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Neighbours, QuantizedResize};
use kilim_core::{DType, Result};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, Table, by};

/// How an element is made of four neighbours.
trait Sampled: Pod + Send + Sync {
    type Distance: Copy + Send + Sync;
    /// Positions of all outputs of an axis.
    fn positions(
        op: &QuantizedResize,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<Self::Distance>>;
    /// Neighbours are row by row.
    fn sample(neighbours: [Self; 4], y: Self::Distance, x: Self::Distance) -> Self;
}

impl Sampled for u8 {
    type Distance = f32;

    fn positions(
        op: &QuantizedResize,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<f32>> {
        op.places(input, output)
    }

    #[inline(always)]
    fn sample(neighbours: [u8; 4], y: f32, x: f32) -> u8 {
        let [a, b, c, d] = neighbours.map(f32::from);
        let sum = a * (1.0 - y) * (1.0 - x) + c * y * (1.0 - x) + b * (1.0 - y) * x + d * y * x;
        (sum + 0.5) as u8
    }
}

impl Sampled for i8 {
    type Distance = i32;

    fn positions(
        op: &QuantizedResize,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<i32>> {
        op.fixed_places(input, output)
    }

    #[inline(always)]
    fn sample(neighbours: [i8; 4], y: i32, x: i32) -> i8 {
        let [a, b, c, d] = neighbours.map(i64::from);
        let (y, x) = (i64::from(y), i64::from(x));
        let (up, left) = ((1 << 10) - y, (1 << 10) - x);
        let sum = a * up * left + c * y * left + b * up * x + d * y * x;
        let half = if sum > 0 { 1 << 19 } else { -(1 << 19) };
        ((sum + half) / (1 << 20)) as i8
    }
}

pub fn build(op: &QuantizedResize, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    Ok(match x.dtype {
        DType::I8 => Box::new(Bilinear::<i8>::new(build, op, node)?),
        _ => Box::new(Bilinear::<u8>::new(build, op, node)?),
    })
}

struct Bilinear<T: Sampled> {
    y: Table<Neighbours<T::Distance>>,
    x: Table<Neighbours<T::Distance>>,
    /// Elements of a row and of an image of the input.
    row: usize,
    image: usize,
    channels: usize,
    element: PhantomData<T>,
}

impl<T: Sampled> Bilinear<T> {
    fn new(build: &Build, op: &QuantizedResize, node: &NodeSpec) -> Result<Bilinear<T>> {
        let (from, to) = (&required(node, 0)?.shape, &node.outputs[0].shape);
        let empty = from.contains(&0) || to.contains(&0);
        let axis = |d: usize| match empty {
            true => Ok(Table::EMPTY),
            false => build.table(T::positions(op, from[d], to[d]), COST),
        };
        Ok(Bilinear {
            y: axis(1)?,
            x: axis(2)?,
            row: from[2] * from[3],
            image: from[1] * from[2] * from[3],
            channels: from[3],
            element: PhantomData,
        })
    }
}

impl<T: Sampled> Kernel for Bilinear<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y, c) = (io.input::<T>(0), io.output::<T>(0), self.channels);
        if self.y.is_empty() {
            return Ok(());
        }
        let (heights, width) = (self.y.len(), self.x.len() * c);
        let rows = y.len() / width;
        let cost = width.saturating_mul(COST);
        io.cpu().rows(rows, by(y, width), cost, |piece, y, cpu| {
            for (row, out) in piece.zip(y.chunks_exact_mut(width)) {
                let image = &x[row / heights * self.image..][..self.image];
                let at = &self.y[row % heights];
                let (upper, lower) = (
                    &image[at.lower * self.row..][..self.row],
                    &image[at.upper * self.row..][..self.row],
                );
                let pixel = |row: &[T], x: usize, i: usize| row[x * c + i];
                cpu.pieces(width, COST, |part| {
                    for i in part {
                        let (x, i, out) = (&self.x[i / c], i % c, &mut out[i]);
                        let neighbours = [
                            pixel(upper, x.lower, i),
                            pixel(upper, x.upper, i),
                            pixel(lower, x.lower, i),
                            pixel(lower, x.upper, i),
                        ];
                        *out = T::sample(neighbours, at.distance, x.distance);
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })
    }
}

/// Operations of an element between four.
const COST: usize = 16;

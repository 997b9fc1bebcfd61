//! Linear and cubic resizing, one axis after another.

use std::ops::Range;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Resize, ResizeAxis};
use kilim_core::tensor::{Element, byte_count};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, Scratch, Table, by};

use super::taps::Taps;
use crate::by_real;
use crate::common::Real;
use crate::reduce::Along;

/// One axis of the tensor as it is when its turn comes.
struct Pass<T> {
    along: Along,
    output: usize,
    taps: Taps,
    weights: Table<T>,
}

impl<T: Real> Pass<T> {
    /// Elements of the tensor that the pass makes; its builder found that they can be counted.
    fn elements(&self) -> usize {
        self.along.outer * self.output * self.along.inner
    }

    fn run(&self, cpu: &CpuRun, x: &[T], y: &mut [T]) -> Result<()> {
        let Along { outer, n, inner } = self.along;
        let count = self.taps.count;
        let taps = |o: usize| {
            let range = o * count..(o + 1) * count;
            self.taps.elements[range.clone()]
                .iter()
                .zip(&self.weights[range])
        };
        let cost = count.saturating_mul(inner);
        cpu.rows(outer * self.output, by(y, inner), cost, |piece, y, cpu| {
            if cost >= cpu.piece() {
                return self.long_rows(cpu, piece, x, y);
            }
            let mut y = y;
            let mut at = piece.start;
            while at < piece.end {
                // Rows of one image.
                let (image, first) = (at / self.output, at % self.output);
                let rows = (self.output - first).min(piece.end - at);
                let x = &x[image * n * inner..][..n * inner];
                let (mine, rest) = y.split_at_mut(rows * inner);
                (at, y) = (at + rows, rest);
                if inner == 1 {
                    for (y, o) in mine.iter_mut().zip(first..) {
                        let mut sum = T::default();
                        for (&i, &w) in taps(o) {
                            sum += w * x[i];
                        }
                        *y = sum;
                    }
                    continue;
                }
                for (y, o) in mine.chunks_exact_mut(inner.max(1)).zip(first..) {
                    y.fill(T::default());
                    for (&i, &w) in taps(o) {
                        for (y, &x) in y.iter_mut().zip(&x[i * inner..][..inner]) {
                            *y += w * x;
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Rows of the output that each take longer than a piece.
    fn long_rows(&self, cpu: &CpuRun, rows: Range<usize>, x: &[T], y: &mut [T]) -> Result<()> {
        let Along { n, inner, .. } = self.along;
        for (y, row) in y.chunks_exact_mut(inner.max(1)).zip(rows) {
            let x = &x[row / self.output * n * inner..][..n * inner];
            cpu.fill(y, T::default())?;
            let first = row % self.output * self.taps.count;
            for tap in first..first + self.taps.count {
                let (from, w) = (self.taps.elements[tap] * inner, self.weights[tap]);
                let x = &x[from..][..inner];
                cpu.pieces(inner, 1, |part| {
                    for (y, &x) in y[part.clone()].iter_mut().zip(&x[part]) {
                        *y += w * x;
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}

pub fn build(op: &Resize, node: &NodeSpec, build: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axes = op.resolve(&x.shape, node)?;
    let mut shape = x.shape.clone();
    // The parts of a complex number are an axis more, along which nothing is resized.
    shape.extend(x.dtype.is_complex().then_some(2));
    by_real!(x.dtype, T => {
        let separable = Separable::<T>::new(build, op, &axes, &shape)?;
        Ok(Box::new(separable))
    })
}

struct Separable<T> {
    passes: Vec<Pass<T>>,
    /// For each axis, the output elements that lie outside of the input; empty where none does.
    outside: Vec<Table<bool>>,
    /// One number, or the two parts of a complex one.
    extrapolation: Vec<T>,
    /// Elements of each of two buffers between the passes.
    between: usize,
}

impl<T: Real + Element> Separable<T> {
    fn new(
        build: &Build,
        op: &Resize,
        axes: &[ResizeAxis],
        shape: &[usize],
    ) -> Result<Separable<T>> {
        let mut current = shape.to_vec();
        let (mut passes, mut outside) = (Vec::new(), Vec::new());
        for (d, axis) in axes.iter().enumerate() {
            let (mut taps, weights) = Taps::new(build, op, axis)?;
            outside.push(std::mem::replace(&mut taps.outside, Table::EMPTY));
            if axis.input == axis.output && taps.keep_all {
                continue;
            }
            let along = Along::new(&current, d);
            current[d] = axis.output;
            byte_count(T::DTYPE, &current)?;
            passes.push(Pass {
                along,
                output: axis.output,
                taps,
                weights,
            });
        }
        if !outside.iter().any(|axis| axis.contains(&true)) {
            outside.clear();
        }
        let extrapolation = T::of(op.extrapolation.into());
        let complex = shape.len() > axes.len();
        let before_last = passes.len().saturating_sub(1);
        let between = passes[..before_last]
            .iter()
            .map(Pass::elements)
            .max()
            .unwrap_or(0);
        Ok(Separable {
            passes,
            outside,
            extrapolation: match complex {
                true => vec![extrapolation, T::default()],
                false => vec![extrapolation],
            },
            between,
        })
    }
}

impl<T: Real + Element> Kernel for Separable<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x, y) = (io.cpu(), io.input::<T>(0), io.output::<T>(0));
        let Some((last, first)) = self.passes.split_last() else {
            return cpu.copy(x, y);
        };
        let (mut from, mut to) = io.scratch::<T>(2 * self.between).split_at_mut(self.between);
        for (i, pass) in first.iter().enumerate() {
            let n = pass.elements();
            pass.run(cpu, if i == 0 { x } else { from }, &mut to[..n])?;
            std::mem::swap(&mut from, &mut to);
        }
        last.run(cpu, if first.is_empty() { x } else { from }, y)?;
        if !self.outside.is_empty() {
            let mut y = y.chunks_exact_mut(self.extrapolation.len());
            mark(cpu, &self.outside, false, &mut |outside| {
                if let (Some(y), true) = (y.next(), outside) {
                    y.copy_from_slice(&self.extrapolation);
                }
            })?;
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<T>(self.between.saturating_mul(2))
    }
}

fn mark(cpu: &CpuRun, axes: &[Table<bool>], outside: bool, f: &mut dyn FnMut(bool)) -> Result<()> {
    match axes {
        [] => f(outside),
        [last] => {
            return cpu.pieces(last.len(), 4, |part| {
                last[part].iter().for_each(|&o| f(outside || o));
                Ok(())
            });
        }
        [axis, inner @ ..] => {
            for &o in &**axis {
                mark(cpu, inner, outside || o, f)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kilim_core::ops::{AspectPolicy, CoordinateMode, NearestMode, Resize, ResizeMode};
    use kilim_core::{DType, Tensor};
    use kilim_host::testing::{assert_close, noise, tensor};

    use crate::testing::run;

    fn op(mode: ResizeMode, coordinates: CoordinateMode) -> Resize {
        Resize {
            mode,
            coordinates,
            antialias: false,
            exclude_outside: false,
            extrapolation: 0.0,
            axes: None,
            policy: AspectPolicy::Stretch,
        }
    }

    fn resize(op: &Resize, x: &Tensor, sizes: &[i64]) -> Vec<f32> {
        let shape: Vec<usize> = sizes.iter().map(|&s| s as usize).collect();
        let sizes = tensor(&[sizes.len()], sizes);
        let out = run(
            op,
            &[Some(x), None, None, Some(&sizes)],
            &[(DType::F32, &shape)],
        );
        out.unwrap()[0].as_slice::<f32>().unwrap().to_vec()
    }

    #[test]
    fn linear_over_two_axes() {
        let x = tensor(&[1, 1, 2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
        let y = resize(
            &op(ResizeMode::Linear, CoordinateMode::AlignCorners),
            &x,
            &[1, 1, 3, 3],
        );
        assert_close(&y, &[1.0, 1.5, 2.0, 2.0, 2.5, 3.0, 3.0, 3.5, 4.0]);
        let y = resize(
            &op(ResizeMode::Linear, CoordinateMode::HalfPixel),
            &x,
            &[1, 1, 2, 4],
        );
        assert_close(&y, &[1.0, 1.25, 1.75, 2.0, 3.0, 3.25, 3.75, 4.0]);
    }

    #[test]
    fn a_cubic_keeps_a_line_and_constants() {
        let line: Vec<f32> = (0..9).map(|i| i as f32).collect();
        let mode = ResizeMode::Cubic { a: -0.5 };
        let y = resize(
            &op(mode, CoordinateMode::AlignCorners),
            &tensor(&[9], &line),
            &[17],
        );
        let inner: Vec<f64> = (2..15).map(|i| f64::from(i) / 2.0).collect();
        assert_close(&y[2..15], &inner);
        let mut shrink = op(mode, CoordinateMode::HalfPixel);
        shrink.antialias = true;
        let y = resize(&shrink, &tensor(&[13], &[2.5f32; 13]), &[4]);
        assert_close(&y, &[2.5; 4]);
    }

    #[test]
    fn nearest_in_any_layout() {
        let x = noise(12, 1);
        let nearest = op(
            ResizeMode::Nearest(NearestMode::Floor),
            CoordinateMode::Asymmetric,
        );
        let y = resize(&nearest, &tensor(&[1, 2, 3, 2], &x), &[1, 4, 6, 2]);
        for (i, y) in y.into_iter().enumerate() {
            let (c, w, h) = (i % 2, i / 2 % 6, i / 12);
            assert_eq!(y, x[(h / 2 * 3 + w / 2) * 2 + c]);
        }
    }
}

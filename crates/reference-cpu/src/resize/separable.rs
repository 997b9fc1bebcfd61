//! Linear and cubic resizing, one axis after another.

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::ops::{Resize, ResizeAxis};

use super::taps::Taps;
use crate::by_real;
use crate::common::Real;
use crate::common::rules::required;
use crate::frame::{Build, Io, Kernel};
use crate::reduce::Along;

/// One axis of the tensor as it is when its turn comes.
struct Pass<T> {
    along: Along,
    output: usize,
    taps: Taps,
    weights: Vec<T>,
}

impl<T: Real> Pass<T> {
    fn elements(&self) -> usize {
        self.along.outer * self.output * self.along.inner
    }

    fn run(&self, x: &[T], y: &mut [T]) {
        let Along { outer, n, inner } = self.along;
        let count = self.taps.count;
        let taps = |o: usize| {
            let range = o * count..(o + 1) * count;
            self.taps.elements[range.clone()]
                .iter()
                .zip(&self.weights[range])
        };
        for b in 0..outer {
            let x = &x[b * n * inner..][..n * inner];
            let y = &mut y[b * self.output * inner..][..self.output * inner];
            if inner == 1 {
                for (o, y) in y.iter_mut().enumerate() {
                    let mut sum = T::default();
                    for (&i, &w) in taps(o) {
                        sum += w * x[i];
                    }
                    *y = sum;
                }
                continue;
            }
            for (o, y) in y.chunks_exact_mut(inner).enumerate() {
                y.fill(T::default());
                for (&i, &w) in taps(o) {
                    for (y, &x) in y.iter_mut().zip(&x[i * inner..][..inner]) {
                        *y += w * x;
                    }
                }
            }
        }
    }
}

pub fn build(op: &Resize, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let axes = op.resolve(&x.shape, node)?;
    let mut shape = x.shape.clone();
    // The parts of a complex number are an axis more, along which nothing is resized.
    shape.extend(x.dtype.is_complex().then_some(2));
    by_real!(x.dtype, T => Ok(Box::new(Separable::<T>::new(op, &axes, &shape))))
}

struct Separable<T> {
    passes: Vec<Pass<T>>,
    /// For each axis, the output elements that lie outside of the input; empty where none does.
    outside: Vec<Vec<bool>>,
    /// One number, or the two parts of a complex one.
    extrapolation: Vec<T>,
    /// Elements of each of two buffers between the passes.
    between: usize,
}

impl<T: Real> Separable<T> {
    fn new(op: &Resize, axes: &[ResizeAxis], shape: &[usize]) -> Separable<T> {
        let mut current = shape.to_vec();
        let (mut passes, mut outside) = (Vec::new(), Vec::new());
        for (d, axis) in axes.iter().enumerate() {
            let taps = Taps::new(op, axis);
            let same = axis.input == axis.output
                && (0..axis.output).all(|o| {
                    (0..taps.count).all(|k| {
                        let (i, w) = (
                            taps.elements[o * taps.count + k],
                            taps.weights[o * taps.count + k],
                        );
                        w == 0.0 || (i == o && w == 1.0)
                    })
                });
            outside.push(taps.outside.clone());
            if same {
                continue;
            }
            let along = Along::new(&current, d);
            current[d] = axis.output;
            passes.push(Pass {
                along,
                output: axis.output,
                weights: taps.weights.iter().map(|&w| T::of(w)).collect(),
                taps,
            });
        }
        if !outside.iter().flatten().any(|&o| o) {
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
        Separable {
            passes,
            outside,
            extrapolation: match complex {
                true => vec![extrapolation, T::default()],
                false => vec![extrapolation],
            },
            between,
        }
    }
}

impl<T: Real> Kernel for Separable<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input::<T>(0), io.output::<T>(0));
        let Some((last, first)) = self.passes.split_last() else {
            y.copy_from_slice(x);
            return Ok(());
        };
        let (mut from, mut to) = io.scratch::<T>(2 * self.between).split_at_mut(self.between);
        for (i, pass) in first.iter().enumerate() {
            let n = pass.elements();
            pass.run(if i == 0 { x } else { from }, &mut to[..n]);
            std::mem::swap(&mut from, &mut to);
        }
        last.run(if first.is_empty() { x } else { from }, y);
        if !self.outside.is_empty() {
            let mut y = y.chunks_exact_mut(self.extrapolation.len());
            mark(&self.outside, false, &mut |outside| {
                if let (Some(y), true) = (y.next(), outside) {
                    y.copy_from_slice(&self.extrapolation);
                }
            });
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        2 * self.between * size_of::<T>()
    }
}

fn mark(axes: &[Vec<bool>], outside: bool, f: &mut impl FnMut(bool)) {
    match axes.split_first() {
        None => f(outside),
        Some((axis, inner)) => axis.iter().for_each(|&o| mark(inner, outside || o, f)),
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::ops::{AspectPolicy, CoordinateMode, NearestMode, Resize, ResizeMode};
    use kilim_core::{DType, Tensor};

    use crate::common::testing::{assert_close, noise, run, tensor};

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

//! MaxPool and MaxUnpool.

use kilim_core::backend::NodeSpec;
use kilim_core::error::{shape_error, value_error};
use kilim_core::ops::{MaxPool, MaxUnpool, PoolGeometry};
use kilim_core::tensor::element_count;
use kilim_core::{DType, Result};
use kilim_host::by_class;
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, by};

use super::windows::Windows;
use crate::common::is_nan;

pub fn build(op: &MaxPool, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let windows = Windows::new(PoolGeometry::new(&op.window, op.channels_last, &x.shape)?)?;
    if x.dtype == DType::F32 && node.outputs.len() == 1 {
        return Ok(Box::new(F32(windows)));
    }
    let lowest = match x.dtype {
        DType::I8 => i8::MIN.into(),
        DType::I16 => i16::MIN.into(),
        DType::I32 => i32::MIN.into(),
        DType::I64 => i64::MIN,
        _ => 0,
    };
    by_class!(x.dtype, W => Ok(Box::new(Generic::<W> {
        windows,
        column_major: op.column_major,
        codec: W::codec(x.dtype),
        lowest: if x.dtype.is_float() { <W as Lowest>::LOWEST } else { <W as Lowest>::of(lowest) },
    })))
}

/// What an empty window gives.
trait Lowest: Sized {
    const LOWEST: Self;
    fn of(v: i64) -> Self;
}

macro_rules! lowest {
    ($($t:ident: $low:expr),*) => { $(impl Lowest for $t {
        const LOWEST: $t = $low;
        fn of(v: i64) -> $t { v as $t }
    })* };
}
lowest!(f32: f32::NEG_INFINITY, f64: f64::NEG_INFINITY, i64: i64::MIN, u64: 0);

struct F32(Windows);

impl Kernel for F32 {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input::<f32>(0), io.output::<f32>(0));
        let w = &self.0;
        let deep = w.deep;
        w.run(io.cpu(), by(y, deep), 1, |window, y, cpu| {
            let y = &mut y[window.row * deep..][..deep];
            let x = &x[window.plane * w.input * deep..];
            w.across(cpu, |part| y[part].fill(f32::NEG_INFINITY))?;
            w.pixels(cpu, window.place, deep, |i| {
                let x = &x[i * deep..][..deep];
                w.across(cpu, |part| {
                    for (y, &x) in y[part.clone()].iter_mut().zip(&x[part]) {
                        *y = if x > *y || x.is_nan() { x } else { *y };
                    }
                })
            })
        })
    }
}

struct Generic<W> {
    windows: Windows,
    column_major: bool,
    codec: Codec<W>,
    lowest: W,
}

impl<W: Wide> Kernel for Generic<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input_bytes(0), io.output_bytes(0));
        let w = &self.windows;
        let deep = w.deep;
        let places = io.has_output(1).then(|| by(io.output::<i64>(1), deep));
        let outputs = (by(y, deep * self.codec.size()), places);
        w.run(io.cpu(), outputs, COST, |window, (y, places), cpu| {
            for c in 0..deep {
                let (mut best, mut at) = (self.lowest, 0);
                let mut first = true;
                w.pixels(cpu, window.place, COST, |i| {
                    let v = self.codec.get(x, (window.plane * w.input + i) * deep + c);
                    if first || v > best || is_nan(v) {
                        (best, at, first) = (v, i, false);
                    }
                    Ok(())
                })?;
                let to = window.row * deep + c;
                self.codec.set(y, to, best);
                if let Some(places) = places {
                    places[to] = self.index(window.plane, at, c) as i64;
                }
            }
            Ok(())
        })
    }
}

/// Operations of reading an element and comparing it.
const COST: usize = 4;

impl<W> Generic<W> {
    /// The index of pixel `at` of channel `c` as the operator counts.
    fn index(&self, plane: usize, at: usize, c: usize) -> usize {
        let w = &self.windows;
        let pixel = if self.column_major && w.input > 0 {
            let (mut rest, mut step, mut pixel) = (at, w.input, 0);
            for axis in w.axes.iter().rev() {
                step /= axis.input;
                pixel += rest % axis.input * step;
                rest /= axis.input;
            }
            pixel
        } else {
            at
        };
        (plane * w.input + pixel) * w.deep + c
    }
}

pub fn build_unpool(op: &MaxUnpool, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    // Indices count elements of the smallest input that pools to this one, whatever output is
    // asked for.
    let counted = op.output_shape(
        &x.shape,
        &NodeSpec {
            inputs: &node.inputs[..2.min(node.inputs.len())],
            ..node.clone()
        },
    )?;
    let out = &node.outputs[0].shape;
    if counted.len() != out.len() || out.len() < 2 {
        return Err(shape_error("the output does not fit the data"));
    }
    Ok(Box::new(Unpool {
        total: element_count(&counted)?,
        counted,
        out: out.clone(),
        size: x.dtype.size(),
        indices: i64::codec(required(node, 1)?.dtype),
    }))
}

struct Unpool {
    counted: Vec<usize>,
    /// The product of `counted`.
    total: usize,
    out: Vec<usize>,
    size: usize,
    indices: Codec<i64>,
}

impl Kernel for Unpool {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, indices, n) = (io.input_bytes(0), io.input_bytes(1), io.input_len(0));
        let (cpu, y) = (io.cpu(), io.output_bytes(0));
        cpu.fill(y, 0)?;
        let size = self.size;
        for i in 0..n {
            cpu.spend(4 + 16 * self.out.len())?;
            let index = self.indices.get(indices, i);
            let total = self.total;
            let mut rest = usize::try_from(index)
                .ok()
                .filter(|&v| v < total)
                .ok_or_else(|| {
                    value_error("an index is out of range")
                        .with_expected(format!("0..{total}"))
                        .with_got(index)
                })?;
            let (mut at, mut step, mut inside) = (0, 1, true);
            for (&counted, &out) in self.counted.iter().zip(&self.out).rev() {
                let place = rest % counted;
                inside &= place < out;
                at += place * step;
                step *= out;
                rest /= counted;
            }
            if inside {
                y[at * size..][..size].copy_from_slice(&x[i * size..][..size]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, run_as, run_f32};
    use kilim_core::ops::{Padding, Window};
    use kilim_host::testing::tensor;

    fn pool(kernel: usize, stride: usize, pad: usize, channels_last: bool) -> MaxPool {
        MaxPool {
            window: Window {
                kernel: vec![kernel; 2],
                strides: vec![stride; 2],
                dilations: vec![],
                padding: Padding::Explicit(vec![pad; 4]),
                ceil_mode: false,
            },
            column_major: false,
            channels_last,
        }
    }

    #[test]
    fn both_layouts_and_indices() {
        let x: Vec<f32> = (0..32).map(|i| ((i * 7) % 16) as f32 - 20.0).collect();
        let nchw = tensor(&[1, 2, 4, 4], &x);
        let nhwc: Vec<f32> = (0..32).map(|i| x[i % 2 * 16 + i / 2]).collect();
        let first = run_f32(&pool(3, 2, 1, false), &[&nchw], &[1, 2, 2, 2]);
        let last = run_f32(
            &pool(3, 2, 1, true),
            &[&tensor(&[1, 4, 4, 2], &nhwc)],
            &[1, 2, 2, 2],
        );
        for i in 0..8 {
            assert_eq!(last[i], first[i % 2 * 4 + i / 2]);
        }
        let out = run(
            &pool(3, 2, 1, false),
            &[Some(&nchw)],
            &[(DType::F32, &[1, 2, 2, 2]), (DType::I64, &[1, 2, 2, 2])],
        )
        .unwrap();
        for (v, &i) in first.iter().zip(out[1].as_slice::<i64>().unwrap()) {
            assert_eq!(x[i as usize], *v);
        }
    }

    #[test]
    fn column_major_indices_turn_all_axes_around() {
        let op = MaxPool {
            window: Window {
                kernel: vec![2, 3, 4],
                strides: vec![1; 3],
                dilations: vec![],
                padding: Padding::Explicit(vec![0; 6]),
                ceil_mode: false,
            },
            column_major: true,
            channels_last: false,
        };
        // The largest is at (1, 0, 2) of 2 x 3 x 4, in the second of two planes.
        let mut x = vec![0.0f32; 48];
        x[24 + 12 + 2] = 1.0;
        let out = run(
            &op,
            &[Some(&tensor(&[1, 2, 2, 3, 4], &x))],
            &[
                (DType::F32, &[1, 2, 1, 1, 1]),
                (DType::I64, &[1, 2, 1, 1, 1]),
            ],
        )
        .unwrap();
        assert_eq!(out[1].as_slice::<i64>().unwrap(), [0, 24 + 1 + 2 * 2 * 3]);
    }

    #[test]
    fn small_integers_are_not_capped_by_zero() {
        let x = tensor::<i8>(&[1, 1, 2, 2], &[-5, -7, -9, -128]);
        assert_eq!(
            run_as::<i8>(&pool(2, 1, 0, false), &[&x], &[1, 1, 1, 1]),
            [-5]
        );
    }

    #[test]
    fn unpools() {
        let op = MaxUnpool {
            window: pool(2, 2, 0, false).window,
        };
        let x = tensor::<f32>(&[1, 1, 1, 2], &[5.0, 6.0]);
        let i = tensor::<i64>(&[1, 1, 1, 2], &[5, 2]);
        let y = run_f32(&op, &[&x, &i], &[1, 1, 2, 4]);
        assert_eq!(y, [0.0, 0.0, 6.0, 0.0, 0.0, 5.0, 0.0, 0.0]);
    }
}

//! Pooling of regions of interest: MaxRoiPool and RoiAlign.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::{shape_error, value_error};
use kilim_core::ops::{MaxRoiPool, RoiAlign};

use crate::by_real;
use crate::common::rules::required;
use crate::common::{Codec, Real, Wide};
use crate::frame::{Build, Io, Kernel};

fn image(node: &NodeSpec) -> Result<[usize; 4]> {
    <[usize; 4]>::try_from(&required(node, 0)?.shape[..])
        .map_err(|_| shape_error("four dimensions are needed"))
}

/// The index of an image of the batch.
fn batch_index(v: f64, batch: usize) -> Result<usize> {
    if v >= 0.0 && (v as usize) < batch {
        Ok(v as usize)
    } else {
        Err(value_error("a region names an image that is not there")
            .with_expected(format!("0..{batch}"))
            .with_got(v))
    }
}

pub fn build_max(op: &MaxRoiPool, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = image(node)?;
    by_real!(required(node, 0)?.dtype, T => Ok(Box::new(Max::<T> {
        op: op.clone(),
        shape,
        element: PhantomData,
    })))
}

struct Max<T> {
    op: MaxRoiPool,
    shape: [usize; 4],
    element: PhantomData<T>,
}

impl<T: Real> Kernel for Max<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, regions, y) = (io.input::<T>(0), io.input::<T>(1), io.output::<T>(0));
        let [batch, channels, height, width] = self.shape;
        let [ph, pw] = self.op.pooled;
        let scale = f64::from(self.op.spatial_scale);
        let mut y = y.iter_mut();
        for region in regions.chunks_exact(5) {
            let n = batch_index(region[0].wide(), batch)?;
            let [x1, y1, x2, y2] = [1, 2, 3, 4].map(|i| (region[i].wide() * scale).round() as i64);
            // The bounds of bin `i` of `bins` over a side.
            let bin = |i: usize, bins: usize, from: i64, to: i64, side: usize| {
                let extent = (to - from + 1).max(1) as f64 / bins as f64;
                let first = (i as f64 * extent).floor() as i64 + from;
                let last = ((i + 1) as f64 * extent).ceil() as i64 + from;
                first.clamp(0, side as i64) as usize..last.clamp(0, side as i64) as usize
            };
            for c in 0..channels {
                let plane = &x[(n * channels + c) * height * width..][..height * width];
                for i in 0..ph {
                    for j in 0..pw {
                        let rows = bin(i, ph, y1, y2, height);
                        let columns = bin(j, pw, x1, x2, width);
                        let mut best: Option<T> = None;
                        for r in rows {
                            for v in columns.clone().map(|q| plane[r * width + q]) {
                                best = Some(best.map_or(v, |b| if v > b { v } else { b }));
                            }
                        }
                        if let Some(y) = y.next() {
                            *y = best.unwrap_or_default();
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

pub fn build_align(op: &RoiAlign, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = image(node)?;
    let indices = i64::codec(required(node, 2)?.dtype);
    by_real!(required(node, 0)?.dtype, T => Ok(Box::new(Align::<T> {
        op: op.clone(),
        shape,
        indices,
        element: PhantomData,
    })))
}

struct Align<T> {
    op: RoiAlign,
    shape: [usize; 4],
    indices: Codec<i64>,
    element: PhantomData<T>,
}

/// The pixels around a coordinate and the weight of the second; `None` too far outside.
fn around(v: f64, side: usize) -> Option<(usize, usize, f64)> {
    if v < -1.0 || v > side as f64 || side == 0 {
        return None;
    }
    let v = v.max(0.0);
    let low = v as usize;
    if low + 1 >= side {
        return Some((side - 1, side - 1, 0.0));
    }
    Some((low, low + 1, v - low as f64))
}

impl<T: Real> Kernel for Align<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, regions) = (io.input::<T>(0), io.input::<T>(1));
        let images = io.input_bytes(2);
        let mut y = io.output::<T>(0).iter_mut();
        let [batch, channels, height, width] = self.shape;
        let [out_h, out_w] = self.op.output;
        let scale = f64::from(self.op.spatial_scale);
        let shift = if self.op.half_pixel { 0.5 } else { 0.0 };
        for (i, region) in regions.chunks_exact(4).enumerate() {
            let n = batch_index(self.indices.get(images, i) as f64, batch)?;
            let [x1, y1, x2, y2] = [0, 1, 2, 3].map(|k| region[k].wide() * scale - shift);
            let (mut w, mut h) = (x2 - x1, y2 - y1);
            if !self.op.half_pixel {
                // Regions have at least the size of a pixel.
                (w, h) = (w.max(1.0), h.max(1.0));
            }
            let (bin_h, bin_w) = (h / out_h as f64, w / out_w as f64);
            let samples = |bin: f64| match self.op.sampling_ratio {
                0 => bin.ceil().max(0.0) as usize,
                n => n,
            };
            let (rows, columns) = (samples(bin_h), samples(bin_w));
            for c in 0..channels {
                let plane = &x[(n * channels + c) * height * width..][..height * width];
                for o in 0..out_h * out_w {
                    let (oy, ox) = (o / out_w, o % out_w);
                    let (mut sum, mut best) = (0.0, f64::NEG_INFINITY);
                    for s in 0..rows * columns {
                        let (sy, sx) = (s / columns, s % columns);
                        let at = |start, bin: f64, o: usize, s: usize, of: usize| {
                            start + bin * (o as f64 + (s as f64 + 0.5) / of as f64)
                        };
                        let v = around(at(y1, bin_h, oy, sy, rows), height);
                        let q = around(at(x1, bin_w, ox, sx, columns), width);
                        let (Some((t, b, fy)), Some((l, r, fx))) = (v, q) else {
                            best = best.max(0.0);
                            continue;
                        };
                        let p = |y: usize, x: usize| plane[y * width + x].wide();
                        let four = [
                            (1.0 - fy) * (1.0 - fx) * p(t, l),
                            (1.0 - fy) * fx * p(t, r),
                            fy * (1.0 - fx) * p(b, l),
                            fy * fx * p(b, r),
                        ];
                        sum += four.iter().sum::<f64>();
                        // The largest of the weighted corners, as ONNX defines it.
                        best = four.into_iter().fold(best, f64::max);
                    }
                    if let Some(y) = y.next() {
                        *y = T::of(match self.op.max {
                            true if rows * columns == 0 => 0.0,
                            true => best,
                            false => sum / (rows * columns).max(1) as f64,
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

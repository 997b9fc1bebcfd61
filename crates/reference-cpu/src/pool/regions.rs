//! Pooling of regions of interest: MaxRoiPool and RoiAlign.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::NodeSpec;
use kilim_core::error::{shape_error, value_error};
use kilim_core::ops::{MaxRoiPool, RoiAlign};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::required;
use kilim_host::{Build, CpuRun, Io, Kernel, by};

use crate::by_real;
use crate::common::Real;

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
        // The bounds of bin `i` of `bins` over a side.
        let bin = |i: usize, bins: usize, from: i64, to: i64, side: usize| {
            let extent = (to - from + 1).max(1) as f64 / bins as f64;
            let first = (i as f64 * extent).floor() as i64 + from;
            let last = ((i + 1) as f64 * extent).ceil() as i64 + from;
            first.clamp(0, side as i64) as usize..last.clamp(0, side as i64) as usize
        };
        let planes = (regions.len() / 5) * channels;
        io.cpu()
            .rows(planes, by(y, ph * pw), COST, |piece, y, cpu| {
                for (p, y) in piece.zip(y.chunks_exact_mut((ph * pw).max(1))) {
                    let region = &regions[p / channels * 5..][..5];
                    let n = batch_index(region[0].wide(), batch)?;
                    let bound = |v: T| (v.wide() * scale).round().clamp(-FAR, FAR) as i64;
                    let [x1, y1, x2, y2] = [1, 2, 3, 4].map(|i| bound(region[i]));
                    let plane =
                        &x[(n * channels + p % channels) * height * width..][..height * width];
                    for (b, y) in y.iter_mut().enumerate() {
                        cpu.spend(COST)?;
                        let rows = bin(b / pw, ph, y1, y2, height);
                        let columns = bin(b % pw, pw, x1, x2, width);
                        let mut best: Option<T> = None;
                        for r in rows {
                            cpu.pieces(columns.len(), 1, |part| {
                                let line = &plane[r * width + columns.start..][part];
                                for &v in line {
                                    best = Some(best.map_or(v, |b| if v > b { v } else { b }));
                                }
                                Ok(())
                            })?;
                        }
                        *y = best.unwrap_or_default();
                    }
                }
                Ok(())
            })
    }
}

/// Operations of finding a bin, and of a sample between four pixels.
const COST: usize = 32;
/// Coordinates beyond this are as far outside of any image as this.
const FAR: f64 = (1i64 << 52) as f64;

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
        let (images, y) = (io.input_bytes(2), io.output::<T>(0));
        let [batch, channels, height, width] = self.shape;
        let [out_h, out_w] = self.op.output;
        let bins = out_h * out_w;
        let planes = (regions.len() / 4) * channels;
        io.cpu().rows(planes, by(y, bins), COST, |piece, y, cpu| {
            for (p, y) in piece.zip(y.chunks_exact_mut(bins.max(1))) {
                let (i, c) = (p / channels, p % channels);
                let n = batch_index(self.indices.get(images, i) as f64, batch)?;
                let region = [0, 1, 2, 3].map(|k| regions[i * 4 + k].wide());
                let bins = self.bins(region);
                let plane = &x[(n * channels + c) * height * width..][..height * width];
                for (o, y) in y.iter_mut().enumerate() {
                    *y = self.bin(cpu, plane, &bins, [o / out_w, o % out_w])?;
                }
            }
            Ok(())
        })
    }
}

/// The bins of a region along an axis.
struct Bins {
    start: f64,
    /// The length of a bin.
    size: f64,
    /// In a bin.
    samples: usize,
}

impl Bins {
    /// Where sample `s` of bin `o` is.
    fn at(&self, o: usize, s: usize) -> f64 {
        self.start + self.size * (o as f64 + (s as f64 + 0.5) / self.samples as f64)
    }
}

impl<T: Real> Align<T> {
    /// Along y and x.
    fn bins(&self, region: [f64; 4]) -> [Bins; 2] {
        let scale = f64::from(self.op.spatial_scale);
        let shift = if self.op.half_pixel { 0.5 } else { 0.0 };
        let [x1, y1, x2, y2] = region.map(|v| v * scale - shift);
        let bins = |start: f64, end: f64, count: usize| {
            let mut extent = end - start;
            if !self.op.half_pixel {
                // Regions have at least the size of a pixel.
                extent = extent.max(1.0);
            }
            let size = extent / count as f64;
            let samples = match self.op.sampling_ratio {
                0 => size.ceil().max(0.0) as usize,
                n => n,
            };
            Bins {
                start,
                size,
                samples,
            }
        };
        let [out_h, out_w] = self.op.output;
        [bins(y1, y2, out_h), bins(x1, x2, out_w)]
    }

    /// The mean, or the largest, of the samples of a bin.
    fn bin(
        &self,
        cpu: &CpuRun,
        plane: &[T],
        [v, h]: &[Bins; 2],
        [oy, ox]: [usize; 2],
    ) -> Result<T> {
        let [.., height, width] = self.shape;
        let (mut sum, mut best) = (0.0, f64::NEG_INFINITY);
        for sy in 0..v.samples {
            cpu.spend(COST)?;
            let row = around(v.at(oy, sy), height);
            cpu.pieces(h.samples, COST, |part| {
                for sx in part {
                    let column = around(h.at(ox, sx), width);
                    let (Some((t, b, fy)), Some((l, r, fx))) = (row, column) else {
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
                Ok(())
            })?;
        }
        let count = v.samples as f64 * h.samples as f64;
        Ok(T::of(match self.op.max {
            true if count == 0.0 => 0.0,
            true => best,
            false => sum / count.max(1.0),
        }))
    }
}

//! Deformable convolution of images: each tap reads between pixels.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{ConvGeometry, DeformConv, WindowAxis};
use kilim_host::rules;
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel, by};

use crate::by_real;
use crate::common::Real;

pub fn accepts(op: &DeformConv, node: &NodeSpec) -> Result<(), Refusal> {
    if node.input(0).is_some_and(|x| x.shape.len() != 4) {
        return Err(Refusal::new("DeformConv of anything but images"));
    }
    rules::reals(op, node)
}

pub fn build(op: &DeformConv, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let (x, w) = (required(node, 0)?, required(node, 1)?);
    let geometry = ConvGeometry::deformed(op, &x.shape, &w.shape)?;
    let &[v, h] = &geometry.axes[..] else {
        return Err(shape_error("an image is needed"));
    };
    by_real!(x.dtype, T => Ok(Box::new(Deform::<T> {
        geometry,
        offset_groups: op.offset_groups,
        v,
        h,
        element: PhantomData,
    })))
}

struct Deform<T> {
    geometry: ConvGeometry,
    offset_groups: usize,
    v: WindowAxis,
    h: WindowAxis,
    element: PhantomData<T>,
}

/// Reads between the four pixels around; what is outside counts as zero.
fn between<T: Real>(plane: &[T], (height, width): (usize, usize), y: f64, x: f64) -> f64 {
    let (y0, x0) = (y.floor(), x.floor());
    let (fy, fx) = (y - y0, x - x0);
    let at = |dy: f64, dx: f64| {
        let (y, x) = (y0 + dy, x0 + dx);
        let inside = y >= 0.0 && x >= 0.0 && y < height as f64 && x < width as f64;
        if inside {
            plane[y as usize * width + x as usize].wide()
        } else {
            0.0
        }
    };
    let top = at(0.0, 0.0) * (1.0 - fx) + at(0.0, 1.0) * fx;
    let bottom = at(1.0, 0.0) * (1.0 - fx) + at(1.0, 1.0) * fx;
    top * (1.0 - fy) + bottom * fy
}

impl<T: Real> Kernel for Deform<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, w, offsets) = (io.input::<T>(0), io.input::<T>(1), io.input::<T>(2));
        let (bias, mask) = (io.optional::<T>(3), io.optional::<T>(4));
        let out = io.output::<T>(0);
        let (g, v, h) = (&self.geometry, &self.v, &self.h);
        let (taps, pixels) = (v.kernel * h.kernel, v.output * h.output);
        let plane = v.input * h.input;
        let (ci, co) = (g.in_channels / g.groups, g.out_channels / g.groups);
        let per_offset = g.in_channels / self.offset_groups;
        let cost = ci.saturating_mul(taps).saturating_mul(COST);
        io.cpu()
            .rows(out.len(), by(out, 1), cost, |piece, out, cpu| {
                for (out, i) in out.iter_mut().zip(piece) {
                    let (pixel, m) = (i % pixels, i / pixels % g.out_channels);
                    let n = i / pixels / g.out_channels;
                    let (oy, ox) = (pixel / h.output, pixel % h.output);
                    let mut sum = bias.map_or(0.0, |b| b[m].wide());
                    cpu.pieces(ci * taps, COST, |piece| {
                        for i in piece {
                            let (c, t) = (i / taps, i % taps);
                            let channel = m / co * ci + c;
                            let source = &x[(n * g.in_channels + channel) * plane..][..plane];
                            let tap = (n * self.offset_groups + channel / per_offset) * taps + t;
                            let shift =
                                |axis: usize| offsets[(2 * tap + axis) * pixels + pixel].wide();
                            let base = |a: &WindowAxis, o: usize, k: usize| {
                                (a.start(o) + (k * a.dilation) as isize) as f64
                            };
                            let y = base(v, oy, t / h.kernel) + shift(0);
                            let x = base(h, ox, t % h.kernel) + shift(1);
                            let weight = w[(m * ci + c) * taps + t].wide()
                                * mask.map_or(1.0, |k| k[tap * pixels + pixel].wide());
                            sum += weight * between(source, (v.input, h.input), y, x);
                        }
                        Ok(())
                    })?;
                    *out = T::of(sum);
                }
                Ok(())
            })
    }
}

/// Operations of reading between four pixels.
const COST: usize = 32;

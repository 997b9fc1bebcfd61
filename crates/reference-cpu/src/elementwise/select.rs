//! Where, Clip with bounds that are inputs, Dropout.

use bytemuck::Pod;
use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::shape_error;
use kilim_core::ops::{Clip, Dropout, Where};
use kilim_host::elements::{Codec, Walk, Wide, broadcast_strides};
use kilim_host::{Build, Io, Kernel, by};
use kilim_host::{by_class, by_size};

use super::unary::{Copy, map};

pub fn accepts_where(_: &Where, node: &NodeSpec) -> Result<(), Refusal> {
    match (node.input(0), node.input(1), node.input(2)) {
        (Some(_), Some(a), Some(b)) if a.dtype == b.dtype => Ok(()),
        _ => Err(Refusal::new("Where needs two inputs of one type")),
    }
}

pub fn build_where(_: &Where, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let shape = &node.outputs[0].shape;
    let strides = |i: usize| -> Result<Vec<isize>> {
        let spec = node
            .input(i)
            .ok_or_else(|| shape_error("an input is missing"))?;
        Ok(broadcast_strides(&spec.shape, shape))
    };
    let walk = Walk::new(shape, [&strides(0)?, &strides(1)?, &strides(2)?]);
    Ok(by_size!(node.outputs[0].dtype, T => Box::new(Select::<T> {
        walk,
        element: std::marker::PhantomData,
    })))
}

struct Select<T> {
    walk: Walk<3>,
    element: std::marker::PhantomData<T>,
}

impl<T: Pod + Send + Sync> Kernel for Select<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let condition = io.input::<u8>(0);
        let (a, b) = (io.input::<T>(1), io.input::<T>(2));
        let y = io.output::<T>(0);
        let (_, steps) = self.walk.row();
        io.cpu().rows(y.len(), by(y, 1), 2, |piece, y, _| {
            self.walk.spans(piece, |span| {
                let mut at = span.at;
                for y in &mut y[span.first..][..span.len] {
                    let [c, i, j] = at.map(|v| v as usize);
                    *y = if condition[c] != 0 { a[i] } else { b[j] };
                    for (at, step) in at.iter_mut().zip(steps) {
                        *at += step;
                    }
                }
                Ok(())
            })
        })
    }
}

pub fn build_clip(_: &Clip, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let dtype = node.outputs[0].dtype;
    by_class!(dtype, W => Ok(Box::new(Bounded::<W> { codec: W::codec(dtype) })))
}

struct Bounded<W> {
    codec: Codec<W>,
}

impl<W: Wide> Kernel for Bounded<W> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let bound = |i| {
            io.has_input(i)
                .then(|| self.codec.get(io.input_bytes(i), 0))
        };
        let (low, high) = (bound(1), bound(2));
        let (x, n) = (io.input_bytes(0), io.input_len(0));
        map(io.cpu(), &self.codec, (x, io.output_bytes(0)), n, |v| {
            let v = low.filter(|low| v < *low).unwrap_or(v);
            high.filter(|high| v > *high).unwrap_or(v)
        })
    }
}

pub fn build_dropout(_: &Dropout, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    match node.outputs.len() {
        0 | 1 => Ok(Box::new(Copy)),
        _ => Ok(Box::new(CopyWithMask)),
    }
}

struct CopyWithMask;

impl Kernel for CopyWithMask {
    fn run(&self, io: &mut Io) -> Result<()> {
        io.cpu().fill(io.output::<u8>(1), 1)?;
        Copy.run(io)
    }
}

//! Col2Im: blocks are added up where they overlap.

use std::marker::PhantomData;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Col2Im, Col2ImGeometry, WindowAxis};

use crate::by_real;
use crate::common::rules::required;
use crate::common::{Real, rules};
use crate::frame::{Build, Io, Kernel};

pub fn accepts(op: &Col2Im, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)?;
    rules::known(node, 2)?;
    rules::reals(op, node)
}

pub fn build(op: &Col2Im, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let g = Col2ImGeometry::new(op, &x.shape, node)?;
    by_real!(x.dtype, T => Ok(Box::new(Image::<T> {
        planes: g.batch * g.channels,
        image: g.axes.iter().map(|a| a.input).product(),
        block: g.axes.iter().map(|a| a.kernel).product(),
        blocks: g.axes.iter().map(|a| a.output).product(),
        axes: g.axes,
        element: PhantomData,
    })))
}

struct Image<T> {
    planes: usize,
    image: usize,
    block: usize,
    blocks: usize,
    axes: Vec<WindowAxis>,
    element: PhantomData<T>,
}

impl<T> Image<T> {
    /// Where position `k` of block `b` lies in the image.
    fn place(&self, mut k: usize, mut b: usize) -> Option<usize> {
        let (mut at, mut step) = (0, 1);
        for axis in self.axes.iter().rev() {
            let i = axis.start(b % axis.output) + (k % axis.kernel * axis.dilation) as isize;
            at += usize::try_from(i).ok().filter(|&i| i < axis.input)? * step;
            step *= axis.input;
            k /= axis.kernel;
            b /= axis.output;
        }
        Some(at)
    }
}

impl<T: Real> Kernel for Image<T> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (x, y) = (io.input::<T>(0), io.output::<T>(0));
        y.fill(T::default());
        for p in 0..self.planes {
            for k in 0..self.block {
                for b in 0..self.blocks {
                    if let Some(at) = self.place(k, b) {
                        y[p * self.image + at] += x[(p * self.block + k) * self.blocks + b];
                    }
                }
            }
        }
        Ok(())
    }
}

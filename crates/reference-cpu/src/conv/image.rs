//! Col2Im: blocks are added up where they overlap.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{Col2Im, Col2ImGeometry, ScatterReduction, WindowAxis};
use kilim_core::{DType, Result};
use kilim_host::rules;
use kilim_host::rules::required;
use kilim_host::{Build, Io, Kernel};

use crate::index::combine::{Update, Writer, accepts as accepts_sums, writer};

/// Halves are widened first, so that a sum is rounded once.
pub fn accepts(_: &Col2Im, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 1)?;
    rules::known(node, 2)?;
    match node.input(0).map(|x| x.dtype) {
        Some(dtype @ (DType::F16 | DType::BF16 | DType::String)) => {
            Err(Refusal::new(format!("sums of {dtype}")))
        }
        _ => accepts_sums(ScatterReduction::Add, node),
    }
}

pub fn build(op: &Col2Im, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let x = required(node, 0)?;
    let g = Col2ImGeometry::new(op, &x.shape, node)?;
    Ok(Box::new(Image {
        planes: g.batch * g.channels,
        image: g.axes.iter().map(|a| a.input).product(),
        block: g.axes.iter().map(|a| a.kernel).product(),
        blocks: g.axes.iter().map(|a| a.output).product(),
        axes: g.axes,
        sum: writer(ScatterReduction::Add, x.dtype)?,
    }))
}

struct Image {
    planes: usize,
    image: usize,
    block: usize,
    blocks: usize,
    axes: Vec<WindowAxis>,
    sum: Box<dyn Writer>,
}

impl Image {
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

/// Operations of finding a place for an element, and of adding it there.
const COST: usize = 16;

impl Kernel for Image {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, x, y) = (io.cpu(), io.input_bytes(0), io.output_bytes(0));
        cpu.fill(y, 0)?;
        for p in 0..self.planes {
            for k in 0..self.block {
                for b in 0..self.blocks {
                    cpu.spend(COST)?;
                    if let Some(at) = self.place(k, b) {
                        let update = Update {
                            meter: cpu,
                            y,
                            to: p * self.image + at,
                            updates: x,
                            from: (p * self.block + k) * self.blocks + b,
                        };
                        self.sum.write(update, io.texts())?;
                    }
                }
            }
        }
        Ok(())
    }
}

//! Transposed convolution, one phase of the output after the other.
//!
//! With stride `s`, the outputs `o` of one remainder modulo `s` along each axis all use the same
//! taps: element `q` of a phase reads input elements `q + shift`, a shift for each tap. So a phase
//! is a convolution without strides whose results lie `s` pixels apart, and every product of it is
//! needed.

mod phases;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, ConvGeometry, ConvTranspose, WindowAxis};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{Result, Tensor};

use self::phases::{Phases, Tap, margins};
use super::{Common, Operands, Shape, known_float};
use crate::gemm::{
    Depth, Form, Matrix, Panels, Product, Reading, RowStarts, Rows, Segment, append, multiply,
};
use crate::isa::Isa;
use crate::math;
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, CpuRun, Io, Kernel, PackKey, Scratch, Table, by};

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<ConvTranspose>(accepts, |op, node, build| {
        kernel(op, node, build, Isa::best())
    });
}

fn shape(op: &ConvTranspose, node: &NodeSpec) -> Option<Shape> {
    let (data, weights) = (node.input(0)?, node.input(1)?);
    let g = ConvGeometry::transposed(op, &data.shape, &weights.shape).ok()?;
    let usual = |a: &WindowAxis| a.stride.max(a.dilation) < 1024 && a.stride <= a.output;
    g.axes.iter().all(usual).then_some(())?;
    Shape::of_geometry(&g)
}

fn accepts(op: &ConvTranspose, node: &NodeSpec) -> Result<(), Refusal> {
    let refuse = |why: &str| Err(Refusal::new(format!("the SIMD ConvTranspose: {why}")));
    if !op.channels_last {
        return refuse("data is not channels-last");
    }
    if !known_float(node) {
        return refuse("not float32, or weights that are not constant");
    }
    let Some(shape) = shape(op, node) else {
        return refuse("three spatial axes, unusual strides, or an empty tensor");
    };
    if node.input(2).is_some_and(|b| b.elements() != shape.m) {
        return refuse("the bias is broadcast");
    }
    Ok(())
}

/// Operations of making a phase.
const COST: usize = 256;

/// Builds the kernel.
pub(crate) fn kernel(
    op: &ConvTranspose,
    node: &NodeSpec,
    build: &mut Build,
    isa: Isa,
) -> Result<Box<dyn Kernel>> {
    let shape = shape(op, node).ok_or_else(|| unsupported("a ConvTranspose of these shapes"))?;
    let weights = node.input(1).and_then(|w| w.value.as_ref());
    let weights = weights.ok_or_else(|| unsupported("weights that are not constant"))?;
    let phases = Phases::new(&shape.window);
    let (y, x) = (&shape.window.y, &shape.window.x);
    // What decides on the order of the taps; `shape` keeps the numbers below 1024.
    let order = [y, x].map(|a| (a.stride << 20) | (a.dilation << 10) | (a.begin % a.stride));
    let key = PackKey {
        kind: "transposed convolution",
        parameters: [isa.lanes(), shape.groups, order[0], order[1]],
    };
    let packed = build.pack(node, 1, key, |cpu| {
        pack_weights(cpu, isa, &shape, &phases, weights)
    })?;
    let transposed = Transposed::new(build, isa, shape, phases, op.activation, packed)?;
    Ok(Box::new(transposed))
}

/// The weights `[c, m / groups, y, x]` as packed columns for each group and phase.
fn pack_weights(
    cpu: &CpuRun,
    isa: Isa,
    shape: &Shape,
    phases: &Phases,
    weights: &Tensor,
) -> Result<AlignedBytes> {
    let (c, m, all) = (shape.group_channels(), shape.group_outputs(), shape.taps());
    let panels = Panels::new(isa, m);
    let count: usize = phases
        .each()
        .map(|(_, _, ty, tx)| ty.len() * tx.len())
        .sum();
    let bytes = shape.groups * count * panels.elements(c) * size_of::<f32>();
    let mut bytes = AlignedBytes::with_capacity(bytes)?;
    let width = shape.window.x.kernel;
    for group in 0..shape.groups {
        for (_, _, ty, tx) in phases.each() {
            let taps = ty.iter().flat_map(|ty| tx.iter().map(move |tx| (ty, tx)));
            let starts: Vec<usize> = taps.map(|(ty, tx)| ty.kernel * width + tx.kernel).collect();
            let rows = RowStarts {
                starts: &starts,
                inner: c,
                step: m * all,
            };
            let matrix = Matrix {
                rows,
                column_stride: all,
                reading: Reading::WEIGHT,
            };
            append(
                cpu,
                panels,
                matrix,
                (Form::Float32, weights),
                group * c * m * all,
                &mut bytes,
            )?;
        }
    }
    Ok(bytes)
}

/// One phase of the output.
struct Phase {
    /// The first row and column of the output.
    y: usize,
    x: usize,
    /// Columns.
    width: usize,
    depth: Depth,
    /// Elements from the padded input element of an output to its first tap.
    offset: usize,
    /// Where the packed weights of a group begin.
    weights: usize,
}

struct Transposed {
    common: Common,
    phases: Table<Phase>,
    /// Elements of a group's packed weights.
    group: usize,
    /// Padding before and after both axes of the input.
    margins: [(usize, usize); 2],
    /// Elements of the padded input of a group.
    padded: usize,
}

impl Transposed {
    fn new(
        build: &Build,
        isa: Isa,
        shape: Shape,
        phases: Phases,
        activation: Activation,
        weights: Arc<AlignedBytes>,
    ) -> Result<Transposed> {
        let w = &shape.window;
        let (c, panels) = (
            shape.group_channels(),
            Panels::new(isa, shape.group_outputs()),
        );
        let margins = [margins(&w.y, &phases.y), margins(&w.x, &phases.x)];
        let row = (w.x.input + margins[1].0 + margins[1].1) * c;
        let rows = w.y.input + margins[0].0 + margins[0].1;
        let mut group = 0;
        let each = phases.each().map(|(y, x, ty, tx)| {
            let place = |t: &Tap, before: usize| (t.shift + before as isize) as usize;
            let mut runs: Vec<Segment> = Vec::new();
            let mut offset = 0;
            for (i, ty) in ty.iter().enumerate() {
                for (j, tx) in tx.iter().enumerate() {
                    let at = place(ty, margins[0].0) * row + place(tx, margins[1].0) * c;
                    if (i, j) == (0, 0) {
                        offset = at;
                    }
                    let at = (at - offset) as u32;
                    match runs.last_mut() {
                        Some(run) if run.offset + run.len == at => run.len += c as u32,
                        _ => runs.push(Segment {
                            offset: at,
                            len: c as u32,
                        }),
                    }
                }
            }
            let weights = group;
            group += panels.elements(c * ty.len() * tx.len());
            Phase {
                y,
                x,
                width: (w.x.output - x).div_ceil(w.x.stride),
                depth: Depth::of(isa, &runs),
                offset,
                weights,
            }
        });
        let mut all = build.room(phases.y.len() * phases.x.len())?;
        for phase in each {
            build.cpu().spend(COST)?;
            all.push(phase);
        }
        Ok(Transposed {
            phases: all,
            group,
            margins,
            padded: rows * row,
            common: Common::new(isa, shape, activation, weights),
        })
    }

    /// Copies a group's channels of an image, with padding around them.
    fn pad(&self, cpu: &CpuRun, image: &[f32], group: usize, to: &mut [f32]) -> Result<()> {
        let (w, c) = (
            &self.common.shape.window,
            self.common.shape.group_channels(),
        );
        let [(top, _), (left, right)] = self.margins;
        cpu.fill(to, 0.0)?;
        let width = left + w.x.input + right;
        for (y, row) in image.chunks_exact(w.x.input * w.channels).enumerate() {
            cpu.spend(w.x.input * c)?;
            let to = &mut to[((top + y) * width + left) * c..][..w.x.input * c];
            if c == w.channels {
                to.copy_from_slice(row);
                continue;
            }
            for (to, pixel) in to.chunks_exact_mut(c).zip(row.chunks_exact(w.channels)) {
                to.copy_from_slice(&pixel[group * c..][..c]);
            }
        }
        Ok(())
    }

    /// Computes a group's channels of some rows of an image.
    fn rows(
        &self,
        cpu: &CpuRun,
        padded: &[f32],
        group: usize,
        bias: *const f32,
        rows: Range<usize>,
        out: &mut [f32],
    ) -> Result<()> {
        let Common {
            isa,
            shape,
            weights,
            clamp,
            ..
        } = &self.common;
        let (w, c, m) = (&shape.window, shape.group_channels(), shape.group_outputs());
        let packed: &[f32] = bytemuck::cast_slice(weights.as_slice());
        let packed = &packed[group * self.group..][..self.group];
        let [_, (left, right)] = self.margins;
        let row = (left + w.x.input + right) * c;
        for y in rows.clone() {
            for phase in self.phases.iter().filter(|p| y % w.y.stride == p.y) {
                let a = &padded[y / w.y.stride * row..];
                let first = ((y - rows.start) * w.x.output + phase.x) * shape.m + group * m;
                let reach = phase.offset + (phase.width - 1) * c + phase.depth.reach();
                assert!(reach <= a.len() || phase.depth.k() == 0);
                let last = first + (phase.width - 1) * w.x.stride * shape.m + m;
                assert!(last <= out.len());
                let product = Product {
                    isa: *isa,
                    a: a.as_ptr().wrapping_add(phase.offset),
                    rows: Rows::Strided(c),
                    depth: &phase.depth,
                    b: packed[phase.weights..].as_ptr().into(),
                    m: phase.width,
                    n: m,
                    c: out[first..].as_mut_ptr(),
                    c_stride: w.x.stride * shape.m,
                    bias,
                    residual: std::ptr::null(),
                    clamp: *clamp,
                };
                // SAFETY: the assertions above; the phase's weights were packed for its depth.
                unsafe { multiply(&product, cpu)? }
            }
        }
        Ok(())
    }
}

impl Kernel for Transposed {
    fn run(&self, io: &mut Io) -> Result<()> {
        let operands = Operands {
            input: io.input(0),
            bias: io.optional(2),
            residual: None,
        };
        let shape = &self.common.shape;
        let (w, cpu) = (&shape.window, io.cpu());
        let line = w.x.output * shape.m;
        // Every input channel meets every weight of its group once for each step of the window.
        let depth = self.phases.iter().map(|p| p.depth.k()).max().unwrap_or(0);
        let cost = (w.x.output * shape.group_outputs()).saturating_mul(depth);
        let out: &mut [f32] = io.output(0);
        let padded: &mut [f32] = io.scratch(self.padded);
        for (image, out) in operands
            .input
            .chunks_exact(w.image())
            .zip(out.chunks_exact_mut(w.y.output * line))
        {
            for group in 0..shape.groups {
                self.pad(cpu, image, group, padded)?;
                let bias = Bias(operands.bias_from(group * shape.group_outputs()));
                let padded = &*padded;
                let out = by(out, line);
                cpu.rows(w.y.output, out, cost, |rows, out, cpu| {
                    self.rows(cpu, padded, group, bias.get(), rows, out)
                })?;
            }
            math::activate(cpu, self.common.isa, self.common.rest, out)?;
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<f32>(self.padded)
    }
}

/// A bias for other threads to read.
#[derive(Clone, Copy)]
struct Bias(*const f32);

// SAFETY: it points into an input, which nobody writes during a run.
unsafe impl Sync for Bias {}

impl Bias {
    fn get(self) -> *const f32 {
        self.0
    }
}

//! Transposed convolution, one phase of the output after the other.
//!
//! With stride `s`, the outputs `o` of one remainder modulo `s` along each axis all use the same
//! taps: element `q` of a phase reads input elements `q + shift`, a shift for each tap. So a phase
//! is a convolution without strides whose results lie `s` pixels apart, and every product of it is
//! needed.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Activation, ConvTranspose, TransposeGeometry, WindowAxis};
use kilim_core::tensor::AlignedBytes;

use super::{Common, Operands, Shape, known_float};
use crate::gemm::{
    Depth, Panels, Product, RowStarts, Rows, Segment, multiply, pack, split_activation, weight,
};
use crate::isa::Isa;
use crate::math;
use crate::memory::{Shared, share};
use crate::window::Window;
use kilim_reference_cpu::frame::{Build, Io, Kernel, PackKey};
use kilim_reference_cpu::registry::KernelRegistry;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<ConvTranspose>(accepts, |op, node, build| {
        kernel(op, node, build, Isa::best())
    });
}

fn shape(op: &ConvTranspose, node: &NodeSpec) -> Option<Shape> {
    let (data, weights) = (node.input(0)?, node.input(1)?);
    let g = TransposeGeometry::new(op, &data.shape, &weights.shape).ok()?;
    let usual = |a: &WindowAxis| a.stride.max(a.dilation) < 1024 && a.stride <= a.output;
    g.axes.iter().all(usual).then_some(())?;
    Some(Shape {
        window: Window::new(g.batch, g.in_channels, &g.axes)?,
        groups: g.groups,
        m: g.out_channels,
    })
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
    let packed = build.pack(node, 1, key, || {
        pack_weights(isa, &shape, &phases, weights.as_slice()?)
    })?;
    Ok(Box::new(Transposed::new(
        isa,
        shape,
        phases,
        op.activation,
        packed,
        build.threads(),
    )))
}

/// A kernel position, and the input element that it reads for the first output of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tap {
    kernel: usize,
    shift: isize,
}

/// The taps of each phase along both axes, in the order of the input.
struct Phases {
    y: Vec<Vec<Tap>>,
    x: Vec<Vec<Tap>>,
}

impl Phases {
    fn new(window: &Window) -> Phases {
        Phases {
            y: taps(&window.y),
            x: taps(&window.x),
        }
    }

    /// All phases: their places and taps.
    fn each(&self) -> impl Iterator<Item = (usize, usize, &[Tap], &[Tap])> {
        self.y.iter().enumerate().flat_map(move |(py, ty)| {
            let along_x = self.x.iter().enumerate();
            along_x.map(move |(px, tx)| (py, px, ty.as_slice(), tx.as_slice()))
        })
    }
}

fn taps(axis: &WindowAxis) -> Vec<Vec<Tap>> {
    let stride = axis.stride as isize;
    (0..axis.stride)
        .map(|phase| {
            let position = (phase + axis.begin) as isize;
            (0..axis.kernel)
                .rev()
                .map(|kernel| (kernel, position - (kernel * axis.dilation) as isize))
                .filter(|(_, distance)| distance % stride == 0)
                .map(|(kernel, distance)| Tap {
                    kernel,
                    shift: distance / stride,
                })
                .collect()
        })
        .collect()
}

/// Padding before and after an axis, so that all taps of all outputs read something.
fn margins(axis: &WindowAxis, phases: &[Vec<Tap>]) -> (usize, usize) {
    let (mut before, mut after) = (0, 0);
    for (phase, taps) in phases.iter().enumerate() {
        let last = ((axis.output - phase).div_ceil(axis.stride) - 1) as isize;
        for t in taps {
            before = before.max(-t.shift);
            after = after.max(last + t.shift + 1 - axis.input as isize);
        }
    }
    (before as usize, after as usize)
}

/// The weights `[c, m / groups, y, x]` as packed columns for each group and phase.
fn pack_weights(isa: Isa, shape: &Shape, phases: &Phases, weights: &[f32]) -> Result<AlignedBytes> {
    let (c, m, all) = (shape.group_channels(), shape.group_outputs(), shape.taps());
    let panels = Panels::new(isa, m);
    let count: usize = phases
        .each()
        .map(|(_, _, ty, tx)| ty.len() * tx.len())
        .sum();
    let bytes = shape.groups * count * panels.elements(c) * size_of::<f32>();
    let mut bytes = AlignedBytes::zeroed(bytes)?;
    let mut to: &mut [f32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
    let width = shape.window.x.kernel;
    for group in 0..shape.groups {
        let from = &weights[group * c * m * all..][..c * m * all];
        for (_, _, ty, tx) in phases.each() {
            let taps = ty.iter().flat_map(|ty| tx.iter().map(move |tx| (ty, tx)));
            let starts: Vec<usize> = taps.map(|(ty, tx)| ty.kernel * width + tx.kernel).collect();
            let rows = RowStarts {
                starts: &starts,
                inner: c,
                step: m * all,
            };
            let size = panels.elements(c * ty.len() * tx.len());
            let (packed, rest) = to.split_at_mut(size);
            pack(panels, from, rows, all, weight, packed);
            to = rest;
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
    /// From the padded input element of an output to its first tap.
    offset: usize,
    /// Where the packed weights of a group begin.
    weights: usize,
}

struct Transposed {
    common: Common,
    phases: Vec<Phase>,
    /// Elements of a group's packed weights.
    group: usize,
    /// Padding before and after both axes of the input.
    margins: [(usize, usize); 2],
    /// Elements of the padded input of a group.
    padded: usize,
}

impl Transposed {
    fn new(
        isa: Isa,
        shape: Shape,
        phases: Phases,
        activation: Activation,
        weights: Arc<AlignedBytes>,
        threads: usize,
    ) -> Transposed {
        let w = &shape.window;
        let (c, panels) = (
            shape.group_channels(),
            Panels::new(isa, shape.group_outputs()),
        );
        let margins = [margins(&w.y, &phases.y), margins(&w.x, &phases.x)];
        let row = (w.x.input + margins[1].0 + margins[1].1) * c;
        let rows = w.y.input + margins[0].0 + margins[0].1;
        let mut group = 0;
        let phases = phases
            .each()
            .map(|(y, x, ty, tx)| {
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
            })
            .collect();
        let (clamp, rest) = split_activation(activation);
        Transposed {
            phases,
            group,
            margins,
            padded: rows * row,
            common: Common {
                isa,
                shape,
                weights,
                clamp,
                rest,
                threads: threads.clamp(1, w.y.output),
            },
        }
    }

    /// Copies a group's channels of an image, with padding around them.
    fn pad(&self, image: &[f32], group: usize, to: &mut [f32]) {
        let (w, c) = (
            &self.common.shape.window,
            self.common.shape.group_channels(),
        );
        let [(top, _), (left, right)] = self.margins;
        to.fill(0.0);
        let width = left + w.x.input + right;
        for (y, row) in image.chunks_exact(w.x.input * w.channels).enumerate() {
            let to = &mut to[((top + y) * width + left) * c..][..w.x.input * c];
            if c == w.channels {
                to.copy_from_slice(row);
                continue;
            }
            for (to, pixel) in to.chunks_exact_mut(c).zip(row.chunks_exact(w.channels)) {
                to.copy_from_slice(&pixel[group * c..][..c]);
            }
        }
    }

    /// Computes a group's channels of some rows of an image.
    fn rows(
        &self,
        padded: &[f32],
        group: usize,
        bias: *const f32,
        rows: Range<usize>,
        out: &mut [f32],
    ) {
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
                    b: packed[phase.weights..].as_ptr(),
                    m: phase.width,
                    n: m,
                    c: out[first..].as_mut_ptr(),
                    c_stride: w.x.stride * shape.m,
                    bias,
                    residual: std::ptr::null(),
                    clamp: *clamp,
                };
                // SAFETY: the assertions above; the phase's weights were packed for its depth.
                unsafe { multiply(&product) }
            }
        }
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
        let (w, threads, cpu) = (&shape.window, self.common.threads, io.cpu());
        let line = w.x.output * shape.m;
        let out: &mut [f32] = io.output(0);
        let padded: &mut [f32] = io.scratch(self.padded);
        for (image, out) in operands
            .input
            .chunks_exact(w.image())
            .zip(out.chunks_exact_mut(w.y.output * line))
        {
            let output = Shared::new(out);
            for group in 0..shape.groups {
                self.pad(image, group, padded);
                let bias = Bias(operands.bias_from(group * shape.group_outputs()));
                let padded = &*padded;
                cpu.split(threads, 1, &|parts| {
                    for part in parts {
                        let rows = share(w.y.output, threads, part);
                        let (first, len) = (rows.start * line, rows.len() * line);
                        // SAFETY: each part has its own rows.
                        let out = unsafe { output.part(first, len) };
                        self.rows(padded, group, bias.get(), rows, out);
                    }
                });
            }
            math::activate(self.common.isa, self.common.rest, out);
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.padded * size_of::<f32>()
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

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use crate::testing::{assert_within, run_kernel};
    use kilim_core::Tensor;
    use kilim_core::ops::Padding;
    use kilim_reference_cpu::common::testing::{noise, tensor};

    #[derive(Clone, Debug)]
    struct Case {
        batch: usize,
        size: [usize; 2],
        channels: usize,
        outputs: usize,
        groups: usize,
        kernel: [usize; 2],
        stride: [usize; 2],
        dilation: [usize; 2],
        pad: [usize; 4],
        extra: [usize; 2],
        activation: Activation,
        bias: bool,
    }

    impl Case {
        fn check(&self) {
            let op = ConvTranspose {
                strides: self.stride.to_vec(),
                dilations: self.dilation.to_vec(),
                padding: Padding::Explicit(self.pad.to_vec()),
                output_padding: self.extra.to_vec(),
                output_shape: None,
                groups: self.groups,
                channels_last: true,
                activation: self.activation,
            };
            let (c, m, g) = (self.channels, self.outputs, self.groups);
            let data_shape = [self.batch, self.size[0], self.size[1], c];
            let weight_shape = [c, m / g, self.kernel[0], self.kernel[1]];
            let geometry =
                TransposeGeometry::new(&op, &data_shape, &weight_shape).expect("a geometry");
            let data = noise(data_shape.iter().product(), 1);
            let weights = noise(weight_shape.iter().product(), 2);
            let bias = noise(m, 3);
            let out_shape = geometry.output_shape();
            let mut want = self.reference(&geometry.axes, &data, &weights);
            for (i, w) in want.iter_mut().enumerate() {
                if self.bias {
                    *w += f64::from(bias[i % m]);
                }
                if self.activation == Activation::Tanh {
                    *w = w.tanh();
                }
            }
            let data: Tensor = tensor(&data_shape, &data);
            let weights = tensor(&weight_shape, &weights);
            let bias = self.bias.then(|| tensor(&[m], &bias));
            for isa in Isa::available() {
                let inputs = [Some(&data), Some(&weights), bias.as_ref()];
                let got = run_kernel(&op, &inputs, &out_shape, |node, build| {
                    kernel(&op, node, build, isa)
                });
                assert_within(&got, &want, 1e-5, &format!("{self:?} {isa:?}"));
            }
        }

        /// Scatters every input element, by the definition.
        fn reference(&self, axes: &[WindowAxis], data: &[f32], weights: &[f32]) -> Vec<f64> {
            let (c, m, g) = (self.channels, self.outputs, self.groups);
            let (oh, ow) = (axes[0].output, axes[1].output);
            let mut out = vec![0.0; self.batch * oh * ow * m];
            let [kh, kw] = self.kernel;
            for (i, &v) in data.iter().enumerate() {
                let (pixel, channel) = (i / c, i % c);
                let (rest, x) = (pixel / self.size[1], pixel % self.size[1]);
                let (n, y) = (rest / self.size[0], rest % self.size[0]);
                for (ky, kx) in (0..kh * kw).map(|k| (k / kw, k % kw)) {
                    let oy =
                        (y * self.stride[0] + ky * self.dilation[0]).wrapping_sub(axes[0].begin);
                    let ox =
                        (x * self.stride[1] + kx * self.dilation[1]).wrapping_sub(axes[1].begin);
                    if oy >= oh || ox >= ow {
                        continue;
                    }
                    for o in 0..m / g {
                        let weight = weights[((channel * (m / g) + o) * kh + ky) * kw + kx];
                        let to = channel / (c / g) * (m / g) + o;
                        out[((n * oh + oy) * ow + ox) * m + to] += f64::from(v) * f64::from(weight);
                    }
                }
            }
            out
        }
    }

    const PLAIN: Case = Case {
        batch: 1,
        size: [5, 7],
        channels: 6,
        outputs: 10,
        groups: 1,
        kernel: [4, 4],
        stride: [2, 2],
        dilation: [1, 1],
        pad: [1, 1, 1, 1],
        extra: [0, 0],
        activation: Activation::None,
        bias: true,
    };

    #[test]
    fn geometries() {
        let cases = [
            PLAIN,
            Case {
                batch: 2,
                bias: false,
                ..PLAIN
            },
            Case {
                stride: [1, 1],
                kernel: [3, 3],
                ..PLAIN
            },
            Case {
                stride: [3, 2],
                kernel: [2, 5],
                pad: [0, 2, 0, 1],
                ..PLAIN
            },
            Case {
                kernel: [2, 2],
                pad: [0; 4],
                ..PLAIN
            },
            Case {
                kernel: [3, 3],
                extra: [1, 1],
                activation: Activation::Tanh,
                ..PLAIN
            },
            Case {
                stride: [4, 4],
                kernel: [2, 3],
                pad: [0; 4],
                extra: [1, 0],
                ..PLAIN
            },
            Case {
                dilation: [2, 3],
                kernel: [3, 2],
                ..PLAIN
            },
            Case {
                stride: [2, 3],
                dilation: [3, 2],
                kernel: [3, 4],
                pad: [2, 0, 1, 3],
                ..PLAIN
            },
            Case { groups: 2, ..PLAIN },
            Case {
                groups: 6,
                outputs: 6,
                ..PLAIN
            },
            Case {
                size: [1, 9],
                kernel: [1, 4],
                stride: [1, 2],
                pad: [0, 1, 0, 1],
                ..PLAIN
            },
            Case {
                kernel: [4, 4],
                pad: [3; 4],
                size: [20, 30],
                outputs: 3,
                channels: 40,
                ..PLAIN
            },
        ];
        for case in cases {
            case.check();
            Case {
                outputs: case.groups * 17,
                ..case
            }
            .check();
        }
    }
}

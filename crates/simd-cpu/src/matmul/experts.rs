//! ExpertMatMul and ExpertMatMulNBits of `float32`: the routes are sorted by expert, so that each expert's weights are read once
//! for all rows that ask it.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::{unsupported, value_error};
use kilim_core::ops::{ExpertMatMul, ExpertMatMulNBits};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Result};
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, Io, Kernel, PackKey, Scratch};

use super::packed;
use crate::gemm::{
    Depth, Form, Matrices, Matrix, NO_CLAMP, Panels, Product, Reading, RowStarts, Rows, append,
    multiply_split,
};
use crate::isa::Isa;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add::<ExpertMatMul>(
        |_, node| match Layer::of(node, 2).filter(|layer| layer.plain(node)) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(
                "the SIMD product with weights of experts: not float32, weights that are no constants, or an empty tensor",
            )),
        },
        |_, node, build| plain(node, build, Isa::best()),
    );
    registry.add::<ExpertMatMulNBits>(
        |op, node| match packed_layer(op, node) {
            Some(_) => Ok(()),
            None => Err(Refusal::new(
                "the SIMD product with packed weights of experts: not float32, blocks that are no multiples of 16 or end beyond a row, or an empty tensor",
            )),
        },
        |op, node, _| of_packed(op, node, Isa::best()),
    );
}

/// Sizes of a layer.
#[derive(Clone, Debug)]
struct Layer {
    experts: usize,
    n: usize,
    k: usize,
    routes: usize,
    /// Routes that begin with the same row.
    sharing: usize,
}

impl Layer {
    /// The layer of a node whose input `weights` has a dimension for the experts; `None` where the kernels lack it.
    fn of(node: &NodeSpec, weights: usize) -> Option<Layer> {
        let [a, routes, weights] = [0, 1, weights].map(|i| node.input(i));
        let (a, routes) = (a?, routes?);
        let (&[_, of_a, k], &[_, of_row], &[experts, ..]) =
            (&a.shape[..], &routes.shape[..], &weights?.shape[..])
        else {
            return None;
        };
        let n = *node.outputs.first()?.shape.last()?;
        let layer = Layer {
            experts,
            n,
            k,
            routes: routes.elements(),
            sharing: if of_a == 1 { of_row } else { 1 },
        };
        // Rows are listed by 32-bit offsets.
        let fits = u32::try_from(a.elements()).is_ok() && u32::try_from(layer.routes).is_ok();
        let some = layer.routes > 0 && k > 0 && n > 0 && experts > 0;
        (fits && some && a.dtype == DType::F32).then_some(layer)
    }

    fn plain(&self, node: &NodeSpec) -> bool {
        node.input(2).is_some_and(|w| w.value.is_some())
    }

    /// Numbers that sorting needs: where the routes of each expert begin, the routes by expert, and the beginning of each one's row.
    fn sorted(&self) -> usize {
        (self.experts + 1).saturating_add(self.routes.saturating_mul(2))
    }

    /// Sorts the routes into memory of [`Layer::sorted`] numbers.
    ///
    /// # Errors
    /// `Value` where a route leads to no expert.
    fn sort<'s>(&self, routes: &[i32], room: &'s mut [u32]) -> Result<Sorted<'s>> {
        let (ends, rest) = room.split_at_mut(self.experts + 1);
        let (order, starts) = rest.split_at_mut(self.routes);
        ends.fill(0);
        for &route in routes {
            let expert = usize::try_from(route).ok().filter(|&e| e < self.experts);
            let expert = expert.ok_or_else(|| {
                value_error("a route leads to an expert that is not there")
                    .with_input(1)
                    .with_expected(format!("0..{}", self.experts))
                    .with_got(route)
            })?;
            ends[expert + 1] += 1;
        }
        for expert in 0..self.experts {
            ends[expert + 1] += ends[expert];
        }
        for (i, &route) in routes.iter().enumerate() {
            let at = &mut ends[route as usize];
            order[*at as usize] = i as u32;
            starts[*at as usize] = (i / self.sharing * self.k) as u32;
            *at += 1;
        }
        Ok(Sorted {
            ends,
            order,
            starts,
        })
    }
}

/// Routes by expert.
struct Sorted<'s> {
    /// The end of each expert's routes.
    ends: &'s [u32],
    order: &'s [u32],
    starts: &'s [u32],
}

/// The weights of all experts.
trait Weights: Send + Sync {
    /// `y = a · wᵀ + bias` with the weights of an expert: the rows of `a` that begin at `starts`, behind each other in `y`.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    fn multiply(&self, with: With, starts: &[u32], y: &mut [f32], room: &mut [f32]) -> Result<()>;

    /// Elements of scratch memory of each thread.
    fn room(&self) -> usize;

    /// The input that is the bias.
    fn bias(&self) -> usize;
}

/// What an expert's product reads.
struct With<'r, 'a> {
    io: &'r Io<'a>,
    expert: usize,
    a: &'a [f32],
    bias: Option<&'a [f32]>,
}

struct Kernels {
    layer: Layer,
    weights: Box<dyn Weights>,
}

impl Kernel for Kernels {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (layer, n) = (&self.layer, self.layer.n);
        let y: &mut [f32] = io.output(0);
        let each = self.weights.room().saturating_mul(io.cpu().threads());
        let room = io.scratch::<f32>(self.once().saturating_add(each));
        let (sorted, room) = room.split_at_mut(layer.sorted());
        let (gathered, room) = room.split_at_mut(layer.routes * n);
        let sorted = layer.sort(io.input(1), bytemuck::cast_slice_mut(sorted))?;
        let all: Option<&[f32]> = io.optional(self.weights.bias());
        let mut first = 0;
        for expert in 0..layer.experts {
            let end = sorted.ends[expert] as usize;
            let (routes, starts) = (&sorted.order[first..end], &sorted.starts[first..end]);
            first = end;
            let with = With {
                io,
                expert,
                a: io.input(0),
                bias: all.map(|bias| &bias[expert * n..][..n]),
            };
            match routes {
                [] => {}
                [route] => {
                    let y = &mut y[*route as usize * n..][..n];
                    self.weights.multiply(with, starts, y, room)?;
                }
                _ => {
                    let gathered = &mut gathered[..routes.len() * n];
                    self.weights.multiply(with, starts, gathered, room)?;
                    for (from, route) in gathered.chunks_exact(n).zip(routes) {
                        let to = &mut y[*route as usize * n..][..n];
                        io.cpu().copy(from, to)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        Scratch::of::<f32>(self.once()).and(Scratch::on_each_thread::<f32>(self.weights.room()))
    }
}

impl Kernels {
    /// Elements of scratch memory that all threads share: for sorting, and for the rows of an expert.
    fn once(&self) -> usize {
        let gathered = self.layer.routes.saturating_mul(self.layer.n);
        self.layer.sorted().saturating_add(gathered)
    }
}

/// The kernel of weights that are packed in panels at load time.
fn plain(node: &NodeSpec, build: &mut Build, isa: Isa) -> Result<Box<dyn Kernel>> {
    let layer = Layer::of(node, 2).ok_or_else(|| unsupported("experts of these shapes"))?;
    let value = node.input(2).and_then(|w| w.value.as_ref());
    let value = value.ok_or_else(|| unsupported("experts whose weights are no constants"))?;
    let (n, k) = (layer.n, layer.k);
    let panels = Panels::new(isa, n);
    let matrix = Matrix {
        rows: RowStarts::even(k, 1),
        column_stride: k,
        reading: Reading::WEIGHT,
    };
    let (form, value) = Form::of(value, matrix.reading);
    let key = PackKey {
        kind: "experts",
        parameters: [isa.lanes(), form as usize, k, n],
    };
    let bytes = build.pack(node, 2, key, |cpu| {
        let size = panels.elements(k).saturating_mul(form.size());
        let mut bytes = AlignedBytes::with_capacity(size.saturating_mul(layer.experts))?;
        for expert in 0..layer.experts {
            let start = expert * n * k;
            append(cpu, panels, matrix, (form, &value), start, &mut bytes)?;
        }
        Ok(bytes)
    })?;
    let weights = Matrices { bytes, form };
    let weights = Box::new(Panelled {
        isa,
        n,
        depth: Depth::dense(isa, k),
        panels,
        weights,
    });
    Ok(Box::new(Kernels { layer, weights }))
}

/// Weights in panels.
struct Panelled {
    isa: Isa,
    n: usize,
    depth: Depth,
    panels: Panels,
    weights: Matrices,
}

impl Weights for Panelled {
    fn multiply(&self, with: With, starts: &[u32], y: &mut [f32], _: &mut [f32]) -> Result<()> {
        let (n, k) = (self.n, self.depth.k());
        let size = self.panels.elements(k);
        assert!(y.len() == starts.len() * n && with.bias.is_none_or(|bias| bias.len() == n));
        assert!(starts.iter().all(|&at| at as usize + k <= with.a.len()));
        let product = Product {
            isa: self.isa,
            a: with.a.as_ptr(),
            rows: Rows::Listed(starts),
            depth: &self.depth,
            b: self.weights.at(with.expert, size),
            m: starts.len(),
            n,
            c: y.as_mut_ptr(),
            c_stride: n,
            bias: with.bias.map_or(std::ptr::null(), <[f32]>::as_ptr),
            residual: std::ptr::null(),
            clamp: NO_CLAMP,
        };
        // SAFETY: the slices hold the rows of A that are listed, the packed weights of an expert, the bias and all of C.
        unsafe { multiply_split(&product, with.io.cpu()) }
    }

    fn room(&self) -> usize {
        0
    }

    fn bias(&self) -> usize {
        3
    }
}

/// The layer, and the product with an expert's weights as if all rows were its own.
fn packed_layer(op: &ExpertMatMulNBits, node: &NodeSpec) -> Option<(Layer, packed::Plan)> {
    let scales = node.input(3)?;
    let layer = Layer::of(node, 2)?;
    let one = op.of_one();
    let plan = packed::Plan::new(&one, layer.routes, node.input(4).map(|zeros| zeros.dtype))?;
    // The weights may have any shape: scales count the experts.
    let experts = scales.elements() / plan.scales();
    (plan.is_whole() && layer.k == op.k).then_some((Layer { experts, ..layer }, plan))
}

fn of_packed(op: &ExpertMatMulNBits, node: &NodeSpec, isa: Isa) -> Result<Box<dyn Kernel>> {
    let made = packed_layer(op, node);
    let (layer, plan) = made.ok_or_else(|| unsupported("packed experts of these shapes"))?;
    let weights = Box::new(Packed {
        isa,
        depth: Depth::dense(isa, op.k),
        plan,
    });
    Ok(Box::new(Kernels { layer, weights }))
}

/// Weights that are widened when they are multiplied.
struct Packed {
    isa: Isa,
    depth: Depth,
    plan: packed::Plan,
}

impl Weights for Packed {
    fn multiply(&self, with: With, starts: &[u32], y: &mut [f32], room: &mut [f32]) -> Result<()> {
        let plan = self.plan.of_rows(starts.len());
        let weights = packed::Weights::at(&plan, with.io, 2, with.expert);
        let product = packed::Listed {
            isa: self.isa,
            depth: &self.depth,
            weights: &weights,
            a: with.a,
            starts,
            bias: with.bias,
        };
        product.multiply(with.io.cpu(), y, room)
    }

    fn room(&self) -> usize {
        packed::Listed::room(self.isa, &self.plan)
    }

    fn bias(&self) -> usize {
        5
    }
}

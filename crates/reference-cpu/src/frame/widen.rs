//! `float16` and `bfloat16` for kernels that compute in `float32`: the inputs are widened into
//! scratch memory, the kernel runs, and what it wrote is rounded into the outputs. Constants are
//! widened once.

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Result, Tensor};

use super::io::{ABSENT, Io, View};
use super::kernel::{Build, Kernel};
use super::packs::PackKey;
use crate::common::{Codec, Wide};

/// Which constants are widened with the node.
pub enum Constants<'a, 'b> {
    /// Those that cost nothing: parameters, not weights.
    Small,
    All(&'a mut Build<'b>),
}

/// Elements of a constant that counts as small.
const SMALL: usize = 4096;
/// Tensors of a node at most, inputs and outputs.
const MOST: usize = 32;

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// A node as it is in `float32`.
pub struct Widened {
    inputs: Vec<Option<TensorSpec>>,
    outputs: Vec<TensorSpec>,
}

impl Widened {
    /// `None` where the node has no narrow type, or too many tensors.
    pub fn new(node: &NodeSpec, mut constants: Constants) -> Option<Result<Widened>> {
        let halves = node.inputs.iter().flatten().chain(node.outputs);
        let tensors = node.inputs.len() + node.outputs.len();
        if tensors > MOST || !halves.into_iter().any(|s| is_half(s.dtype)) {
            return None;
        }
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for (i, input) in node.inputs.iter().enumerate() {
            let wide = match input {
                Some(spec) if is_half(spec.dtype) => wide_constant(node, i, spec, &mut constants)
                    .map(|value| {
                        Some(TensorSpec {
                            dtype: DType::F32,
                            shape: spec.shape.clone(),
                            value,
                        })
                    }),
                other => Ok(other.clone()),
            };
            match wide {
                Ok(wide) => inputs.push(wide),
                Err(e) => return Some(Err(e)),
            }
        }
        let outputs = node
            .outputs
            .iter()
            .map(|s| TensorSpec {
                dtype: if is_half(s.dtype) {
                    DType::F32
                } else {
                    s.dtype
                },
                ..s.clone()
            })
            .collect();
        Some(Ok(Widened { inputs, outputs }))
    }

    pub fn node<'a>(&'a self, node: &NodeSpec<'a>) -> NodeSpec<'a> {
        NodeSpec {
            inputs: &self.inputs,
            outputs: &self.outputs,
            ..node.clone()
        }
    }

    /// The kernel for the narrow node, made of one for the wide node, which has `packed` these
    /// inputs.
    pub fn around(self, kernel: Box<dyn Kernel>, node: &NodeSpec, packed: u64) -> WideningKernel {
        let mut offset = kernel.scratch_bytes().next_multiple_of(64);
        let mut room = |spec: &TensorSpec| {
            let at = offset;
            offset += (spec.elements() * size_of::<f32>()).next_multiple_of(64);
            at
        };
        let inputs = node
            .inputs
            .iter()
            .zip(self.inputs)
            .enumerate()
            .map(|(i, pair)| match pair {
                (Some(narrow), Some(wide)) if is_half(narrow.dtype) => match wide.value {
                    Some(_) if packed & (1 << i) != 0 => Side::Packed,
                    Some(value) => Side::Constant(value),
                    None => Side::Converted {
                        offset: room(narrow),
                        elements: narrow.elements(),
                        codec: f32::codec(narrow.dtype),
                    },
                },
                (Some(_), _) => Side::Same,
                (None, _) => Side::Absent,
            })
            .collect();
        let outputs = node
            .outputs
            .iter()
            .map(|narrow| match is_half(narrow.dtype) {
                true => Side::Converted {
                    offset: room(narrow),
                    elements: narrow.elements(),
                    codec: f32::codec(narrow.dtype),
                },
                false => Side::Same,
            })
            .collect();
        WideningKernel {
            own_scratch: kernel.scratch_bytes(),
            kernel,
            inputs,
            outputs,
            scratch: offset,
        }
    }
}

fn wide_constant(
    node: &NodeSpec,
    i: usize,
    spec: &TensorSpec,
    constants: &mut Constants,
) -> Result<Option<Tensor>> {
    let Some(value) = &spec.value else {
        return Ok(None);
    };
    let widen = || {
        let mut wide = AlignedBytes::zeroed(byte_count(DType::F32, &spec.shape)?)?;
        let out = bytemuck::cast_slice_mut(wide.as_mut_slice());
        f32::codec(spec.dtype).load(value.bytes(), 0, out);
        Ok(wide)
    };
    let key = PackKey {
        kind: "float32",
        parameters: [0; 4],
    };
    let bytes = match constants {
        Constants::Small if spec.elements() > SMALL => return Ok(None),
        Constants::Small => Arc::new(widen()?),
        Constants::All(build) => build.pack(node, i, key, widen)?,
    };
    Tensor::from_bytes(DType::F32, &spec.shape, bytes).map(Some)
}

/// How a tensor of the narrow node becomes one of the wide node.
enum Side {
    Absent,
    Same,
    /// Widened when the kernel was built.
    Constant(Tensor),
    /// Read by the kernel in a form of its own.
    Packed,
    /// In scratch memory from `offset` on.
    Converted {
        offset: usize,
        elements: usize,
        codec: Codec<f32>,
    },
}

pub struct WideningKernel {
    kernel: Box<dyn Kernel>,
    own_scratch: usize,
    inputs: Vec<Side>,
    outputs: Vec<Side>,
    scratch: usize,
}

impl Kernel for WideningKernel {
    fn run(&self, io: &mut Io) -> Result<()> {
        let cpu = io.cpu();
        let (own, mut rest) = io
            .scratch::<u8>(self.scratch)
            .split_at_mut(self.own_scratch.next_multiple_of(64).min(self.scratch));
        let mut taken = self.own_scratch.next_multiple_of(64);
        let mut room = |offset: usize, elements: usize| {
            let (_, from) = std::mem::take(&mut rest).split_at_mut(offset - taken);
            let (part, behind) = from.split_at_mut(elements * size_of::<f32>());
            rest = behind;
            taken = offset + elements * size_of::<f32>();
            part
        };
        let mut views = [View::empty(DType::U8); MOST];
        let (mut inputs, mut outputs) = ([ABSENT; MOST], [ABSENT; MOST]);
        let mut count = 0;
        for (i, side) in self.inputs.iter().enumerate() {
            views[count] = match side {
                Side::Absent => continue,
                Side::Same => io.input_view_of(i),
                Side::Constant(value) => View::of(value),
                Side::Packed => View::empty(DType::F32),
                Side::Converted {
                    offset,
                    elements,
                    codec,
                } => {
                    let part = room(*offset, *elements);
                    codec.load(io.input_bytes(i), 0, bytemuck::cast_slice_mut(part));
                    View::of_mut(part, DType::F32)
                }
            };
            inputs[i] = count as u32;
            count += 1;
        }
        for (o, side) in self.outputs.iter().enumerate() {
            views[count] = match side {
                Side::Converted {
                    offset, elements, ..
                } => View::of_mut(room(*offset, *elements), DType::F32),
                _ => io.take_view(o),
            };
            outputs[o] = count as u32;
            count += 1;
        }
        let outputs = &outputs[..self.outputs.len()];
        // SAFETY: the views are of this node's own tensors, for which `io` vouches and of which no
        // reference is held while the kernel runs, and of disjoint parts of its scratch memory.
        let mut wide = unsafe {
            Io::new(
                &views,
                &inputs[..self.inputs.len()],
                outputs,
                &mut own[..self.own_scratch],
                io.texts(),
                cpu,
            )
        };
        self.kernel.run(&mut wide)?;
        for (o, side) in self.outputs.iter().enumerate() {
            if let Side::Converted { codec, .. } = side {
                // SAFETY: the kernel that wrote there is done.
                let wide = unsafe { views[outputs[o] as usize].read() };
                codec.store(io.output_bytes(o), 0, bytemuck::cast_slice(wide));
            }
        }
        Ok(())
    }

    fn scratch_bytes(&self) -> usize {
        self.scratch
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use kilim_core::ops::LpNorm;

    use crate::common::testing::{run_as, tensor};

    #[test]
    fn half_precision_through_a_float32_kernel() {
        let x = [3.0, 4.0, -6.0, 8.0].map(f16::from_f32);
        let op = LpNorm { axis: -1, p: 2 };
        let y = run_as::<f16>(&op, &[&tensor(&[2, 2], &x)], &[2, 2]);
        assert_eq!(y, [0.6, 0.8, -0.6, 0.8].map(f16::from_f32));
    }
}

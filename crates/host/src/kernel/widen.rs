//! `float16` and `bfloat16` for kernels that compute in `float32`: the inputs are widened into
//! scratch memory, the kernel runs, and what it wrote is rounded into the outputs. Constants are
//! widened once.

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Interrupt, Result, Tensor};

use super::io::{Io, View};
use super::packs::PackKey;
use super::scratch::{Layout, Scratch};
use super::{Build, Kernel};
use crate::elements::{Codec, Wide};
use crate::threads::Threads;
use crate::work::CpuRun;

/// Which constants are widened with the node.
pub enum Constants<'a, 'b> {
    /// Small constants, which cost nothing to widen: parameters, not weights.
    Small,
    All(&'a mut Build<'b>),
}

/// Elements of a constant that counts as small.
const SMALL: usize = 4096;

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

/// A node as it is in `float32`.
pub struct Widened {
    inputs: Vec<Option<TensorSpec>>,
    outputs: Vec<TensorSpec>,
    /// What inputs that are constants were widened to.
    constants: Vec<Option<Arc<AlignedBytes>>>,
}

impl Widened {
    /// `None` where the node has no narrow type.
    pub fn new(node: &NodeSpec, mut constants: Constants) -> Option<Result<Widened>> {
        let mut tensors = node.inputs.iter().flatten().chain(node.outputs);
        tensors.any(|s| is_half(s.dtype)).then(|| {
            let mut widened = Widened {
                inputs: node.inputs.to_vec(),
                outputs: node.outputs.to_vec(),
                constants: vec![None; node.inputs.len()],
            };
            for (i, input) in widened.inputs.iter_mut().enumerate() {
                let Some(spec) = input.as_mut().filter(|s| is_half(s.dtype)) else {
                    continue;
                };
                let wide = wide_constant(node, i, spec, &mut constants)?;
                spec.dtype = DType::F32;
                spec.value = match &wide {
                    Some(wide) => Some(Tensor::from_bytes(DType::F32, &spec.shape, wide.clone())?),
                    None => None,
                };
                widened.constants[i] = wide;
            }
            for output in widened.outputs.iter_mut().filter(|s| is_half(s.dtype)) {
                output.dtype = DType::F32;
            }
            Ok(widened)
        })
    }

    pub fn node<'a>(&'a self, node: &NodeSpec<'a>) -> NodeSpec<'a> {
        NodeSpec {
            inputs: &self.inputs,
            outputs: &self.outputs,
            ..node.clone()
        }
    }

    /// The kernel for the narrow node, made of one that `build` has made for the wide
    /// node.
    ///
    /// # Errors
    /// `Limit` where the tensors in `float32` do not fit in memory.
    pub fn around(
        self,
        kernel: Box<dyn Kernel>,
        node: &NodeSpec,
        build: &Build,
    ) -> Result<WideningKernel> {
        let own_scratch = kernel.scratch().bytes(build.threads())?;
        let mut layout = Layout::behind(own_scratch);
        let mut converted = |narrow: &TensorSpec| -> Result<Side> {
            Ok(Side::Converted {
                offset: layout.reserve::<f32>(narrow.elements())?,
                elements: narrow.elements(),
                codec: f32::codec(narrow.dtype),
            })
        };
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for (i, (narrow, constant)) in node.inputs.iter().zip(self.constants).enumerate() {
            inputs.push(match (narrow, constant) {
                (Some(narrow), _) if !is_half(narrow.dtype) => Side::Same,
                (None, _) => Side::Same,
                (_, Some(_)) if build.packed.contains(&i) => Side::Packed,
                (_, Some(constant)) => Side::Constant(constant),
                (Some(narrow), None) => converted(narrow)?,
            });
        }
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for narrow in node.outputs {
            outputs.push(match is_half(narrow.dtype) {
                true => converted(narrow)?,
                false => Side::Same,
            });
        }
        Ok(WideningKernel {
            kernel,
            own_scratch,
            inputs,
            outputs,
            scratch: layout.scratch(),
        })
    }
}

fn wide_constant(
    node: &NodeSpec,
    i: usize,
    spec: &TensorSpec,
    constants: &mut Constants,
) -> Result<Option<Arc<AlignedBytes>>> {
    let Some(value) = &spec.value else {
        return Ok(None);
    };
    let widen = |cpu: &CpuRun| {
        let mut wide = AlignedBytes::zeroed(byte_count(DType::F32, &spec.shape)?)?;
        let out = bytemuck::cast_slice_mut(wide.as_mut_slice());
        f32::codec(spec.dtype).load_all(cpu, value.read()?, out)?;
        Ok(wide)
    };
    let key = PackKey {
        kind: "float32",
        parameters: [0; 4],
    };
    match constants {
        Constants::Small if spec.elements() > SMALL => Ok(None),
        Constants::Small => {
            let never = CpuRun::new(Threads::SINGLE, &Interrupt::NEVER);
            widen(&never).map(|wide| Some(Arc::new(wide)))
        }
        Constants::All(build) => build.pack(node, i, key, widen).map(Some),
    }
}

/// How a tensor of the narrow node becomes one of the wide node.
enum Side {
    /// The tensor of the narrow node as it is, or none where the node has none.
    Same,
    /// Widened when the kernel was built.
    Constant(Arc<AlignedBytes>),
    /// Read by the kernel in a form of its own.
    Packed,
    /// In scratch memory from `offset` on.
    Converted {
        offset: usize,
        elements: usize,
        codec: Codec<f32>,
    },
}

impl Side {
    /// The tensor in `float32`; `None` where the wide node has that of the narrow one.
    fn wide(&self, scratch: &View) -> Option<View> {
        match self {
            Side::Same => None,
            Side::Constant(bytes) => Some(View::of_bytes(bytes.as_slice(), DType::F32)),
            Side::Packed => Some(View::empty(DType::F32)),
            Side::Converted {
                offset, elements, ..
            } => scratch.part(*offset, elements * size_of::<f32>(), DType::F32),
        }
    }
}

/// The tensors of a wide node that are not those of the narrow one.
#[derive(Clone, Copy)]
pub(super) struct WideTensors<'a> {
    kernel: &'a WideningKernel,
    /// All of the narrow node's scratch memory.
    scratch: View,
}

impl WideTensors<'_> {
    pub fn input(&self, i: usize) -> Option<View> {
        self.kernel.inputs[i].wide(&self.scratch)
    }

    pub fn output(&self, i: usize) -> Option<View> {
        self.kernel.outputs[i].wide(&self.scratch)
    }
}

pub struct WideningKernel {
    kernel: Box<dyn Kernel>,
    own_scratch: usize,
    inputs: Vec<Side>,
    outputs: Vec<Side>,
    scratch: Scratch,
}

impl Kernel for WideningKernel {
    fn run(&self, io: &mut Io) -> Result<()> {
        let cpu = io.cpu();
        let bytes = self.scratch.bytes(cpu.threads())?;
        let scratch = View::of_mut(io.scratch::<u8>(bytes), DType::U8);
        for (i, side) in self.inputs.iter().enumerate() {
            if let (Side::Converted { codec, .. }, Some(wide)) = (side, side.wide(&scratch)) {
                // SAFETY: a part of the scratch memory that no other tensor has, and nobody reads yet.
                let wide = unsafe { wide.write() };
                codec.load_all(cpu, io.input_bytes(i), bytemuck::cast_slice_mut(wide))?;
            }
        }
        let own = scratch.part(0, self.own_scratch, DType::U8);
        let own = own.unwrap_or(View::empty(DType::U8));
        let wide = WideTensors {
            kernel: self,
            scratch,
        };
        // SAFETY: no output was taken; the wide tensors are parts of the scratch memory that overlap neither each
        // other nor `own`.
        let mut widened = unsafe { io.widened(wide, own.write()) };
        self.kernel.run(&mut widened)?;
        // SAFETY: the kernel that held the outputs is done.
        unsafe { io.give_back() }
        for (o, side) in self.outputs.iter().enumerate() {
            if let (Side::Converted { codec, .. }, Some(wide)) = (side, side.wide(&scratch)) {
                // SAFETY: the kernel that wrote there is done.
                let wide = unsafe { wide.read() };
                codec.store_all(cpu, io.output_bytes(o), bytemuck::cast_slice(wide))?;
            }
        }
        Ok(())
    }

    fn scratch(&self) -> Scratch {
        self.scratch
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use kilim_core::backend::{Backend, NodeSpec, TensorSpec};
    use kilim_core::ops::{Unary, UnaryKind};
    use kilim_core::{DType, Interrupt, Result};

    use crate::registry::KernelRegistry;
    use crate::testing::tensor;
    use crate::{CpuBackend, Io, Kernel, rules};

    /// Twice its input, of `float32` alone.
    struct Twice;

    impl Kernel for Twice {
        fn run(&self, io: &mut Io) -> Result<()> {
            for (y, x) in io.output::<f32>(0).iter_mut().zip(io.input::<f32>(0)) {
                *y = 2.0 * x;
            }
            Ok(())
        }
    }

    #[test]
    fn half_precision_through_a_float32_kernel() {
        let mut registry = KernelRegistry::default();
        registry.add::<Unary>(rules::reals, |_, _, _| Ok(Box::new(Twice)));
        let backend = CpuBackend::with_registry(registry, "portable");
        let x = [3.0, 0.25, -6.0, 1000.5].map(f16::from_f32);
        let node = NodeSpec {
            name: "node",
            op: &Unary(UnaryKind::Neg),
            inputs: &[Some(TensorSpec::of(&tensor(&[2, 2], &x)))],
            outputs: &[TensorSpec::new(DType::F16, &[2, 2])],
        };
        let y = backend.evaluate(&node, &Interrupt::NEVER).unwrap().unwrap();
        let want = [6.0, 0.5, -12.0, 2001.0].map(f16::from_f32);
        assert_eq!(y[0].as_slice::<f16>().unwrap(), want);
    }
}

//! A kernel with tensors of its own, outside of any session.

use std::sync::Arc;

use kilim_core::backend::NodeSpec;
use kilim_core::memory::{Ledger, MemoryMode};
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::tuning::Tuned;
use kilim_core::{DType, Interrupt, Result, Tensor};

use crate::kernel::{ABSENT, Build, Io, Kernel, Listed, Packs, Taken, Texts, View};
use crate::threads::Threads;
use crate::work::CpuRun;

/// What decides how a kernel computes beside its node.
pub struct Way {
    /// Threads that it is built for and runs on.
    pub threads: Threads,
    /// What is known of kernels that have several algorithms.
    pub tuned: Tuned,
}

/// A kernel of one node with memory for its tensors: it runs as often as is wanted, on the same inputs.
pub struct Prepared {
    kernel: Box<dyn Kernel>,
    threads: Threads,
    texts: Texts,
    inputs: Vec<Option<Input>>,
    outputs: Vec<Output>,
    scratch: AlignedBytes,
}

enum Input {
    Tensor(Tensor),
    /// Numbers of texts in the pool.
    Texts(AlignedBytes),
}

struct Output {
    dtype: DType,
    shape: Vec<usize>,
    bytes: AlignedBytes,
}

impl Prepared {
    /// Has `make` build a kernel for `node`; `values` are those of its inputs, `None` where one is left out.
    ///
    /// # Errors
    /// Those of `make`, `Limit` where memory is short, and `Aborted` or `Timeout` where `interrupt` stops the building.
    pub fn new(
        node: &NodeSpec,
        values: &[Option<Tensor>],
        way: Way,
        interrupt: &Interrupt,
        make: impl FnOnce(&mut Build) -> Result<Box<dyn Kernel>>,
    ) -> Result<Prepared> {
        let cpu = CpuRun::new(way.threads, interrupt);
        let kernel = make(&mut Build {
            packs: &mut Packs::default(),
            constants: &[],
            cpu: &cpu,
            memory: MemoryMode::Normal,
            tuned: &way.tuned,
            ledger: &Ledger::default(),
            packed: Vec::new(),
        })?;
        let mut texts = Texts::default();
        let mut inputs = Vec::with_capacity(values.len());
        for value in values {
            inputs.push(match value {
                None => None,
                Some(value) if value.dtype() == DType::String => {
                    Some(Input::Texts(texts.admit(value)?))
                }
                Some(value) => Some(Input::Tensor(value.clone())),
            });
        }
        let mut outputs = Vec::with_capacity(node.outputs.len());
        for spec in node.outputs {
            outputs.push(Output {
                dtype: spec.dtype,
                shape: spec.shape.clone(),
                bytes: AlignedBytes::zeroed(byte_count(spec.dtype, &spec.shape)?)?,
            });
        }
        Ok(Prepared {
            scratch: AlignedBytes::zeroed(kernel.scratch().bytes(cpu.threads())?)?,
            kernel,
            threads: way.threads,
            texts,
            inputs,
            outputs,
        })
    }

    /// Runs the kernel once.
    ///
    /// # Errors
    /// Those of [`Kernel::run`].
    pub fn run(&mut self, interrupt: &Interrupt) -> Result<()> {
        let mut views = Vec::with_capacity(self.inputs.len() + self.outputs.len());
        let mut place = |view: View| {
            views.push(view);
            views.len() as u32 - 1
        };
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for input in &self.inputs {
            inputs.push(match input {
                None => ABSENT,
                Some(Input::Tensor(value)) => place(View::of(value)?),
                Some(Input::Texts(bytes)) => place(View::of_bytes(bytes.as_slice(), DType::String)),
            });
        }
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for output in &mut self.outputs {
            outputs.push(place(View::of_mut(
                output.bytes.as_mut_slice(),
                output.dtype,
            )));
        }
        let mut taken = Taken::new(outputs.len());
        let cpu = CpuRun::new(self.threads, interrupt);
        // SAFETY: inputs, outputs and scratch memory are buffers of their own that `self` holds, and nobody else touches
        // them until `io` is gone.
        let mut io = unsafe {
            Io::new(
                Listed {
                    views: &views,
                    inputs: &inputs,
                    outputs: &outputs,
                },
                &mut taken,
                self.scratch.as_mut_slice(),
                &mut self.texts,
                &cpu,
            )
        };
        self.kernel.run(&mut io)
    }

    /// The outputs of the latest run.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub(super) fn outputs(self) -> Result<Vec<Tensor>> {
        let texts = &self.texts;
        let tensor = |output: Output| match output.dtype {
            DType::String => texts.tensor(&output.shape, output.bytes.as_slice()),
            dtype => Tensor::from_bytes(dtype, &output.shape, Arc::new(output.bytes)),
        };
        self.outputs.into_iter().map(tensor).collect()
    }
}

//! Operators that the session brings, with a kernel on host memory.

use kilim_core::Result;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{Custom, HostInput, HostOutput};
use kilim_host::registry::KernelRegistry;
use kilim_host::{Build, Io, Kernel};

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<Custom>(accepts, build);
}

fn accepts(op: &Custom, _: &NodeSpec) -> Result<(), Refusal> {
    match op.has_host() {
        true => Ok(()),
        false => Err(Refusal::new(format!(
            "{:?} brings no kernel on host memory",
            op.operator()
        ))),
    }
}

struct HostKernel {
    op: Custom,
    inputs: Vec<Option<TensorSpec>>,
    outputs: Vec<TensorSpec>,
}

fn build(op: &Custom, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(HostKernel {
        op: op.clone(),
        inputs: node.inputs.to_vec(),
        outputs: node.outputs.to_vec(),
    }))
}

impl Kernel for HostKernel {
    fn run(&self, io: &mut Io) -> Result<()> {
        let inputs: Vec<_> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(i, spec)| {
                spec.as_ref().map(|spec| HostInput {
                    spec,
                    bytes: io.input_bytes(i),
                })
            })
            .collect();
        let mut outputs: Vec<_> = self
            .outputs
            .iter()
            .enumerate()
            .map(|(i, spec)| HostOutput {
                spec,
                bytes: io.output_bytes(i),
            })
            .collect();
        self.op.run_host(&inputs, &mut outputs)
    }
}

//! Launches of kernels.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::ids::TensorIndex;

use crate::device::binding::{Binding, Places};
use crate::device::faults::Faults;
use crate::device::gpu::Gpu;
use crate::device::pipelines::Pipeline;

/// One launch.
pub(crate) struct Command {
    pub pipeline: Arc<Pipeline>,
    groups: [u32; 3],
    /// The parameters, then the operands.
    bindings: Vec<Binding>,
    /// Made for the arena as it is.
    group: Option<wgpu::BindGroup>,
}

impl Command {
    /// `parameters` is binding 0, the operands follow; `groups` are workgroups along each dimension.
    pub fn new(
        pipeline: Arc<Pipeline>,
        groups: [u32; 3],
        parameters: Binding,
        operands: Vec<Binding>,
    ) -> Command {
        Command {
            pipeline,
            groups,
            bindings: std::iter::once(parameters).chain(operands).collect(),
            group: None,
        }
    }

    /// This launch for another arena, with another word for faults.
    pub fn replica(&self, faults: (&Faults, &Faults)) -> Command {
        let turn = |b: &Binding| b.exchanged(&faults.0.buffer, &faults.1.buffer);
        Command {
            pipeline: self.pipeline.clone(),
            groups: self.groups,
            bindings: self.bindings.iter().map(turn).collect(),
            group: None,
        }
    }

    /// Whether the launch reads or writes a tensor.
    pub fn names(&self, root: TensorIndex) -> bool {
        self.bindings.iter().any(|binding| binding.is_tensor(root))
    }

    /// Whether the launch has a bind group.
    pub fn is_bound(&self) -> bool {
        self.group.is_some()
    }

    /// Forgets the bind group.
    pub fn unbind(&mut self) {
        self.group = None;
    }

    /// Makes the bind group.
    ///
    /// # Errors
    /// `State` where a binding lies in an arena and there is none.
    pub fn bind(&mut self, gpu: &Gpu, places: &Places) -> Result<()> {
        let mut entries = Vec::with_capacity(self.bindings.len());
        for (i, binding) in self.bindings.iter().enumerate() {
            entries.push(wgpu::BindGroupEntry {
                binding: i as u32,
                resource: binding.resource(places)?,
            });
        }
        self.group = Some(gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.layout,
            entries: &entries,
        }));
        Ok(())
    }
}

/// Records launches; `current` is the pipeline that the pass is set to.
pub(crate) fn record(
    gpu: &Gpu,
    pass: &mut wgpu::ComputePass,
    commands: &[Command],
    current: &mut Option<*const Pipeline>,
) {
    for c in commands {
        let pipeline = Arc::as_ptr(&c.pipeline);
        if *current != Some(pipeline) {
            pass.set_pipeline(c.pipeline.raw(gpu));
            *current = Some(pipeline);
        }
        pass.set_bind_group(0, c.group.as_ref(), &[]);
        pass.dispatch_workgroups(c.groups[0], c.groups[1], c.groups[2]);
    }
}

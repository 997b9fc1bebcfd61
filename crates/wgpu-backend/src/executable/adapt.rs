//! Changing an executable for tensors of other shapes.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{ContextState, KernelSpec, StageChange, StageTensors};
use kilim_core::ids::{KernelIndex, PerKernel};
use kilim_core::memory::Ledger;

use super::binder::Commands;
use super::normed::Normed;
use super::{Command, WgpuExecutable, state_error};
use crate::device::faults::Faults;

/// What kernels of an executable are made from.
pub(crate) struct Frame {
    pub nodes: Arc<PerKernel<KernelSpec>>,
    pub tensors: Arc<StageTensors>,
    pub normed: Arc<Normed>,
    pub faults: Arc<Faults>,
}

impl Frame {
    /// A node of the stage.
    ///
    /// # Errors
    /// `State` where there is no such node.
    pub fn node(&self, kernel: KernelIndex) -> Result<&KernelSpec> {
        let node = self.nodes.get(kernel);
        node.ok_or_else(|| state_error(format!("the stage has no node {kernel}")))
    }
}

impl WgpuExecutable {
    /// What kernels are made from, with the tensors as they are now.
    pub fn frame(&self) -> Frame {
        Frame {
            nodes: self.nodes.clone(),
            tensors: self.tensors.clone(),
            normed: self.normed.clone(),
            faults: self.faults.clone(),
        }
    }

    /// Takes over the shapes, places and known values of tensors.
    ///
    /// # Errors
    /// `State` where the change is of another stage.
    pub fn reshape(&mut self, change: &StageChange, state: &mut ContextState) -> Result<()> {
        state.tensors.adapt(&mut self.tensors, change)?;
        for changed in &change.tensors {
            if let Some(value) = &changed.spec.value {
                self.values[changed.tensor] = Some(value.clone());
            }
        }
        Ok(())
    }

    /// Takes over commands in the place of those that their nodes had. `made` has every node that was made anew, with the seconds that it is
    /// expected to take.
    ///
    /// # Errors
    /// `Limit` where the session allows no such memory.
    pub fn adapt(
        &mut self,
        commands: Commands,
        made: Vec<(KernelIndex, f64)>,
        scratch: u64,
        change: &StageChange,
        ledger: &Ledger,
    ) -> Result<()> {
        for (kernel, _) in &made {
            self.commands[*kernel].clear();
        }
        for (kernel, command) in commands.commands {
            self.heirs.unbind_named(&command);
            self.commands[kernel].push(command);
        }
        for root in self.heirs.turned() {
            let commands = self.commands.iter_mut().flatten();
            commands
                .filter(|command| command.names(root))
                .for_each(Command::unbind);
        }
        self.pace.expect(made);
        let before = self.room.scratch_at;
        self.room.adapted(&self.gpu, change.arena_bytes, scratch);
        self.room.own(&commands.own);
        if !change.offsets.is_empty() || self.room.scratch_at != before {
            self.generation = None;
        }
        self.claims = self.room.claim(ledger)?;
        Ok(())
    }
}

//! Outputs that inherit the memory of an input: what only the stage holds, and a node only writes on, is not copied.

use kilim_core::Result;
use kilim_core::backend::{KernelSpec, Location, StageSpec};
use kilim_core::ids::{KernelIndex, PerTensor, TensorIndex};
use kilim_core::tensor::{AlignedBytes, byte_count};

use super::CpuExecutable;
use super::holder::Holder;
use crate::kernel::View;

/// An input of a stage, and the output of a node that is this input but for what the node writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inheritance {
    from: TensorIndex,
    /// The output.
    pub to: TensorIndex,
}

impl Inheritance {
    /// What may be inherited in a node: the input is the stage's, is nobody else's to read, and the output leaves the stage.
    /// `readers` says how many inputs of nodes each tensor and its aliases are.
    pub fn of(
        stage: &StageSpec,
        node: &KernelSpec,
        readers: &PerTensor<usize>,
    ) -> Box<[Inheritance]> {
        let outputs = node.outputs.iter().enumerate();
        let inheritance = outputs.filter_map(|(i, &to)| {
            let input = node.inputs.get(node.op.writes_on(i)?)?;
            let from = stage.root((*input)?);
            let places = [from, to].map(|t| stage.tensors[t].location);
            let leaves = stage.outputs.iter().any(|&t| stage.root(t) == from);
            let inherits =
                readers[from] == 1 && !leaves && places == [Location::Input, Location::Output];
            inherits.then_some(Inheritance { from, to })
        });
        inheritance.collect()
    }
}

impl CpuExecutable {
    /// Gives the output of a step memory: that of the input where nobody else holds it and the kernel writes on it, else
    /// memory of its own.
    ///
    /// # Errors
    /// `Limit` where the machine has no such memory.
    pub(super) fn inherit(&mut self, step: KernelIndex, heir: Inheritance) -> Result<()> {
        let Inheritance { from, to } = heir;
        #[cfg(not(target_arch = "wasm32"))]
        if let Holder::User(_) = self.holders[to] {
            return Ok(());
        }
        let slots = self.prepared.tensors.slots();
        let (input, output) = (&slots[from].spec, &slots[to].spec);
        let bytes = byte_count(output.dtype, &output.shape)?;
        let alike = input.dtype == output.dtype && input.shape == output.shape && bytes > 0;
        let inherited = match alike && self.prepared.steps[step].kernel.writes_on() {
            true => self.give_up(from),
            false => None,
        };
        let own = match inherited {
            Some(own) => {
                self.inherited.push(to);
                own
            }
            None => self.memory_of(to, bytes)?,
        };
        self.set_output(to, own);
        Ok(())
    }

    /// The memory of an input, which then has none, where nobody else holds it.
    fn give_up(&mut self, input: TensorIndex) -> Option<AlignedBytes> {
        let holder = std::mem::replace(&mut self.holders[input], Holder::Missing);
        let kept = match holder {
            Holder::Tensor(value) => match value.into_own_bytes() {
                Ok(own) => {
                    let dtype = self.prepared.tensors.slots()[input].spec.dtype;
                    self.set_view(input, View::empty(dtype));
                    return Some(own);
                }
                Err(value) => Holder::Tensor(value),
            },
            other => other,
        };
        self.holders[input] = kept;
        None
    }

    /// Lets go of what was inherited in this run: whoever has read it has it alone, and may give it to any plan.
    pub(super) fn let_go(&mut self) {
        while let Some(output) = self.inherited.pop() {
            let dtype = self.prepared.tensors.slots()[output].spec.dtype;
            self.set_view(output, View::empty(dtype));
            self.holders[output] = Holder::Output(None);
        }
    }
}

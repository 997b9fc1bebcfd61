//! Outputs that are an input of the stage but for what a node writes on it. Such an output takes the buffer that the input was given:
//! where nobody else holds that, as of caches that go from run to run, nothing of it is copied.

use std::ops::Range;
use std::sync::{Arc, Weak};

use kilim_core::Result;
use kilim_core::backend::{Location, StageSpec};
use kilim_core::ids::{KernelIndex, PerTensor, TensorIndex};

use super::{Command, WgpuExecutable, state_error};
use crate::device::binding::Places;
use crate::device::gpu::{GpuBuffer, STORAGE};

/// The outputs of a stage that may take the buffer of an input.
#[derive(Clone, Default)]
pub(crate) struct Heirs(Vec<Heir>);

/// An output of a node, and the input that the node writes on. Both are no aliases.
struct Heir {
    kernel: KernelIndex,
    from: TensorIndex,
    to: TensorIndex,
    /// The node's kernel writes on the input; otherwise both are tensors of the arena.
    on_input: bool,
    /// That has changed, and bind groups may name the wrong buffer.
    turned: bool,
    /// What the input has been given in this run.
    given: Option<Arc<GpuBuffer>>,
    /// The buffer of the output, once the node was recorded.
    own: Option<Arc<GpuBuffer>>,
    /// What bind groups name as the output, if that is not the arena.
    bound: Weak<GpuBuffer>,
}

/// For another executable, which has been given nothing.
impl Clone for Heir {
    fn clone(&self) -> Heir {
        Heir {
            given: None,
            own: None,
            bound: Weak::new(),
            ..*self
        }
    }
}

impl Heirs {
    /// What may be: each input that a node writes on is read by this node alone and does not leave the stage, each of its outputs that
    /// are such inputs leaves it.
    pub fn of(stage: &StageSpec) -> Heirs {
        let mut readers: PerTensor<usize> = vec![0; stage.tensors.len()].into();
        for &input in stage.nodes.iter().flat_map(|n| n.inputs.iter().flatten()) {
            readers[stage.root(input)] += 1;
        }
        let has = |list: &[TensorIndex], root| list.iter().any(|&t| stage.root(t) == root);
        let arena = |t: TensorIndex| matches!(stage.tensors[t].location, Location::Arena { .. });
        let inherits = |from: TensorIndex, to: TensorIndex| {
            readers[from] == 1
                && has(&stage.inputs, from)
                && !has(&stage.outputs, from)
                && has(&stage.outputs, to)
                && arena(from)
                && arena(to)
        };
        let heirs = stage.nodes.entries().flat_map(|(kernel, node)| {
            let written = node.outputs.iter().enumerate().filter_map(|(i, &to)| {
                let input = (*node.inputs.get(node.op.writes_on(i)?)?)?;
                Some((stage.root(input), to))
            });
            let written: Vec<_> = written.collect();
            // One launch writes on all of them.
            let all = written.iter().all(|&(from, to)| inherits(from, to));
            written
                .into_iter()
                .filter(move |_| all)
                .map(move |(from, to)| Heir {
                    kernel,
                    from,
                    to,
                    on_input: false,
                    turned: false,
                    given: None,
                    own: None,
                    bound: Weak::new(),
                })
        });
        Heirs(heirs.collect())
    }

    /// Whether outputs of a node may take the buffers of its inputs.
    pub fn may(&self, kernel: KernelIndex) -> bool {
        self.0.iter().any(|heir| heir.kernel == kernel)
    }

    /// Says whether a node's kernel writes on its inputs.
    pub fn set(&mut self, kernel: KernelIndex, on_input: bool) {
        for heir in self.0.iter_mut().filter(|heir| heir.kernel == kernel) {
            heir.turned |= heir.on_input != on_input;
            heir.on_input = on_input;
        }
    }

    /// Takes the buffer that tensor `root` is given, if an output takes it; gives it back otherwise.
    pub fn give(&mut self, root: TensorIndex, buffer: Arc<GpuBuffer>) -> Option<Arc<GpuBuffer>> {
        match self.0.iter_mut().find(|h| h.on_input && h.from == root) {
            Some(heir) => {
                heir.given = Some(buffer);
                None
            }
            None => Some(buffer),
        }
    }

    /// Whether an output takes the buffer of tensor `root`.
    pub fn takes(&self, root: TensorIndex) -> bool {
        self.0.iter().any(|h| h.on_input && h.from == root)
    }

    /// The buffer that tensor `root` has beside the arena.
    pub fn buffer(&self, root: TensorIndex) -> Option<&Arc<GpuBuffer>> {
        self.0.iter().find_map(|heir| match root {
            root if root == heir.to => heir.own.as_ref(),
            root if root == heir.from => heir.given.as_ref(),
            _ => None,
        })
    }

    /// All tensors that have buffers beside the arena.
    pub fn buffers(&self) -> Vec<(TensorIndex, &GpuBuffer)> {
        let own = self.0.iter();
        own.filter_map(|heir| Some((heir.to, &**heir.own.as_ref()?)))
            .collect()
    }

    /// The outputs whose bind groups are to be made anew since their nodes' kernels write on the input now, or no longer do.
    pub fn turned(&mut self) -> Vec<TensorIndex> {
        let turned = self.0.iter_mut().filter(|heir| heir.turned);
        let root = turned.map(|heir| {
            (heir.turned, heir.bound) = (false, Weak::new());
            heir.to
        });
        root.collect()
    }

    /// Forgets what bind groups name of what a new command does.
    pub fn unbind_named(&mut self, command: &Command) {
        for heir in self.0.iter_mut().filter(|heir| command.names(heir.to)) {
            heir.bound = Weak::new();
        }
    }

    /// Forgets what bind groups name.
    pub fn unbind(&mut self) {
        for heir in &mut self.0 {
            heir.bound = Weak::new();
        }
    }

    /// Lets go of all buffers: whoever was given one has it alone.
    pub fn let_go(&mut self) {
        for heir in &mut self.0 {
            (heir.given, heir.own) = (None, None);
        }
    }
}

impl WgpuExecutable {
    /// Gives the outputs of nodes that are to be recorded their buffers.
    ///
    /// # Errors
    /// `State` where an input was not given, `Limit` where the device has no such memory.
    pub(super) fn inherit(&mut self, nodes: &Range<KernelIndex>) -> Result<()> {
        for i in 0..self.heirs.0.len() {
            let skipped = self.is_skipped(self.heirs.0[i].kernel);
            let heir = &mut self.heirs.0[i];
            if skipped || !heir.on_input || heir.own.is_some() || !nodes.contains(&heir.kernel) {
                continue;
            }
            let (to, given) = (heir.to, heir.given.take());
            let given = given.ok_or_else(|| state_error("an input was not given".into()))?;
            let own = match Arc::strong_count(&given) == 1 && given.raw.usage().contains(STORAGE) {
                true => given,
                false => {
                    let bytes = self.bytes(to)?;
                    let own = self.gpu.buffer("kept", bytes, STORAGE)?;
                    self.transfer((&given, 0), (&own, 0), bytes);
                    self.imported.push(given);
                    own
                }
            };
            let now = Arc::downgrade(&own);
            let heir = &mut self.heirs.0[i];
            heir.own = Some(own);
            if !Weak::ptr_eq(&heir.bound, &now) {
                heir.bound = now;
                self.bind_output(to)?;
            }
        }
        Ok(())
    }

    /// Makes the bind groups anew that name a tensor.
    fn bind_output(&mut self, root: TensorIndex) -> Result<()> {
        let mut guard = self.arena.lock(self.claims[0].bytes())?;
        let arena = guard.memory::<Arc<GpuBuffer>>()?.cloned();
        drop(guard);
        let own = self.heirs.buffers();
        let places = Places {
            arena: arena.as_deref(),
            tensors: &self.tensors,
            scratch: self.room.scratch_at,
            own: &own,
        };
        let commands = self.commands.iter_mut().flatten();
        for command in commands.filter(|command| command.names(root)) {
            command.bind(&self.gpu, &places)?;
        }
        Ok(())
    }
}

//! The tensors that a context has made.

use std::sync::{Arc, Weak};

use super::{Location, StageChange, StageSpec, TensorSlot, TensorSpec};
use crate::error::{Error, ErrorCode, Result};
use crate::ids::{PerTensor, TensorIndex};
use crate::order::sort_indices;

/// The tensors of one stage on one backend: names, element types, shapes and locations. Contents are
/// elsewhere, so that constants can go while their tensors are kept.
#[derive(Clone, Debug, Default)]
pub struct StageTensors {
    slots: PerTensor<TensorSlot>,
    roots: PerTensor<TensorIndex>,
    /// What is an alias, behind the tensor that it is one of. Sorted.
    aliases: Vec<(TensorIndex, TensorIndex)>,
    inputs: Vec<TensorIndex>,
    outputs: Vec<TensorIndex>,
}

impl StageTensors {
    /// The record of all tensors of a stage, without the values of its constants.
    pub fn of(stage: &StageSpec) -> StageTensors {
        let slots = stage.tensors.iter().map(|slot| TensorSlot {
            name: slot.name.clone(),
            spec: TensorSpec::new(slot.spec.dtype, &slot.spec.shape),
            location: slot.location,
        });
        let roots: PerTensor<_> = stage.tensors.indices().map(|t| stage.root(t)).collect();
        let all = roots.entries().filter(|(t, root)| t != *root);
        let mut aliases: Vec<usize> = all.map(|(t, _)| t.into()).collect();
        let root = |t: usize| roots[TensorIndex::from(t)];
        sort_indices(&mut aliases, &mut |a, b| root(a).cmp(&root(b)));
        let behind = aliases.into_iter().map(|t| (root(t), t.into()));
        StageTensors {
            slots: slots.collect(),
            aliases: behind.collect(),
            roots,
            inputs: stage.inputs.clone(),
            outputs: stage.outputs.clone(),
        }
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Tensor `i`; its spec carries no value.
    ///
    /// # Errors
    /// `State` where the stage has no such tensor.
    pub fn slot(&self, i: TensorIndex) -> Result<&TensorSlot> {
        self.slots.get(i).ok_or_else(|| no_tensor(i))
    }

    /// The tensors of the stage by their number.
    pub fn slots(&self) -> &PerTensor<TensorSlot> {
        &self.slots
    }

    /// The tensor that holds the bytes of tensor `i`, which is one of the stage: itself, or what it
    /// is an alias of.
    pub fn root(&self, i: TensorIndex) -> TensorIndex {
        self.roots[i]
    }

    /// The tensors that are aliases of tensor `root`, which is none itself.
    pub fn aliases(&self, root: TensorIndex) -> impl Iterator<Item = TensorIndex> + '_ {
        let first = self.aliases.partition_point(|(of, _)| *of < root);
        let own = self.aliases[first..].iter();
        own.take_while(move |(of, _)| *of == root).map(|(_, t)| *t)
    }

    /// [`StageTensors::root`] of every tensor.
    pub fn roots(&self) -> &PerTensor<TensorIndex> {
        &self.roots
    }

    /// Where the bytes of tensor `i` are.
    pub fn location(&self, i: TensorIndex) -> Location {
        self.slots[self.root(i)].location
    }

    /// Tensors that are written from outside of the stage.
    pub fn inputs(&self) -> &[TensorIndex] {
        &self.inputs
    }

    /// Tensors that are read from outside of the stage.
    pub fn outputs(&self) -> &[TensorIndex] {
        &self.outputs
    }

    /// Takes over the shapes and places of a change.
    ///
    /// # Errors
    /// `State` where the stage has no such tensor.
    pub fn adapt(&mut self, change: &StageChange) -> Result<()> {
        for changed in &change.tensors {
            let spec = &mut self.slot_mut(changed.tensor)?.spec;
            spec.shape.clone_from(&changed.spec.shape);
        }
        for &(tensor, offset) in &change.offsets {
            self.slot_mut(tensor)?.location = Location::Arena { offset };
        }
        Ok(())
    }

    fn slot_mut(&mut self, i: TensorIndex) -> Result<&mut TensorSlot> {
        self.slots.get_mut(i).ok_or_else(|| no_tensor(i))
    }

    /// Whether tensor `i` was planned like this.
    ///
    /// # Errors
    /// `Shape` where it was not.
    pub fn check(&self, i: TensorIndex, spec: &TensorSpec) -> Result<()> {
        let slot = self.slot(i)?;
        if slot.spec.dtype == spec.dtype && slot.spec.shape == spec.shape {
            return Ok(());
        }
        Err(Error::new(
            ErrorCode::Shape,
            "a tensor is not what the stage was planned for",
        )
        .with_input(&slot.name)
        .with_expected(format!("{}{:?}", slot.spec.dtype, slot.spec.shape))
        .with_got(format!("{}{:?}", spec.dtype, spec.shape)))
    }
}

fn no_tensor(i: TensorIndex) -> Error {
    Error::new(ErrorCode::State, format!("the stage has no tensor {i}"))
}

/// The tensors of all stages that a context keeps. A stage that is dropped takes its tensors along.
#[derive(Debug, Default)]
pub struct TensorRegistry {
    stages: Vec<Weak<StageTensors>>,
    /// How many stages there may be before those that were dropped are looked for.
    full: usize,
}

impl TensorRegistry {
    /// Makes the tensors of a stage.
    pub fn register(&mut self, stage: &StageSpec) -> Arc<StageTensors> {
        let tensors = Arc::new(StageTensors::of(stage));
        self.keep(&tensors);
        tensors
    }

    /// Changes tensors that were made here, as [`StageTensors::adapt`] does.
    ///
    /// # Errors
    /// `State` where the stage has no such tensor.
    pub fn adapt(&mut self, tensors: &mut Arc<StageTensors>, change: &StageChange) -> Result<()> {
        // Somebody may look at them now. Without that, they stay where they are, but lose their place here.
        self.stages
            .retain(|stage| !std::ptr::eq(stage.as_ptr(), Arc::as_ptr(tensors)));
        Arc::make_mut(tensors).adapt(change)?;
        self.keep(tensors);
        Ok(())
    }

    fn keep(&mut self, tensors: &Arc<StageTensors>) {
        if self.stages.len() >= self.full {
            self.stages.retain(|s| s.strong_count() > 0);
            self.full = 2 * self.stages.len() + 1;
        }
        self.stages.push(Arc::downgrade(tensors));
    }

    /// The stages that are kept, oldest first.
    pub fn stages(&self) -> impl Iterator<Item = Arc<StageTensors>> + '_ {
        self.stages.iter().filter_map(Weak::upgrade)
    }

    /// The newest tensor of this name, with its stage.
    pub fn find(&self, name: &str) -> Option<(Arc<StageTensors>, TensorIndex)> {
        let stages = self.stages.iter().rev().filter_map(Weak::upgrade);
        stages.into_iter().find_map(|stage| {
            let at = stage.slots.position(|s| s.name == name)?;
            Some((stage, at))
        })
    }
}

//! Tensors of a stage in host memory, which a library reads and writes in place.

use std::collections::{HashMap, HashSet};
use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{DeviceTensor, InHost, Location, StageSpec, TensorSlot};
use kilim_core::ids::TensorIndex;
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{Error, ErrorCode, Result, Tensor};

/// The alignment of attached elements in bytes.
const ALIGNMENT: usize = 8;

/// What a library is attached to during a run.
#[derive(Default)]
pub struct Attached {
    /// Elements that are only read: shared, or copied where they lie at another alignment.
    inputs: HashMap<TensorIndex, Tensor>,
    outputs: HashMap<TensorIndex, Output>,
    /// Inputs and outputs in host memory of the user's.
    users: HashMap<TensorIndex, DeviceTensor>,
    /// Inputs and outputs that are not attached, but in memory that the library keeps.
    given: HashSet<TensorIndex>,
}

enum Output {
    Room(AlignedBytes),
    Read(Tensor),
}

/// Where elements are, and how many bytes.
pub type Place = (*mut c_void, usize);

impl Attached {
    /// Shares the elements of an input for the run.
    ///
    /// # Errors
    /// `Limit` where they have to be copied and memory is short.
    pub fn share(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<Place> {
        let mut input = data.clone();
        if input.read()?.as_ptr().align_offset(ALIGNMENT) != 0 {
            let copied = AlignedBytes::copy_of(input.read()?)?;
            input = Tensor::from_bytes(data.dtype(), data.shape(), Arc::new(copied))?;
        }
        let bytes = input.read()?;
        let place = (bytes.as_ptr().cast_mut().cast(), bytes.len());
        self.inputs.insert(tensor, input);
        Ok(place)
    }

    /// Makes room for an output of the stage.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn room(&mut self, stage: &StageSpec, tensor: TensorIndex) -> Result<Place> {
        let spec = &stage.tensors[tensor].spec;
        let mut room = AlignedBytes::zeroed(byte_count(spec.dtype, &spec.shape)?)?;
        let slice = room.as_mut_slice();
        let place = (slice.as_mut_ptr().cast(), slice.len());
        self.outputs.insert(tensor, Output::Room(room));
        Ok(place)
    }

    /// Has an input or an output be in host memory of the user's for the run.
    pub fn lend(&mut self, root: TensorIndex, memory: DeviceTensor) {
        self.outputs.remove(&root);
        self.users.insert(root, memory);
    }

    /// Has an input or an output be in memory that the library keeps.
    pub fn give(&mut self, root: TensorIndex) {
        self.outputs.remove(&root);
        self.given.insert(root);
    }

    /// Whether an input or an output is in memory of the user's.
    pub fn is_users(&self, root: TensorIndex) -> bool {
        self.users.contains_key(&root) || self.given.contains(&root)
    }

    /// Whether a tensor [is in host memory](Attached::has) in this run.
    pub fn holds(&self, stage: &StageSpec, tensor: TensorIndex) -> bool {
        Attached::has(stage, tensor) && !self.given.contains(&stage.root(tensor))
    }

    /// Whether a tensor, or the one whose bytes it is, is in host memory.
    pub fn has(stage: &StageSpec, tensor: TensorIndex) -> bool {
        let there = stage.tensors.get(tensor).is_some();
        let location = |root: TensorIndex| stage.tensors[root].location;
        there
            && matches!(
                location(stage.root(tensor)),
                Location::Input | Location::Output
            )
    }

    /// Gives an output of the stage elements that no kernel writes.
    ///
    /// # Errors
    /// `State` where there is no room of as many bytes.
    pub fn fill(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()> {
        if let Some(memory) = self.users.get(&tensor) {
            return memory.handle.write(memory, data);
        }
        let bytes = data.read()?;
        match self.outputs.get_mut(&tensor) {
            Some(Output::Room(room)) if room.len() == bytes.len() => {
                room.as_mut_slice().copy_from_slice(bytes);
                Ok(())
            }
            _ => Err(Error::new(
                ErrorCode::State,
                "an output is written outside of a run",
            )),
        }
    }

    /// The elements of a tensor that is [in host memory](Attached::has); nothing is copied.
    ///
    /// # Errors
    /// `State` where there was no run.
    pub fn hand_out(&mut self, stage: &StageSpec, tensor: TensorIndex) -> Result<Tensor> {
        let (root, shape) = (stage.root(tensor), &stage.tensors[tensor].spec.shape);
        let missing = || Error::new(ErrorCode::State, "a tensor is read before a run");
        if let Some(input) = self.inputs.get(&root) {
            return input.reshaped(shape);
        }
        if let Some(memory) = self.users.get(&root) {
            return InHost::copied(memory)?.reshaped(shape);
        }
        let spec = &stage.tensors[root].spec;
        let read = match self.outputs.remove(&root).ok_or_else(missing)? {
            Output::Room(room) => Tensor::from_bytes(spec.dtype, &spec.shape, Arc::new(room))?,
            Output::Read(read) => read,
        };
        self.outputs.insert(root, Output::Read(read.clone()));
        read.reshaped(shape)
    }

    /// Whether the library is attached to nothing.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.outputs.is_empty() && self.users.is_empty()
    }

    /// Lets go of everything when the run has ended.
    pub fn clear(&mut self) {
        self.inputs.clear();
        self.outputs.clear();
        self.users.clear();
        self.given.clear();
    }
}

/// Whether a stage has tensors that are attached, as those of a library that computes in host memory have.
pub fn is_attached(stage: &StageSpec) -> bool {
    let attached = |slot: &TensorSlot| matches!(slot.location, Location::Input | Location::Output);
    stage.tensors.iter().any(attached)
}

/// Where a tensor in host memory of the user's is; `None` for every other one, and at another alignment.
pub fn users(tensor: &DeviceTensor) -> Option<Place> {
    let (start, bytes) = InHost::place(tensor)?;
    let aligned = start.addr().get().is_multiple_of(ALIGNMENT);
    aligned.then(|| (start.as_ptr().cast(), bytes))
}

/// The tensors of a stage that leave it in host memory.
pub fn outputs(stage: &StageSpec) -> Vec<TensorIndex> {
    let slots = stage.tensors.entries();
    let out = slots.filter(|(_, slot)| slot.location == Location::Output);
    out.map(|(tensor, _)| tensor).collect()
}

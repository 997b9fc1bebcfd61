//! The memory of outputs. What a run gives is often an input of the next one; its memory then comes back, and outputs
//! of later runs are written into it.

use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::Location;
use kilim_core::ids::TensorIndex;
use kilim_core::memory::MemoryMode;
use kilim_core::tensor::{AlignedBytes, byte_count};

use super::holder::Holder;
use super::{CpuExecutable, Prepared};
use crate::kernel::View;

/// An output that has outgrown its memory gets more than it needs by this part.
const SLACK: usize = 4;

/// Memory of so many bytes more than it needs may go to any output.
const LITTLE: usize = 4096;

/// Memory that came back and waits for an output.
#[derive(Default)]
pub struct Spare(Vec<AlignedBytes>);

impl Spare {
    /// So many bytes: of memory that came back, or else new ones with room for `room`. What they are is not told.
    fn take(&mut self, bytes: usize, room: usize) -> Result<AlignedBytes> {
        let rooms = self.0.iter().map(AlignedBytes::room).enumerate();
        let best = rooms.filter(|(_, room)| serves(*room, bytes));
        let mut own = match best.min_by_key(|(_, room)| *room) {
            Some((i, _)) => self.0.swap_remove(i),
            None => AlignedBytes::zeroed(room)?,
        };
        own.resize(bytes);
        Ok(own)
    }
}

/// Whether memory of this room is to be used for so many bytes: it is not much larger.
fn serves(room: usize, bytes: usize) -> bool {
    room >= bytes && room / 2 <= bytes.saturating_add(LITTLE)
}

/// The memory that an output of so many bytes gets where `grows` says that it will get larger.
fn room(bytes: usize, grows: bool) -> usize {
    match grows {
        true => bytes.saturating_add(bytes / SLACK),
        false => bytes,
    }
}

/// The bytes of the outputs' own buffers; `grow` says that these are made to grow.
pub fn output_bytes(prepared: &Prepared, grow: bool) -> Result<usize> {
    let slots = prepared.tensors.slots().iter();
    let mut outputs = slots.filter(|slot| slot.location == Location::Output);
    outputs.try_fold(0usize, |sum, slot| {
        let bytes = byte_count(slot.spec.dtype, &slot.spec.shape)?;
        Ok(sum.saturating_add(room(bytes, grow)))
    })
}

impl CpuExecutable {
    /// Gives every output memory that nobody else looks at, but for heirs.
    ///
    /// # Errors
    /// `Limit` where the machine has no such memory.
    pub(super) fn begin_outputs(&mut self) -> Result<()> {
        for tensor in self.holders.indices() {
            let Holder::Output(buffer) = &mut self.holders[tensor] else {
                continue;
            };
            let spec = &self.prepared.tensors.slots()[tensor].spec;
            let (dtype, bytes) = (spec.dtype, byte_count(spec.dtype, &spec.shape)?);
            let mut own = buffer.take().and_then(Arc::into_inner);
            self.set_view(tensor, View::empty(dtype));
            self.spare.0.extend(own.take_if(|own| own.len() != bytes));
            match own {
                Some(own) => self.set_output(tensor, own),
                None if self.heirs.contains(&tensor) => {}
                None => {
                    let own = self.memory_of(tensor, bytes)?;
                    self.set_output(tensor, own);
                }
            }
        }
        self.spare.0.clear();
        Ok(())
    }

    /// Memory for an output of so many bytes: what it has where that is as much, or what came back, or new.
    ///
    /// # Errors
    /// `Limit` where the machine has no such memory.
    pub(super) fn memory_of(&mut self, output: TensorIndex, bytes: usize) -> Result<AlignedBytes> {
        let had = match &mut self.holders[output] {
            Holder::Output(buffer) => buffer.take().and_then(Arc::into_inner),
            _ => None,
        };
        match had.filter(|had| had.len() == bytes) {
            Some(had) => Ok(had),
            None => self.spare.take(bytes, room(bytes, self.grows)),
        }
    }

    /// Makes this the memory of an output.
    pub(super) fn set_output(&mut self, output: TensorIndex, own: AlignedBytes) {
        let dtype = self.prepared.tensors.slots()[output].spec.dtype;
        let mut own = Arc::new(own);
        if let Some(own) = Arc::get_mut(&mut own) {
            self.set_view(output, View::of_mut(own.as_mut_slice(), dtype));
        }
        self.holders[output] = Holder::Output(Some(own));
    }

    /// Takes what an input held out of its place, whose view is to be set anew. Memory that is nobody else's and of the
    /// size of an output waits for one.
    pub(super) fn reclaim(&mut self, input: TensorIndex) {
        let holder = std::mem::replace(&mut self.holders[input], Holder::Missing);
        if self.prepared.memory == MemoryMode::Limit {
            return;
        }
        let Holder::Tensor(value) = holder else {
            return;
        };
        let Ok(own) = value.into_own_bytes() else {
            return;
        };
        // The sizes of outputs that it serves.
        let wanting = || {
            let outputs = self.holders.iter().zip(self.prepared.tensors.slots());
            let outputs = outputs.filter(|(holder, _)| matches!(holder, Holder::Output(_)));
            let sizes = outputs.filter_map(|(_, slot)| {
                let spec = &slot.spec;
                byte_count(spec.dtype, &spec.shape).ok()
            });
            sizes.filter(|&bytes| serves(own.room(), bytes))
        };
        let rivals = self.spare.0.iter().map(AlignedBytes::room);
        let rivals = rivals.filter(|&room| wanting().any(|bytes| serves(room, bytes)));
        if rivals.count() < wanting().count() {
            self.spare.0.push(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Spare;

    #[test]
    fn memory_that_came_back_serves_outputs_of_its_size() {
        let mut spare = Spare::default();
        let large = spare.take(100_000, 125_000).unwrap();
        let (room, place) = (large.room(), large.as_slice().as_ptr());
        assert!(large.len() == 100_000 && room >= 125_000);
        spare.0.push(large);
        let small = spare.take(1000, 1000).unwrap();
        assert_eq!((small.len(), spare.0.len()), (1000, 1));
        let again = spare.take(120_000, 150_000).unwrap();
        assert_eq!((again.len(), again.room()), (120_000, room));
        assert_eq!(again.as_slice().as_ptr(), place);
        spare.0.push(again);
        assert!(spare.take(room + 1, room + 1).unwrap().room() > room);
    }
}

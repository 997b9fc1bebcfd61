//! Constants on the device: uploaded, and rearranged where a kernel wants that, once per session.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::backend::ConstantKey;
use kilim_core::memory::{Claim, Ledger, Storage, vec_of};
use kilim_core::{DType, Error, ErrorCode, Result, Tensor};

use crate::device::gpu::{Gpu, GpuBuffer, STORAGE};
use crate::device::{storage, transfer};
use crate::lowering::PackKind;

/// The bytes of elements as a device has them.
type OnDevice = fn(DType, &[u8]) -> Result<Cow<'_, [u8]>>;

/// Bytes of a constant that are read and written at a time: whole elements of every type.
const PIECE: usize = 4 << 20;
/// Bytes that are written before the memory in which the queue keeps them is let go.
const STAGED: usize = 32 << 20;

/// A buffer, on the ledger of the context that made it.
type Owned = (Arc<GpuBuffer>, Arc<Claim>);

/// The constants of a session.
#[derive(Default)]
pub(crate) struct Constants {
    ledger: Ledger,
    buffers: HashMap<(ConstantKey, Option<PackKind>), Owned>,
    /// Bytes that were written since the queue let go of such memory.
    staged: usize,
}

impl Constants {
    /// No constants yet; their bytes will be counted on `ledger`.
    pub fn on(ledger: Ledger) -> Constants {
        Constants {
            ledger,
            buffers: HashMap::new(),
            staged: 0,
        }
    }

    /// These constants for another context; their bytes stay on the ledger of this one.
    pub fn share(&self, ledger: Ledger) -> Constants {
        Constants {
            ledger,
            buffers: self.buffers.clone(),
            staged: 0,
        }
    }

    /// The buffer of a constant; without a key it is made anew and belongs to the stage. The value is not looked at where the buffer is
    /// there.
    ///
    /// # Errors
    /// `Limit` where the device has no room for it; `State` where there is neither the buffer nor a value.
    pub fn get(
        &mut self,
        gpu: &Gpu,
        key: Option<ConstantKey>,
        value: Option<&Tensor>,
        kind: Option<&PackKind>,
    ) -> Result<Arc<GpuBuffer>> {
        let Some(key) = key else {
            return self.make(gpu, value, kind);
        };
        let id = (key, kind.cloned());
        if let Some((buffer, _)) = self.buffers.get(&id) {
            return Ok(buffer.clone());
        }
        let buffer = self.make(gpu, value, kind)?;
        let claim = self
            .ledger
            .acquire(Storage::Static, buffer.bytes as usize)?;
        self.buffers.insert(id, (buffer.clone(), Arc::new(claim)));
        Ok(buffer)
    }

    fn make(
        &mut self,
        gpu: &Gpu,
        value: Option<&Tensor>,
        kind: Option<&PackKind>,
    ) -> Result<Arc<GpuBuffer>> {
        let value = value.ok_or_else(unknown)?.unread();
        match kind {
            None => {
                let bytes = storage::device_bytes(value.dtype(), value.len());
                self.filled(gpu, "constant", bytes, &value, storage::elements_to_device)
            }
            Some(PackKind::Words) => {
                let bytes = value.byte_len();
                self.filled(gpu, "packed constant", bytes, &value, |_, piece| {
                    Ok(Cow::Borrowed(piece))
                })
            }
            Some(kind) => {
                let packed = kind.apply(&value)?;
                let buffer = gpu.buffer("packed constant", packed.len() as u64, STORAGE)?;
                for (i, piece) in packed.chunks(PIECE).enumerate() {
                    self.put(gpu, &buffer, i * PIECE, piece)?;
                }
                Ok(buffer)
            }
        }
    }

    /// A buffer of `bytes` bytes with the elements of `value`, each piece as `on_device` gives it: the whole of them is in memory nowhere else.
    fn filled(
        &mut self,
        gpu: &Gpu,
        label: &str,
        bytes: usize,
        value: &Tensor,
        on_device: OnDevice,
    ) -> Result<Arc<GpuBuffer>> {
        let buffer = gpu.buffer(label, bytes as u64, STORAGE)?;
        let len = value.byte_len();
        let mut room = vec_of(0, PIECE.min(len))?;
        let mut at = 0;
        for from in (0..len).step_by(PIECE) {
            let piece = &mut room[..PIECE.min(len - from)];
            value.copy_to(from, piece)?;
            let there = on_device(value.dtype(), piece)?;
            self.put(gpu, &buffer, at, &there)?;
            at += there.len();
        }
        Ok(buffer)
    }

    /// Writes a piece. What the queue keeps of pieces goes before it is too much.
    fn put(&mut self, gpu: &Gpu, buffer: &GpuBuffer, at: usize, piece: &[u8]) -> Result<()> {
        gpu.write(&buffer.raw, at as u64, piece);
        self.staged += piece.len();
        if self.staged < STAGED {
            return Ok(());
        }
        self.staged = 0;
        transfer::flush(gpu)
    }
}

fn unknown() -> Error {
    Error::new(ErrorCode::State, "a constant has no data")
}

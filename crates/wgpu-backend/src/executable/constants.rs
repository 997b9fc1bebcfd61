//! Constants on the device: uploaded, and rearranged where a kernel wants that, once per session.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::backend::ConstantKey;
use kilim_core::memory::{Claim, Ledger, Storage};
use kilim_core::{Error, ErrorCode, Result, Tensor};

use crate::device::gpu::{Gpu, GpuBuffer};
use crate::device::storage;
use crate::lowering::PackKind;

/// A buffer, on the ledger of the context that made it.
type Owned = (Arc<GpuBuffer>, Arc<Claim>);

/// The constants of a session.
#[derive(Default)]
pub(crate) struct Constants {
    ledger: Ledger,
    buffers: HashMap<(ConstantKey, Option<PackKind>), Owned>,
}

impl Constants {
    /// No constants yet; their bytes will be counted on `ledger`.
    pub fn on(ledger: Ledger) -> Constants {
        Constants {
            ledger,
            buffers: HashMap::new(),
        }
    }

    /// These constants for another context; their bytes stay on the ledger of this one.
    pub fn share(&self, ledger: Ledger) -> Constants {
        Constants {
            ledger,
            buffers: self.buffers.clone(),
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
        let make = || {
            let value = value.ok_or_else(unknown)?.unread();
            match kind {
                None => gpu.upload("constant", &storage::to_device(&value)?),
                Some(kind) => gpu.upload("packed constant", &kind.apply(&value)?),
            }
        };
        let Some(key) = key else { return make() };
        let id = (key, kind.cloned());
        if let Some((buffer, _)) = self.buffers.get(&id) {
            return Ok(buffer.clone());
        }
        let buffer = make()?;
        let claim = self
            .ledger
            .acquire(Storage::Static, buffer.bytes as usize)?;
        self.buffers.insert(id, (buffer.clone(), Arc::new(claim)));
        Ok(buffer)
    }
}

fn unknown() -> Error {
    Error::new(ErrorCode::State, "a constant has no data")
}

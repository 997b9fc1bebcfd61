//! Constants on the device: uploaded, and rearranged where a kernel wants that, once per session.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::backend::ConstantKey;
use kilim_core::memory::{Claim, Ledger, Storage};
use kilim_core::{DType, Result, Tensor};

use crate::gpu::{Gpu, GpuBuffer};
use crate::storage;

/// An arrangement of a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PackKind {
    /// Seen as a tensor of `shape`, transposed by `perm`, then padded with zeros to `padded` (in
    /// the order of the result). Elements of 32 or 16 bits.
    Permute {
        shape: Vec<usize>,
        perm: Vec<usize>,
        padded: Vec<usize>,
    },
    /// The same of bytes, four a word, as signed ones: of `uint8`, 128 is taken off.
    Bytes {
        shape: Vec<usize>,
        perm: Vec<usize>,
        padded: Vec<usize>,
    },
}

/// Input `input` of a node in the arrangement `kind`.
pub(crate) struct Pack {
    pub input: usize,
    pub kind: PackKind,
}

impl PackKind {
    fn apply(&self, tensor: &Tensor) -> Vec<u8> {
        let (PackKind::Permute {
            shape,
            perm,
            padded,
        }
        | PackKind::Bytes {
            shape,
            perm,
            padded,
        }) = self;
        let dtype = tensor.dtype();
        let (data, size) = match self {
            PackKind::Permute { .. } => (
                storage::to_device(tensor),
                storage::words(dtype).map_or(dtype.size(), |words| 4 * words),
            ),
            PackKind::Bytes { .. } if dtype == DType::U8 => {
                (tensor.bytes().iter().map(|b| b ^ 0x80).collect(), 1)
            }
            PackKind::Bytes { .. } => (Cow::Borrowed(tensor.bytes()), 1),
        };
        let words: &[u8] = &data;
        let own = crate::walk::strides(shape);
        let walk: Vec<usize> = perm.iter().map(|&p| own[p]).collect();
        let dims: Vec<usize> = perm.iter().map(|&p| shape[p]).collect();
        let to = crate::walk::strides(padded);
        let mut out = vec![0u8; padded.iter().product::<usize>() * size];
        let rank = dims.len();
        let count: usize = dims.iter().product();
        let mut at = vec![0usize; rank];
        for _ in 0..count {
            let (mut from, mut into) = (0, 0);
            for d in 0..rank {
                from += at[d] * walk[d];
                into += at[d] * to[d];
            }
            if let (Some(o), Some(i)) = (
                out.get_mut(into * size..(into + 1) * size),
                words.get(from * size..(from + 1) * size),
            ) {
                o.copy_from_slice(i);
            }
            for d in (0..rank).rev() {
                at[d] += 1;
                if at[d] < dims[d] {
                    break;
                }
                at[d] = 0;
            }
        }
        out
    }
}

/// A buffer, on the ledger of the context that made it.
type Owned = (Arc<GpuBuffer>, Arc<Claim>);

/// The constants of a session.
#[derive(Default)]
pub(crate) struct Constants {
    ledger: Ledger,
    buffers: HashMap<(ConstantKey, Option<PackKind>), Owned>,
}

impl Constants {
    /// With their bytes on a ledger.
    pub fn on(ledger: Ledger) -> Constants {
        Constants {
            ledger,
            buffers: HashMap::new(),
        }
    }

    /// The same constants for another context; their bytes stay on the ledger of this one.
    pub fn share(&self, ledger: Ledger) -> Constants {
        Constants {
            ledger,
            buffers: self.buffers.clone(),
        }
    }

    /// The buffer of a constant; without a key it is made anew and belongs to the stage.
    pub fn get(
        &mut self,
        gpu: &Gpu,
        key: Option<ConstantKey>,
        value: &Tensor,
        kind: Option<&PackKind>,
    ) -> Result<Arc<GpuBuffer>> {
        let make = || match kind {
            None => gpu.upload("constant", &storage::to_device(&value.unread())),
            Some(kind) => gpu.upload("packed constant", &kind.apply(&value.unread())),
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

//! Constants in the form that kernels want them, kept for a session.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::ConstantKey;
use kilim_core::memory::{Claim, Ledger, Storage};
use kilim_core::tensor::AlignedBytes;

/// Names a way of packing: what it is and the parameters that change the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackKey {
    /// What the bytes are.
    pub kind: &'static str,
    /// What they depend on: sizes of vectors, groups, an algorithm's number.
    pub parameters: [usize; 4],
}

/// The packed constants of a session.
#[derive(Default)]
pub struct Packs {
    ledger: Ledger,
    packed: HashMap<(ConstantKey, PackKey), (Arc<AlignedBytes>, Arc<Claim>)>,
}

impl Packs {
    /// No packed constants yet; their bytes will be counted on `ledger`.
    pub fn on(ledger: Ledger) -> Packs {
        Packs {
            ledger,
            packed: HashMap::new(),
        }
    }

    /// Packed constants for another context; their bytes stay on the ledger of this one.
    pub fn share(&self, ledger: Ledger) -> Packs {
        Packs {
            ledger,
            packed: self.packed.clone(),
        }
    }

    pub fn get_or_insert(
        &mut self,
        constant: ConstantKey,
        key: PackKey,
        make: impl FnOnce() -> Result<AlignedBytes>,
    ) -> Result<Arc<AlignedBytes>> {
        Ok(match self.packed.entry((constant, key)) {
            Entry::Occupied(e) => e.get().0.clone(),
            Entry::Vacant(e) => {
                let packed = Arc::new(make()?);
                let claim = self.ledger.acquire(Storage::Static, packed.len())?;
                e.insert((packed, Arc::new(claim))).0.clone()
            }
        })
    }

    /// Forgets what no kernel uses.
    pub fn drop_unused(&mut self) {
        self.packed
            .retain(|_, (packed, _)| Arc::strong_count(packed) > 1);
    }
}

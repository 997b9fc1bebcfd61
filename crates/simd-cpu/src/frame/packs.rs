//! Constants in the form that kernels want them, kept for a session.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::ConstantKey;
use kilim_core::tensor::AlignedBytes;

/// Names a way of packing: what it is and the parameters that change the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackKey {
    pub kind: &'static str,
    pub parameters: [usize; 4],
}

/// The packed constants of a session.
#[derive(Clone, Default)]
pub struct Packs {
    packed: HashMap<(ConstantKey, PackKey), Arc<AlignedBytes>>,
}

impl Packs {
    pub fn get_or_insert(
        &mut self,
        constant: ConstantKey,
        key: PackKey,
        make: impl FnOnce() -> Result<AlignedBytes>,
    ) -> Result<Arc<AlignedBytes>> {
        Ok(match self.packed.entry((constant, key)) {
            Entry::Occupied(e) => e.get().clone(),
            Entry::Vacant(e) => e.insert(Arc::new(make()?)).clone(),
        })
    }

    pub fn bytes(&self) -> usize {
        self.packed.values().map(|b| b.len()).sum()
    }
}

//! The names of backends, indices of what sessions and stages list, and maps by the indices of values and nodes.

mod indexed;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

pub use indexed::{
    BackendIndex, Indexed, KernelIndex, PartIndex, PerBackend, PerKernel, PerPart, PerTensor,
    TensorIndex, each,
};

/// A backend's unique name: `cpu`, `wgpu`, `builtin`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BackendId(Cow<'static, str>);

impl BackendId {
    /// The backend of this name.
    pub const fn new(id: &'static str) -> BackendId {
        BackendId(Cow::Borrowed(id))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for BackendId {
    fn from(id: &str) -> Self {
        BackendId(Cow::Owned(id.to_string()))
    }
}

impl fmt::Display for BackendId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A map by [`ValueId`](crate::ValueId) or [`NodeId`](crate::NodeId). Its hash is one multiplication: indices
/// are counted up, nobody chooses them.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// A set of such indices.
pub type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;

/// The hash of an index.
#[derive(Default)]
pub struct IdHasher(u64);

/// 2^64 divided by the golden ratio, which spreads consecutive numbers (Knuth, The Art of Computer
/// Programming, volume 3, section 6.4).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(b.into()));
    }

    fn write_usize(&mut self, n: usize) {
        self.0 = (self.0.rotate_left(5) ^ n as u64).wrapping_mul(SPREAD);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

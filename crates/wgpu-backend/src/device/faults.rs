//! What only the device can find wrong: an index out of range that the host never sees. A kernel
//! writes its node's number to one word of the session, and every read of results looks at it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kilim_core::{Error, ErrorCode, Result};

use crate::device::gpu::{Gpu, GpuBuffer, lock};

/// The word, and the nodes that may write it.
pub(crate) struct Faults {
    pub buffer: Arc<GpuBuffer>,
    nodes: Mutex<Nodes>,
}

/// Nodes by their numbers.
#[derive(Clone, Default)]
struct Nodes {
    /// Name and operator; a node's number is its place here, counted from 1.
    list: Vec<(String, String)>,
    numbers: HashMap<(String, String), u32>,
}

/// Bytes to read.
pub(crate) const BYTES: u64 = 4;

impl Faults {
    /// No faults, of no nodes.
    pub fn new(gpu: &Gpu) -> Result<Arc<Faults>> {
        Ok(Arc::new(Faults {
            buffer: gpu.upload("faults", &[0; BYTES as usize])?,
            nodes: Mutex::default(),
        }))
    }

    /// The number under which a node's kernels report. Kernels that are made anew keep it.
    pub fn number(&self, name: &str, op: &str) -> u32 {
        let Nodes { list, numbers } = &mut *lock(&self.nodes);
        let node = (name.to_string(), op.to_string());
        *numbers.entry(node).or_insert_with_key(|node| {
            list.push(node.clone());
            list.len() as u32
        })
    }

    /// Takes over the nodes of another word under their numbers: all that are known here are among
    /// them.
    pub fn know(&self, other: &Faults) {
        let nodes = lock(&other.nodes).clone();
        *lock(&self.nodes) = nodes;
    }

    /// Whether there is anything to look for.
    pub fn possible(&self) -> bool {
        !lock(&self.nodes).list.is_empty()
    }

    /// `InvalidValue` with the node's name where `word`, as read from the device, is not zero. The
    /// next run starts afresh.
    pub fn check(&self, gpu: &Gpu, word: &[u8]) -> Result<()> {
        let number = word.iter().rev().fold(0, |n, &b| n << 8 | usize::from(b));
        let Some(place) = number.checked_sub(1) else {
            return Ok(());
        };
        gpu.write(&self.buffer.raw, 0, &[0; BYTES as usize]);
        let error = Error::new(ErrorCode::InvalidValue, "an index is out of range");
        Err(match lock(&self.nodes).list.get(place) {
            Some((name, op)) => error.at(name, op),
            None => error,
        })
    }
}

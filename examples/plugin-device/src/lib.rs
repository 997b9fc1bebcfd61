//! A device from scratch, as a backend in Rust: 4 MiB of memory of its own, a thread that computes while Kilim goes on, and two
//! operators on float32, Conv and Gemm.
//!
//!     cargo build -p backend_tile
//!     kilim run model.onnx --backends tile,cpu --plugin-path target/debug

mod kernels;

use std::ffi::CStr;
use std::sync::{Arc, Mutex, PoisonError};

use kilim_plugin_abi::guest::{Description, Failure, Guest, Kernel, Memory, Node, Result};
use kilim_plugin_abi::{FAST, FLOAT32};

use kernels::{Conv, Gemm};

/// Bytes of memory that the device has.
const MEMORY: usize = 4 << 20;

/// The device, with the bytes that are free.
struct Tile {
    free: Arc<Mutex<usize>>,
}

/// A part of the memory, free again when it is dropped.
struct Part {
    words: Vec<u64>,
    free: Arc<Mutex<usize>>,
}

impl AsMut<[u64]> for Part {
    fn as_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += size_of_val(&self.words[..]);
    }
}

impl Guest for Tile {
    fn open() -> Result<Tile> {
        let free = Arc::new(Mutex::new(MEMORY));
        Ok(Tile { free })
    }

    fn device(&self) -> &CStr {
        c"a tile of 4 MiB"
    }

    fn describe(&self) -> Description {
        Description {
            dtypes: vec![(FLOAT32, FAST)],
            max_tensor_bytes: MEMORY as u64,
            max_arena_bytes: MEMORY as u64,
            queued: true,
            ..Description::default()
        }
    }

    fn allocate(&self, bytes: usize) -> Result<Option<Memory>> {
        let words = bytes.div_ceil(size_of::<u64>());
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let left = free.checked_sub(words.saturating_mul(size_of::<u64>()));
        let short = || Failure::limit(format!("{bytes} bytes where {free} are free"));
        *free = left.ok_or_else(short)?;
        Ok(Some(Box::new(Part {
            words: vec![0; words],
            free: self.free.clone(),
        })))
    }

    fn kernel(&self, node: &Node) -> Result<Box<dyn Kernel>> {
        let mut tensors = node.inputs.iter().flatten().chain(&node.outputs);
        if tensors.any(|t| t.dtype != FLOAT32) {
            return Err(Failure::unsupported("only float32"));
        }
        match (node.domain, node.op) {
            ("", "Conv") => Ok(Box::new(Conv::of(node)?)),
            ("", "Gemm") => Ok(Box::new(Gemm::of(node)?)),
            _ => Err(Failure::unsupported("only Conv and Gemm")),
        }
    }
}

kilim_plugin_abi::export_backend!(Tile);

//! What stands around the kernels of a backend on the host: the pool of threads, the cutting of work into pieces, the
//! access of kernels to memory, the registry of kernels, contexts and executables.
//!
//! [`CpuBackend`] finds a kernel through a [`registry::KernelRegistry`], which lists for each operator the candidates in
//! order of preference; the first that accepts the concrete node runs it. The kernels themselves are in other crates,
//! which register them.
//!
//! This crate is compiled for size in the browser's binary.

#![warn(missing_docs)]

mod backend;
mod context;
pub mod elements;
mod executable;
mod kernel;
pub mod registry;
pub mod rules;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod threads;
mod work;

#[cfg(any(test, feature = "testing"))]
pub use backend::{Alone, build_alone, run_candidate};
pub use backend::{CpuBackend, Prepared, Way};
pub use kernel::{Build, Io, Kernel, PackKey, Scratch, Table, Texts};
pub use threads::Threads;
#[cfg(all(threads, target_family = "wasm"))]
pub use threads::{help, set_workers};
pub use work::{By, CpuRun, Parts, Shared, by};

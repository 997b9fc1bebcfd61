//! A portable reference kernel for every operator, and what stands around the kernels of the backend
//! `cpu`: its contexts, executables, memory, and the registry.
//!
//! [`CpuBackend`] finds a kernel through a [`registry::KernelRegistry`], which lists for each
//! operator the candidates in order of preference; the first that accepts the concrete node runs
//! it. A family of operators is a module with a `register` function.
//!
//! This crate is compiled for size in the browser's binary. What is worth its bytes there is a
//! kernel of `kilim-simd-cpu`, which goes before the one of this crate.

pub mod common;
mod conv;
mod custom;
mod elementwise;
pub mod frame;
mod generate;
mod index;
mod learn;
mod matmul;
mod movement;
mod norm;
mod pool;
pub mod quant;
pub mod recurrent;
mod reduce;
pub mod registry;
mod resize;
mod sort;
mod text;

pub use frame::{Build, CpuBackend, CpuRun, Io, Kernel, PackKey, Texts, Threads};
pub use generate::stir;

/// Workers of a page that help, in WebAssembly with shared memory.
#[cfg(all(threads, target_family = "wasm"))]
pub mod threads {
    pub use crate::frame::threads::{help, set_workers};
}

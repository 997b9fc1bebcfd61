//! The `cpu` backend: a reference kernel for every operator, and SIMD kernels for the hot ones.
//!
//! [`CpuBackend`] finds a kernel through a [`registry::KernelRegistry`], which lists for each
//! operator the candidates in order of preference; the first that accepts the concrete node runs
//! it. A family of operators is a module with a `register` function.

mod common;
mod conv;
mod custom;
mod elementwise;
mod frame;
mod generate;
mod index;
mod learn;
mod matmul;
mod movement;
mod norm;
mod pool;
mod quant;
mod recurrent;
mod reduce;
mod resize;
mod simd;
mod sort;
mod text;

pub mod registry;

pub use frame::{Build, CpuBackend, CpuRun, Io, Kernel, PackKey, Texts};
pub use generate::stir;

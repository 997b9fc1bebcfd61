//! A portable reference kernel for every operator.
//!
//! A family of operators is a module with a `register` function, and [`add_reference`] registers them all. What stands
//! around the kernels is `kilim-host`.
//!
//! This crate is compiled for size in the browser's binary. What is worth its bytes there is a
//! kernel of `kilim-simd-cpu`, which goes before the one of this crate.

#![warn(missing_docs)]

pub mod attention;
mod common;
mod conv;
mod custom;
mod elementwise;
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
mod resize;
mod sort;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod text;

use kilim_host::CpuBackend;
use kilim_host::registry::KernelRegistry;

pub use generate::stir;

/// The backend `cpu` with the kernels of this crate alone.
pub fn backend() -> CpuBackend {
    let mut registry = KernelRegistry::default();
    add_reference(&mut registry);
    CpuBackend::with_registry(registry, "portable")
}

/// Adds every kernel of this crate behind those that are there.
pub fn add_reference(registry: &mut KernelRegistry) {
    elementwise::register(registry);
    movement::register(registry);
    reduce::register(registry);
    norm::register(registry);
    conv::register(registry);
    matmul::register(registry);
    attention::register(registry);
    pool::register(registry);
    quant::register(registry);
    recurrent::register(registry);
    resize::register(registry);
    index::register(registry);
    sort::register(registry);
    generate::register(registry);
    text::register(registry);
    custom::register(registry);
    learn::register(registry);
}

//! SIMD kernels of the backend `cpu` for the hot operators, preferred to the reference kernels
//! where they accept a node.
//!
//! A family of operators is a module with a `register` function. [`isa`] has the instruction sets.

mod arg;
mod attention;
mod binary;
mod cast;
mod conv;
mod gemm;
mod isa;
mod math;
mod matmul;
mod memory;
mod pool;
mod quantized;
mod recurrent;
mod reduce;
pub mod roofline;
mod rotary;
mod rows;
#[cfg(test)]
mod testing;
mod transpose;
mod unary;
mod window;

pub use kilim_host::CpuBackend;
use kilim_host::registry::KernelRegistry;
pub use kilim_reference_cpu::stir;

/// The backend `cpu` with every kernel: those of this crate first, then the reference kernels.
pub fn backend() -> CpuBackend {
    CpuBackend::with_registry(kernels(), isa::Isa::best().name())
}

/// Every kernel of [`backend`].
pub fn kernels() -> KernelRegistry {
    let mut registry = KernelRegistry::default();
    registry.begin("SIMD");
    attention::register(&mut registry);
    conv::register(&mut registry);
    matmul::register(&mut registry);
    pool::register(&mut registry);
    quantized::register(&mut registry);
    recurrent::register(&mut registry);
    unary::register(&mut registry);
    binary::register(&mut registry);
    cast::register(&mut registry);
    rows::register(&mut registry);
    rotary::register(&mut registry);
    reduce::register(&mut registry);
    arg::register(&mut registry);
    registry.begin("reference");
    kilim_reference_cpu::add_reference(&mut registry);
    registry
}

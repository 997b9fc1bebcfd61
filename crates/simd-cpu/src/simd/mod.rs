//! SIMD kernels, preferred to the reference kernels where they accept a node.

mod binary;
mod conv;
mod gemm;
pub(crate) mod isa;
mod math;
mod matmul;
mod memory;
mod pool;
mod quantized;
mod reduce;
mod rows;
#[cfg(test)]
mod testing;
mod transpose;
mod unary;
mod window;

use crate::registry::KernelRegistry;

pub fn register(registry: &mut KernelRegistry) {
    conv::register(registry);
    matmul::register(registry);
    pool::register(registry);
    quantized::register(registry);
    unary::register(registry);
    binary::register(registry);
    rows::register(registry);
    reduce::register(registry);
}

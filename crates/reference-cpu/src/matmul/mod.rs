//! Matrix products.

mod einsum;
mod experts;
mod matrices;
mod packed;
pub mod product;

use kilim_core::ops::{Det, Einsum, ExpertMatMul, ExpertMatMulNBits, Gemm, MatMul, MatMulNBits};
use kilim_host::registry::KernelRegistry;
use kilim_host::rules;

pub fn register(registry: &mut KernelRegistry) {
    registry.add::<MatMul>(matrices::accepts_matmul, matrices::build_matmul);
    registry.add::<Gemm>(matrices::accepts_gemm, matrices::build_gemm);
    registry.add::<MatMulNBits>(rules::reals, packed::build);
    registry.add::<ExpertMatMul>(rules::reals, experts::build);
    registry.add::<ExpertMatMulNBits>(rules::reals, experts::build_packed);
    registry.add::<Einsum>(einsum::accepts, einsum::build);
    registry.add::<Det>(rules::reals, matrices::build_det);
}

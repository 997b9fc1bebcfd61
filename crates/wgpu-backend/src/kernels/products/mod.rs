//! Sums of products: matrices, convolutions, Einstein summation, attention.

mod attention;
mod conv;
mod einsum;
pub(crate) mod matmul;
mod tile;

use crate::kernels::Kernels;

pub(crate) fn register(kernels: &mut Kernels) {
    matmul::register(kernels);
    conv::register(kernels);
    einsum::register(kernels);
    attention::register(kernels);
}

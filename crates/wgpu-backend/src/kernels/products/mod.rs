//! Sums of products: matrices, convolutions, Einstein summation, attention.

mod attention;
mod conv;
mod einsum;
mod experts;
pub(crate) mod matmul;
mod packed;
mod tile;

use crate::kernels::Kernels;

pub(crate) fn register(kernels: &mut Kernels) {
    matmul::register(kernels);
    packed::register(kernels);
    experts::register(kernels);
    conv::register(kernels);
    einsum::register(kernels);
    attention::register(kernels);
}

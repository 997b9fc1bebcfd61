//! Functions of one element of each operand.

mod binary;
pub(crate) mod cast;
mod select;
mod unary;

use crate::kernels::Kernels;

pub(crate) fn register(kernels: &mut Kernels) {
    unary::register(kernels);
    binary::register(kernels);
    cast::register(kernels);
    select::register(kernels);
}

//! Functions of one element of each operand, and of pairs of elements.

mod binary;
pub(crate) mod cast;
mod rotary;
mod select;
mod unary;

use crate::kernels::Kernels;

pub(crate) fn register(kernels: &mut Kernels) {
    unary::register(kernels);
    binary::register(kernels);
    cast::register(kernels);
    select::register(kernels);
    rotary::register(kernels);
}

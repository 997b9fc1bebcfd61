//! Windows that slide over tensors, resampling, and sampling by a grid.

mod col2im;
mod grid_sample;
mod pool;
mod resize;

use crate::kernels::Kernels;

pub(crate) fn register(kernels: &mut Kernels) {
    pool::register(kernels);
    col2im::register(kernels);
    resize::register(kernels);
    grid_sample::register(kernels);
}

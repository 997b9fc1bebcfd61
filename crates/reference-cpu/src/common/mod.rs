//! What several families of kernels use.

pub mod activation;
pub mod codec;
pub mod real;
pub mod ring;
pub mod rules;
pub mod walk;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use codec::{BLOCK, Class, Codec, Wide};
pub use real::Real;
pub use ring::Ring;
pub use walk::{Span, Walk, broadcast_strides, contiguous_strides};

/// True for what is not a number; of integers nothing is that.
#[expect(
    clippy::eq_op,
    reason = "only what is not a number differs from itself"
)]
pub fn is_nan<T: PartialEq>(v: T) -> bool {
    v != v
}

//! What several families of kernels use.

pub mod activation;
pub mod real;
pub mod ring;
pub(crate) mod room;

pub use real::Real;
pub use ring::Ring;

/// True for what is not a number; of integers nothing is that.
#[expect(
    clippy::eq_op,
    reason = "only what is not a number differs from itself"
)]
pub fn is_nan<T: PartialEq>(v: T) -> bool {
    v != v
}

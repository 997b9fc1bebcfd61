//! Operators whose output shape depends on the data itself.

mod compress;
mod non_max_suppression;
mod non_zero;
mod unique;

pub use compress::Compress;
pub use non_max_suppression::{NonMaxSuppression, non_max_suppression};
pub use non_zero::NonZero;
pub use unique::{Unique, UniqueParts};

//! Cases with stored inputs and references.

pub mod manifest;
pub mod testset;
pub mod verdict;

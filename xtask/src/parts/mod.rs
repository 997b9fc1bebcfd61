//! Cuts a binary into a core that every page fetches, and parts that are fetched when a model or a backend needs them. What runs of
//! given models entered decides, and the crates that functions are of.

mod binary;
mod count;
mod owners;
mod split;

pub use binary::Binary;
pub use count::counting;
pub use owners::{PARTS, Profile, owners, read_profile};
pub use split::{Split, embed};

#[cfg(test)]
mod tests;

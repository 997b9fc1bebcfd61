//! Cuts a binary into a core that every page fetches, and parts that are fetched when a model or a backend needs them. What runs of
//! given models passed decides, and the crates that functions are of. What those runs did not pass of a function of the core is a function
//! of its own, which may belong to a part. Data goes with the functions that refer to it.

mod binary;
mod callers;
mod clusters;
mod cold;
mod count;
mod data;
mod followers;
mod layout;
mod live;
mod moves;
mod needs;
mod owners;
mod points;
mod profile;
mod split;
mod types;

pub use binary::Binary;
pub use cold::outline;
pub use count::counting;
pub use followers::{follow, hidden};
pub use layout::{Layout, without_relocations};
pub use needs::needs;
pub use owners::{PARTS, owners};
pub use profile::Profile;
pub use split::{Split, embed};

#[cfg(test)]
mod tests;

//! Backends in libraries of their own, behind the C interface of `include/kilim_backend.h`.
//!
//! `search` finds and opens a library, `backend` makes a [`kilim_core::Backend`] of it, `executable`
//! runs its stages, `memory` has the blocks that these lie in; `trial` finds out which libraries crash; `encode` puts nodes and stages into C, `attributes` what an operator says of itself.
#![cfg(not(target_arch = "wasm32"))]

mod attributes;
mod backend;
mod encode;
mod executable;
mod library;
mod memory;
mod search;
mod trial;

pub use attributes::attributes;
pub use search::{PATH_VARIABLE, file_names, find};

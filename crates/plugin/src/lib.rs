//! Backends in libraries of their own, behind the C interface of `include/kilim_backend.h`.
//!
//! `search` finds and opens a library, `trial` finds out which libraries crash. `backend` makes a [`kilim_core::Backend`] of
//! one: `description` is what it says of itself, `operators` what it brings, `context` a session's part of it, `executable`
//! runs stages, `memory` has the blocks that these lie in. `encode` puts nodes and stages into C, `attributes` what an operator
//! says of itself.
#![cfg(not(target_arch = "wasm32"))]

mod attributes;
mod backend;
mod context;
mod description;
mod encode;
mod executable;
mod library;
mod memory;
mod operators;
mod search;
mod trial;

pub use attributes::attributes;
pub use search::{PATH_VARIABLE, file_names, find, list, searched};

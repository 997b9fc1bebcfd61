//! Backends and importers in libraries of their own, behind the C interface of `include/kilim_backend.h`.
//!
//! `search` finds and opens a library, `opened` is one that the loader has, `trial` finds out which libraries crash. `backend` makes a [`kilim_core::Backend`] of
//! one: `description` is what it says of itself, `options` what users can ask of it, `operators` what it brings, `rewrite` what it makes of connected nodes, `context` a
//! session's part of it, `executable` runs stages, `host` has what these share with the host, `memory` has the blocks that these lie in, `kept` the tensors that outlive
//! them, `user_memory` those in memory of the user's. `encode` puts nodes into C, `stage` stages, `attributes` what an operator
//! says of itself. `decode` reads what a library
//! gives.
//!
//! `importer` is for the libraries of `include/kilim_importer.h`: it makes a [`kilim_formats::Importer`] of one.
#![cfg(not(target_arch = "wasm32"))]

mod attributes;
mod backend;
mod choice;
mod context;
mod decode;
mod description;
mod encode;
mod executable;
mod host;
mod importer;
mod kept;
mod library;
mod memory;
mod opened;
mod operators;
mod options;
mod rewrite;
mod schedule;
mod search;
mod stage;
mod trial;
mod user_memory;

pub use attributes::attributes;
pub use importer::LibraryImporter;
pub use search::{PATH_VARIABLE, file_names, find, importers, list, searched};

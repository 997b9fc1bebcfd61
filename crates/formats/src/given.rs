//! Models that are read with files beside them, for the tests of the formats.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;

use crate::{GivenFiles, ModelFile, load_model};

/// Reads a model of this name that was given with files; it is only looked at where `structure` says so.
pub fn import(name: &str, model: &[u8], files: &[(&str, &[u8])], structure: bool) -> Result<Graph> {
    let mut given = HashMap::new();
    for (name, bytes) in files {
        given.insert((*name).to_string(), Arc::new(AlignedBytes::copy_of(bytes)?));
    }
    let bytes = Arc::new(AlignedBytes::copy_of(model)?);
    let files = GivenFiles::new(given);
    let source = ModelFile::new(bytes, name)
        .with_external(&files)
        .with_structure_only(structure);
    load_model(&source, &Limits::default())
}

/// The error of a model that is refused.
///
/// # Panics
/// Where it was read.
pub fn refused(made: Result<Graph>) -> Error {
    match made {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    }
}

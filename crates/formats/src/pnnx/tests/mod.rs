//! Networks: whole, cut, overwritten, without weights. `tests/references/` has what networks give.

mod garbage;
mod structure;

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_test_support::archive::Cases;

use crate::{GivenFiles, ModelFile, load_model};

fn file(case: &str, name: &str) -> Vec<u8> {
    Cases::of("pnnx").file(&format!("{case}/{name}")).to_vec()
}

/// The text of a network with these operators.
fn network(operators: &[&str]) -> String {
    let lines = operators.iter().map(|line| format!("{line}\n"));
    format!("7767517\n{} 9\n", operators.len()) + &lines.collect::<String>()
}

/// Reads a network that was given with files.
fn import_with(network: &[u8], files: &[(&str, &[u8])]) -> Result<Graph> {
    let mut given = HashMap::new();
    for (name, bytes) in files {
        given.insert((*name).to_string(), Arc::new(AlignedBytes::copy_of(bytes)?));
    }
    let bytes = Arc::new(AlignedBytes::copy_of(network)?);
    let files = GivenFiles::new(given);
    let source = ModelFile::new(bytes, "m.pnnx.param").with_external(&files);
    load_model(&source, &Limits::default())
}

/// Reads a network that is only looked at.
fn structure(network: &str) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(network.as_bytes())?);
    let source = ModelFile::new(bytes, "m.pnnx.param").with_structure_only(true);
    load_model(&source, &Limits::default())
}

fn refused(made: Result<Graph>) -> Error {
    match made {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    }
}

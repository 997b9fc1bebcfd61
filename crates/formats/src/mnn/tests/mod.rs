//! Models that MNN's converter wrote: whole, cut, overwritten, changed. `tests/references/` has what they give.

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

fn model(case: &str) -> Vec<u8> {
    Cases::of("mnn").file(&format!("{case}/model.mnn")).to_vec()
}

/// Reads a model that was given with files.
fn import_with(model: &[u8], files: &[(&str, &[u8])], structure: bool) -> Result<Graph> {
    let mut given = HashMap::new();
    for (name, bytes) in files {
        given.insert((*name).to_string(), Arc::new(AlignedBytes::copy_of(bytes)?));
    }
    let bytes = Arc::new(AlignedBytes::copy_of(model)?);
    let files = GivenFiles::new(given);
    let source = ModelFile::new(bytes, "m.mnn")
        .with_external(&files)
        .with_structure_only(structure);
    load_model(&source, &Limits::default())
}

fn import(model: &[u8]) -> Result<Graph> {
    import_with(model, &[], false)
}

fn refused(made: Result<Graph>) -> Error {
    match made {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    }
}

//! Models that MNN's converter wrote: whole, cut, overwritten, changed. `tests/references/` has what they give.

mod garbage;
mod structure;

use kilim_core::error::Result;
use kilim_core::graph::Graph;
use kilim_test_support::archive::Cases;

use crate::given::{self, refused};

fn model(case: &str) -> Vec<u8> {
    Cases::of("mnn").file(&format!("{case}/model.mnn")).to_vec()
}

/// Reads a model that was given with files.
fn import_with(model: &[u8], files: &[(&str, &[u8])], structure: bool) -> Result<Graph> {
    given::import("m.mnn", model, files, structure)
}

fn import(model: &[u8]) -> Result<Graph> {
    import_with(model, &[], false)
}

//! Networks: whole, cut, overwritten. `tests/references/` has what networks give.

mod structure;

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_test_support::archive::Cases;

use crate::garbage::damaged;
use crate::{ModelFile, load_model};

fn file(case: &str) -> Vec<u8> {
    Cases::of("tengine")
        .file(&format!("{case}/model.tmfile"))
        .to_vec()
}

fn import(network: &[u8]) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(network)?);
    load_model(&ModelFile::new(bytes, "m.tmfile"), &Limits::default())
}

fn refused(made: Result<Graph>) -> Error {
    match made {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    }
}

#[test]
fn truncated_and_garbled_networks_are_errors() {
    for case in ["products", "sampling", "movement", "first_version"] {
        damaged(&file(case), 16, |network| {
            let _ = import(network);
        });
    }
}

//! Networks: whole, cut, overwritten. `tests/references/` has what networks give.

mod structure;

use kilim_core::error::Result;
use kilim_core::graph::Graph;
use kilim_test_support::archive::Cases;

use crate::garbage::damaged;
use crate::given::{self, refused};

fn file(case: &str) -> Vec<u8> {
    Cases::of("tengine")
        .file(&format!("{case}/model.tmfile"))
        .to_vec()
}

fn import(network: &[u8]) -> Result<Graph> {
    given::import("m.tmfile", network, &[], false)
}

#[test]
fn truncated_and_garbled_networks_are_errors() {
    for case in ["products", "sampling", "movement", "first_version"] {
        damaged(&file(case), 16, |network| {
            let _ = import(network);
        });
    }
}

//! Networks: whole, cut, overwritten, without weights. `tests/references/` has what networks give.

mod garbage;
mod structure;

use kilim_core::error::Result;
use kilim_core::graph::Graph;
use kilim_test_support::archive::Cases;

use crate::given::{self, refused};

fn file(case: &str, name: &str) -> Vec<u8> {
    Cases::of("tnn").file(&format!("{case}/{name}")).to_vec()
}

/// The text of a network with one input and these layers.
fn network(input: &str, outputs: &str, layers: &[&str]) -> String {
    let lines = ["1 1 1 4206624772", input, "", outputs, ""].into_iter();
    let lines = lines.chain(layers.iter().copied());
    lines.map(|line| format!("\"{line} ,\"\n")).collect()
}

/// Reads a network that was given with files.
fn import_with(network: &[u8], files: &[(&str, &[u8])]) -> Result<Graph> {
    given::import("m.tnnproto", network, files, false)
}

/// Reads a network that is only looked at.
fn structure(network: &str) -> Result<Graph> {
    given::import("m.tnnproto", network.as_bytes(), &[], true)
}

//! Networks: whole, cut, overwritten, without weights. `tests/references/` has what networks give.

mod garbage;
mod structure;

use kilim_core::error::Result;
use kilim_core::graph::Graph;
use kilim_test_support::archive::Cases;

use crate::given::{self, refused};

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
    given::import("m.pnnx.param", network, files, false)
}

/// Reads a network that is only looked at.
fn structure(network: &str) -> Result<Graph> {
    given::import("m.pnnx.param", network.as_bytes(), &[], true)
}

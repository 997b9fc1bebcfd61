//! Containers: whole, cut, overwritten, and what is refused of them. `tests/references/` has what decoders give.

mod container;
mod garbage;
mod structure;

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{Error, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_test_support::archive::Cases;

use crate::{ModelFile, load_model};

/// A decoder of `tests/references/gguf.zip`.
fn decoder(name: &str) -> Vec<u8> {
    let cases = Cases::of("gguf");
    cases.file(&format!("{name}/model.gguf")).to_vec()
}

fn import(bytes: &[u8]) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    load_model(&ModelFile::new(bytes, "m"), &Limits::default())
}

fn refused(made: Result<Graph>) -> Error {
    match made {
        Ok(_) => panic!("it was read"),
        Err(error) => error,
    }
}

/// A file with another text, as long, in place of the first one that is `from`.
fn with(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|part| part == from);
    let mut bytes = bytes.to_vec();
    bytes[at.expect("the file has it")..][..to.len()].copy_from_slice(to);
    bytes
}

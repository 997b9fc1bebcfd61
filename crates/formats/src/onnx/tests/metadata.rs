//! What files and drafts say of themselves.

use std::sync::Arc;

use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::{Graph, Metadata};
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Limits, Shape};

use super::writer::{Bytes, bytes, int, join, text};
use crate::onnx::Draft;
use crate::{ModelFile, load_model};

fn import(bytes: &[u8]) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    load_model(&ModelFile::new(bytes, "m"), &Limits::default())
}

/// A file with an empty graph of the name `net`, and these fields.
fn file(graph: &[Bytes], more: &[Bytes]) -> Bytes {
    let graph = join(&[text(2, "net"), join(graph)]);
    let opset = bytes(8, &int(2, 21));
    join(&[int(1, 8), bytes(7, &graph), opset, join(more)])
}

fn entry(key: &[u8], value: &[u8]) -> Bytes {
    bytes(14, &join(&[bytes(1, key), bytes(2, value)]))
}

#[test]
fn fields_and_entries_are_read() {
    let file = file(
        &[text(10, "of the graph")],
        &[
            text(2, "pytorch"),
            text(3, "2.6"),
            text(4, "org.example"),
            int(5, 12),
            text(6, "of the model"),
            entry(b"names", b"{0: 'cat'}"),
            entry(b"author", b"\xffme"),
            entry(b"", b"nameless"),
            entry(b"names", b"{}"),
        ],
    );
    let graph = import(&file).expect("a model");
    let fields: Vec<_> = graph.metadata.fields().collect();
    let known = [
        ("name", "net"),
        ("description", "of the model"),
        ("producer", "pytorch"),
        ("producer version", "2.6"),
        ("domain", "org.example"),
        ("version", "12"),
    ];
    assert_eq!(fields, known);
    let known = [
        ("names", "{0: 'cat'}"),
        ("author", "\u{fffd}me"),
        ("names", "{}"),
    ];
    let known = known.map(|(key, text)| (key.to_string(), text.to_string()));
    assert_eq!(graph.metadata.entries, known, "in the order of the file");
}

#[test]
fn the_graph_describes_a_model_that_does_not() {
    let graph = import(&file(&[text(10, "of the graph")], &[])).expect("a model");
    assert_eq!(graph.metadata.description, "of the graph");
    assert_eq!(graph.metadata.version, "", "none is no number");
}

#[test]
fn so_many_entries_and_no_more() {
    let full = entry(b"k", b"").repeat(1 << 16);
    let read = import(&file(&[], std::slice::from_ref(&full))).expect("a model");
    assert_eq!(read.metadata.entries.len(), 1 << 16);
    let error = import(&file(&[], &[full, entry(b"k", b"")]));
    assert_eq!(error.expect_err("too many").code(), ErrorCode::Limit);
    let wrong = import(&file(&[], &[int(14, 3)]));
    assert_eq!(wrong.expect_err("garbled").code(), ErrorCode::InvalidModel);
}

#[test]
fn a_draft_says_what_its_importer_says() -> Result<()> {
    let mut draft = Draft::new("mine");
    draft.input("x", DType::F32, Shape(Vec::new()))?;
    draft.output("x")?;
    let nothing = Arc::new(AlignedBytes::copy_of(&[])?);
    let file = ModelFile::new(nothing, "a.mine");
    let silent = draft.graph(&file, &Limits::default())?;
    assert_eq!(*silent.metadata, Metadata::default());
    let mut metadata = Metadata {
        name: "sample".to_string(),
        version: "v2".to_string(),
        ..Metadata::default()
    };
    metadata.add("labels", "cat, dog")?;
    draft.set_metadata(metadata.clone());
    let graph = draft.graph(&file, &Limits::default())?;
    assert_eq!(*graph.metadata, metadata);
    assert_eq!(graph.name, "mine");
    Ok(())
}

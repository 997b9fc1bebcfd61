//! What files say of themselves.

use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Metadata;
use kilim_test_support::tflite::{Field, described, refer, tensor, text};

use super::import;

/// A file that passes `x` on and has these buffers, named so.
fn file(named: &[(&str, &[u8])]) -> Vec<u8> {
    let buffers: Vec<_> = named.iter().map(|(_, data)| data.to_vec()).collect();
    let entries = named.iter().zip(1..);
    let entries = entries.map(|((name, _), at)| Field::Table(vec![text(name), Field::I32(at)]));
    with(&buffers, Field::Tables(entries.collect()))
}

fn with(buffers: &[Vec<u8>], metadata: Field) -> Vec<u8> {
    described(&[tensor("x", &[2])], &[0], &[0], &[], buffers, metadata)
}

fn said(bytes: &[u8]) -> Result<Metadata> {
    Ok(import(bytes)?.metadata.as_ref().clone())
}

/// What the support library writes, as a FlatBuffer.
fn support() -> Vec<u8> {
    let table = Field::Table(vec![
        text("Flowers"),
        text("Names flowers"),
        text("v1"),
        Field::None,
        text("A Gardener"),
        text("MIT"),
    ]);
    let mut bytes = vec![0; 8];
    bytes[4..].copy_from_slice(b"M001");
    refer(&mut bytes, 0, &table);
    bytes
}

fn entries(metadata: &Metadata) -> Vec<(&str, &str)> {
    let entries = metadata.entries.iter();
    entries.map(|(k, t)| (k.as_str(), t.as_str())).collect()
}

#[test]
fn buffers_are_read_by_their_names() {
    let runtime = b"1.14.0\0\0\0\0\0\0\0\0\0\0";
    let bytes = file(&[
        ("min_runtime_version", runtime),
        ("TFLITE_METADATA", &support()),
        ("CONVERSION_METADATA", &[0xff; 90]),
    ]);
    let metadata = said(&bytes).expect("a model");
    let fields: Vec<_> = metadata.fields().collect();
    let known = [
        ("name", "Flowers"),
        ("description", "Names flowers"),
        ("version", "v1"),
    ];
    assert_eq!(fields, known);
    let known = [
        ("min_runtime_version", "1.14.0"),
        ("author", "A Gardener"),
        ("license", "MIT"),
        ("CONVERSION_METADATA", "[90 bytes]"),
    ];
    assert_eq!(entries(&metadata), known);
}

#[test]
fn a_file_without_them_has_its_description() {
    let metadata = said(&file(&[])).expect("a model");
    assert_eq!(
        metadata.fields().collect::<Vec<_>>(),
        [("description", "test")]
    );
    assert_eq!(metadata.entries, []);
}

#[test]
fn what_is_garbled_counts_for_nothing() {
    let whole = support();
    for len in 0..whole.len() {
        let metadata = said(&file(&[("TFLITE_METADATA", &whole[..len])])).expect("a model");
        assert!(metadata.description == "test" || metadata.description == "Names flowers");
    }
    // A buffer that is not there.
    let entry = Field::Table(vec![text("note"), Field::I32(7)]);
    let metadata = said(&with(&[], Field::Tables(vec![entry]))).expect("a model");
    assert_eq!(metadata.entries, []);
}

#[test]
fn a_small_file_cannot_fill_the_memory() {
    // A text of 64 kB that each of 65536 entries has as its name: 4 GB.
    let name = "n".repeat(1 << 16);
    let entry = Field::Table(vec![text(&name), Field::I32(0)]);
    let error = said(&with(&[], Field::Repeated(1 << 16, Box::new(entry))));
    assert_eq!(error.expect_err("too much").code(), ErrorCode::InvalidModel);
    // A short text of a buffer that each has.
    let entry = Field::Table(vec![text("n"), Field::I32(1)]);
    let many = Field::Repeated((1 << 16) + 1, Box::new(entry));
    let error = said(&with(&[vec![b'a'; 2]], many));
    assert!(matches!(
        error.expect_err("too many").code(),
        ErrorCode::Limit | ErrorCode::InvalidModel
    ));
}

use super::{decoder, import};
use crate::gguf::with_header;

/// Bytes of the files that say what is in them, about.
const HEADER: usize = 2000;

#[test]
fn truncated_files_are_errors() {
    let bytes = decoder("llama-f32");
    for len in (0..bytes.len()).step_by(31).chain(0..200) {
        assert!(import(&bytes[..len]).is_err(), "{len}");
    }
}

#[test]
fn garbled_headers_never_panic() {
    for name in [
        "llama-bf16",
        "llama-supers",
        "gemma2-f16",
        "phi3-f16",
        "lfm2-f16",
        "bert-f16",
    ] {
        let mut bytes = decoder(name);
        for at in (0..HEADER.min(bytes.len())).step_by(7) {
            for value in [0, 0xff, !bytes[at], bytes[at] ^ 1] {
                let old = std::mem::replace(&mut bytes[at], value);
                let _ = import(&bytes);
                bytes[at] = old;
            }
        }
    }
}

#[test]
fn a_header_is_found_in_as_much_of_a_file_as_it_needs() {
    // The header is longer than the first bytes that are read of a large file.
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    let text = "x".repeat(3 << 20);
    for count in [0u64, 1] {
        bytes.extend(count.to_le_bytes());
    }
    bytes.extend(1u64.to_le_bytes());
    bytes.push(b'k');
    bytes.extend(8u32.to_le_bytes());
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(16 << 20, 0);
    let read = |to: &mut [u8]| {
        to.copy_from_slice(&bytes[..to.len()]);
        Ok(())
    };
    let found = with_header(bytes.len() as u64, &read, |header| {
        Ok(header.metadata.text("k")?.map(str::len))
    });
    assert_eq!(found.expect("a header"), Some(text.len()));
    let cut = with_header(2 << 20, &read, |_| Ok(()));
    assert!(cut.is_err());
}

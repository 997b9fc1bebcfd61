use kilim_core::error::{ErrorCode, Result};

use super::{decoder, import, refused, with};
use crate::gguf::{Header, Value};

/// The beginning of a file of version 3 with no tensors and these keys, each with its type and bytes.
fn header(keys: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(0u64.to_le_bytes());
    bytes.extend((keys.len() as u64).to_le_bytes());
    for (key, of, value) in keys {
        bytes.extend((key.len() as u64).to_le_bytes());
        bytes.extend(key.as_bytes());
        bytes.extend(of.to_le_bytes());
        bytes.extend(*value);
    }
    bytes
}

#[test]
fn values_of_every_type_are_read() {
    let list = [
        [4, 0, 0, 0].as_slice(),
        &[2, 0, 0, 0, 0, 0, 0, 0],
        &[7, 0, 0, 0, 8, 0, 0, 0],
    ]
    .concat();
    let bytes = header(&[
        ("u8", 0, &[200]),
        ("i8", 1, &[200]),
        ("u16", 2, &[1, 255]),
        ("i16", 3, &[1, 255]),
        ("u32", 4, &[0, 0, 0, 255]),
        ("i32", 5, &[0, 0, 0, 255]),
        ("f32", 6, &1.5f32.to_le_bytes()),
        ("bool", 7, &[1]),
        ("text", 8, &[2, 0, 0, 0, 0, 0, 0, 0, b'h', b'i']),
        ("list", 9, &list),
        ("u64", 10, &u64::MAX.to_le_bytes()),
        ("i64", 11, &(-5i64).to_le_bytes()),
        ("f64", 12, &2.5f64.to_le_bytes()),
    ]);
    let header = Header::read(&bytes).expect("a header");
    let int = |key| match header.metadata.get(key) {
        Some(Value::Int(n)) => n,
        other => panic!("{key}: {other:?}"),
    };
    let ints = ["u8", "i8", "u16", "i16", "u32", "i32", "i64"].map(int);
    assert_eq!(
        ints,
        [200, -56, 0xff01, -255, 0xff00_0000, -0x0100_0000, -5]
    );
    assert_eq!(header.metadata.float("f32").expect("a float"), Some(1.5));
    assert_eq!(header.metadata.float("f64").expect("a float"), Some(2.5));
    assert_eq!(header.metadata.flag("bool").expect("a flag"), Some(true));
    assert_eq!(header.metadata.text("text").expect("a text"), Some("hi"));
    assert_eq!(
        header.metadata.counts("list", 2).expect("counts"),
        Some(vec![7, 8])
    );
    assert_eq!(
        header.metadata.counts("u8", 2).expect("counts"),
        Some(vec![200, 200])
    );
    assert!(header.metadata.counts("list", 3).is_err());
    assert!(matches!(
        header.metadata.get("u64"),
        Some(Value::Large(u64::MAX))
    ));
    assert!(header.metadata.count("u64").is_err() && header.metadata.count("i8").is_err());
    assert!(header.metadata.text("u8").is_err() && header.metadata.float("u8").is_err());
    let described = header.metadata.described().expect("texts");
    let known = [
        ("u8", "200"),
        ("i8", "-56"),
        ("u16", "65281"),
        ("i16", "-255"),
        ("u32", "4278190080"),
        ("i32", "-16777216"),
        ("f32", "1.5"),
        ("bool", "true"),
        ("text", "hi"),
        ("list", "[2 values]"),
        ("u64", "18446744073709551615"),
        ("i64", "-5"),
        ("f64", "2.5"),
    ];
    let known = known.map(|(key, text)| (key.to_string(), text.to_string()));
    assert_eq!(described.entries, known, "in the order of the file");
}

#[test]
fn a_model_says_what_its_file_says() {
    let graph = import(&decoder("llama-f32")).expect("a model");
    let metadata = &graph.metadata;
    assert_eq!(metadata.entry("general.architecture"), Some("llama"));
    let name = [8u8, 0, 0, 0, 0, 0, 0, 0].into_iter().chain(*b"Sample 1");
    let name: Vec<u8> = name.collect();
    let bytes = header(&[
        ("general.name", 8, &name),
        ("small", 6, &1e-5f32.to_le_bytes()),
    ]);
    let header = Header::read(&bytes).expect("a header");
    let described = header.metadata.described().expect("texts");
    assert_eq!(described.name, "Sample 1");
    assert_eq!(described.entry("small"), Some("0.00001"));
}

#[test]
fn counts_that_the_file_cannot_hold_are_errors() {
    let many = [[8, 0, 0, 0].as_slice(), &u64::MAX.to_le_bytes()].concat();
    let deep: Vec<u8> = [9u32, 1, 0]
        .repeat(40)
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    for (of, value) in [(9, &many[..]), (9, &deep), (8, &[255; 8]), (13, &[0; 8])] {
        let bytes = header(&[("key", of, value)]);
        let error = Header::read(&bytes).err().expect("an error");
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{of}");
    }
    let twice = header(&[("key", 0, &[1]), ("key", 0, &[1])]);
    assert!(Header::read(&twice).is_err());
    let alignment = header(&[("general.alignment", 4, &[3, 0, 0, 0])]);
    assert!(Header::read(&alignment).is_err());
}

#[test]
fn other_versions_and_byte_orders_are_refused() {
    let bytes = decoder("llama-f32");
    let versions: [(&[u8], &str); 3] = [
        (b"GGUF\x01\0\0\0", "version 1"),
        (b"GGUF\x09\0\0\0", "version 9"),
        (b"GGUF\0\0\0\x03", "highest byte first"),
    ];
    for (begin, says) in versions {
        let error = refused(import(&with(&bytes, b"GGUF\x03\0\0\0", begin)));
        assert_eq!(error.code(), ErrorCode::Unsupported);
        assert!(error.message().contains(says), "{error}");
    }
    // Version 2 differs in nothing that little-endian files show.
    assert!(import(&with(&bytes, b"GGUF\x03\0\0\0", b"GGUF\x02\0\0\0")).is_ok());
}

#[test]
fn tensors_lie_beyond_four_gigabytes() -> Result<()> {
    let far: u64 = 5 << 30;
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3u32.to_le_bytes());
    for count in [1u64, 0] {
        bytes.extend(count.to_le_bytes());
    }
    bytes.extend(1u64.to_le_bytes());
    bytes.push(b'w');
    // One dimension of eight elements of `float32`.
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(8u64.to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend(far.to_le_bytes());
    let start = (bytes.len() as u64).next_multiple_of(32);
    let header = Header::read(&bytes)?;
    let data = header.tensor("w").map(|info| info.data.clone());
    assert_eq!(data, Some(start + far..start + far + 32));
    Ok(())
}

//! Blocks of every packed type, held against the numbers that ggml's own package makes of them (`tests/references/ggml.zip`).

use kilim_core::Tensor;
use kilim_core::error::ErrorCode;
use kilim_test_support::archive::Cases;

use super::{Form, TYPES, unpacked};

const ROWS: usize = 2;

#[test]
fn types_are_sorted() {
    assert_eq!(TYPES.misplaced(), None);
}

/// Number `i` of packed bytes, lowest bits first.
fn number(bytes: &[u8], i: usize, bits: usize) -> f64 {
    let byte = bytes[i * bits / 8] >> (i * bits % 8);
    f64::from(byte & (u8::MAX >> (8 - bits)))
}

#[test]
fn packed_numbers_are_those_of_ggml() {
    let cases = Cases::of("ggml");
    let mut tried = 0;
    for (_, of) in TYPES.0 {
        let Form::Packed(_) = of.form else { continue };
        let blocks = cases.file(&format!("{}/blocks.bin", of.name));
        let expected = cases.file(&format!("{}/numbers.bin", of.name));
        let columns = blocks.len() / of.bytes / ROWS * of.numbers;
        let raw = Tensor::from_slice(&[blocks.len()], blocks).expect("bytes");
        let packed = unpacked(of, &raw, [ROWS, columns]).expect(of.name);
        let numbers = packed.numbers.as_slice::<u8>().expect("bytes");
        let scales = packed.scales.as_slice::<f32>().expect("scales");
        let zeros = packed
            .zeros
            .as_ref()
            .map(|z| z.as_slice::<f32>().expect("zeros"));
        let (mut i, middle) = (0, f64::from(1u16 << (packed.bits - 1)));
        let largest = expected
            .chunks_exact(4)
            .map(float)
            .fold(0.0, |a, b| b.abs().max(a));
        for want in expected.chunks_exact(4).map(float) {
            let at = i / packed.block;
            let zero = zeros.map_or(middle, |zeros| f64::from(zeros[at]));
            let made = (number(numbers, i, packed.bits) - zero) * f64::from(scales[at]);
            // A zero point is rounded to `float32`.
            assert!(
                (made - want).abs() <= largest * 1e-6,
                "{} {i}: {made}, {want}",
                of.name
            );
            i += 1;
        }
        assert_eq!(i, ROWS * columns, "{}", of.name);
        tried += 1;
    }
    assert_eq!(tried, 22);
}

fn float(bytes: &[u8]) -> f64 {
    let bytes = bytes.try_into().expect("four bytes");
    f64::from(f32::from_le_bytes(bytes))
}

#[test]
fn any_bytes_of_a_packed_tensor_are_the_same() {
    let cases = Cases::of("ggml");
    let of = super::element_type(12).expect("Q4_K");
    let blocks = cases.file("Q4_K/blocks.bin");
    let raw = Tensor::from_slice(&[blocks.len()], blocks).expect("bytes");
    let packed = unpacked(of, &raw, [ROWS, 768]).expect("packed");
    let whole = packed.numbers.unread().read().expect("bytes").to_vec();
    for (from, len) in [(0, 1), (127, 2), (100, 300), (383, 385)] {
        let mut part = vec![0; len];
        packed
            .numbers
            .unread()
            .copy_to(from, &mut part)
            .expect("a part");
        assert_eq!(part, whole[from..from + len], "{from}");
    }
}

#[test]
fn unknown_types_and_broken_rows_are_refused() {
    let unknown = super::element_type(36).expect_err("no such type");
    assert_eq!(unknown.code(), ErrorCode::Unsupported);
    let of = super::element_type(12).expect("Q4_K");
    let broken = of.bytes_of(&[2, 100]).expect_err("no whole blocks");
    assert_eq!(broken.code(), ErrorCode::InvalidModel);
    assert!(of.bytes_of(&[usize::MAX / 2, 256]).is_err());
}

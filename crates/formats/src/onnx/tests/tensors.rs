//! Encodings of tensors.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::dtype::DType;
use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::{AlignedBytes, Tensor};

use super::writer::*;
use crate::{ExternalFiles, GivenFiles, ModelFile, load_model};

/// The constant that a model with one initializer `w` holds.
fn read(tensor: Bytes) -> Result<Tensor> {
    let graph = load(&model(13, &[initializer(&tensor), output("w")]))?;
    constant(&graph, "w").ok_or_else(|| kilim_core::error::value_error("no such constant"))
}

fn constant(graph: &Graph, name: &str) -> Option<Tensor> {
    let value = graph.values.iter().find(|v| v.name == name)?;
    value.constant.clone()
}

fn packed(field: u64, list: &[u64]) -> Bytes {
    let all: Vec<Bytes> = list.iter().map(|&n| varint(n)).collect();
    bytes(field, &join(&all))
}

#[test]
fn typed_fields() -> Result<()> {
    let raw: Vec<u8> = [1.5f32, -2.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let two = [2];
    let f32s = Tensor::from_slice(&[2], &[1.5f32, -2.0])?;
    assert_eq!(read(tensor("w", 1, &two, bytes(4, &raw)))?, f32s);
    let unpacked = join(&[float(4, 1.5), float(4, -2.0)]);
    assert_eq!(read(tensor("w", 1, &two, unpacked))?, f32s);
    assert_eq!(read(tensor("w", 1, &two, bytes(9, &raw)))?, f32s);

    let raw: Vec<u8> = [0.5f64, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let want = Tensor::from_slice(&[2], &[0.5f64, 4.0])?;
    assert_eq!(read(tensor("w", 11, &two, bytes(10, &raw)))?, want);

    let minus = -3i64 as u64;
    let cases: [(i64, u64, Tensor); 9] = [
        (7, 7, Tensor::from_slice(&[2], &[-3i64, 5])?),
        (6, 5, Tensor::from_slice(&[2], &[-3i32, 5])?),
        (5, 5, Tensor::from_slice(&[2], &[-3i16, 5])?),
        (3, 5, Tensor::from_slice(&[2], &[-3i8, 5])?),
        (2, 5, Tensor::from_slice(&[2], &[0xfdu8, 5])?),
        (4, 5, Tensor::from_slice(&[2], &[0xfffdu16, 5])?),
        (12, 11, Tensor::from_slice(&[2], &[-3i32 as u32, 5])?),
        (13, 11, Tensor::from_slice(&[2], &[minus, 5])?),
        (9, 5, Tensor::from_bools(&[2], &[true, true])?),
    ];
    for (kind, field, want) in cases {
        let got = read(tensor("w", kind, &two, packed(field, &[minus, 5])))?;
        assert_eq!(got, want, "type {kind}");
    }
    // Each number of six bits is one of the list; raw, four take three bytes.
    for list in [packed(5, &[0x1f, 0x28]), bytes(9, &[0x1f, 0x0a])] {
        let got = read(tensor("w", 28, &two, list))?;
        assert_eq!(
            (got.dtype(), got.to_f64s()?),
            (DType::F6E3M2, vec![28.0, -0.5])
        );
    }
    assert!(read(tensor("w", 28, &two, packed(5, &[0x40, 0]))).is_err());
    let parts: Vec<u8> = [1f32, -2.0, 0.5, 0.0]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    for field in [4, 9] {
        let got = read(tensor("w", 14, &two, bytes(field, &parts)))?;
        assert_eq!(got.to_f64s()?, [1.0, -2.0, 0.5, 0.0]);
        assert_eq!((got.dtype(), got.shape()), (DType::C64, &[2][..]));
    }
    let halves = packed(5, &[0x3e00, 0xc000]);
    assert_eq!(
        read(tensor("w", 10, &two, halves.clone()))?.to_f64s()?,
        [1.5, -2.0]
    );
    assert_eq!(read(tensor("w", 16, &two, halves))?.dtype(), DType::BF16);
    Ok(())
}

#[test]
fn wrong_sizes_and_types_are_refused() {
    let code = |t| read(t).err().map(|e| e.code());
    let invalid = Some(ErrorCode::InvalidModel);
    assert_eq!(code(tensor("w", 1, &[3], bytes(9, &[0; 8]))), invalid);
    assert_eq!(code(tensor("w", 1, &[-1], bytes(9, &[0; 4]))), invalid);
    assert_eq!(code(tensor("w", 7, &[2], packed(7, &[1]))), invalid);
    assert_eq!(code(tensor("w", 99, &[1], bytes(9, &[0; 4]))), invalid);
    assert_eq!(code(tensor("w", 9, &[1], bytes(9, &[7]))), invalid);
    let huge = tensor("w", 1, &[isize::MAX as i64; 2], bytes(9, &[0; 4]));
    assert_eq!(code(huge), Some(ErrorCode::Limit));
    assert_eq!(code(tensor("w", 14, &[1], bytes(9, &[0; 4]))), invalid);
    assert_eq!(code(tensor("w", 15, &[1], packed(10, &[0]))), invalid);
    assert_eq!(code(tensor("w", 8, &[2], bytes(6, b"a"))), invalid);
    assert_eq!(code(tensor("w", 8, &[1], bytes(6, &[0xff]))), invalid);
    assert_eq!(code(tensor("w", 8, &[1], bytes(9, b"a"))), invalid);
    assert_eq!(code(tensor("w", 22, &[3], bytes(9, &[0]))), invalid);
    assert_eq!(code(tensor("w", 22, &[3], packed(5, &[0]))), invalid);
}

#[test]
fn strings() -> Result<()> {
    let two = join(&[bytes(6, "zwölf".as_bytes()), bytes(6, b"")]);
    let got = read(tensor("w", 8, &[2], two))?;
    assert!(got.texts()?.iter().map(|t| t.as_ref()).eq(["zwölf", ""]));
    Ok(())
}

#[test]
fn less_than_a_byte_an_element() -> Result<()> {
    let cases: [(i64, &[u8], &[f64]); 6] = [
        (21, &[0xf1, 0x02], &[1.0, 15.0, 2.0]),
        (22, &[0xf1, 0x02], &[1.0, -1.0, 2.0]),
        (23, &[0xf1, 0x02], &[0.5, -6.0, 1.0]),
        (25, &[0b11_01_10], &[2.0, 1.0, 3.0]),
        (26, &[0b11_01_10], &[-2.0, 1.0, -1.0]),
        (17, &[0x38, 0xb8, 0x7e], &[1.0, -1.0, 448.0]),
    ];
    for (kind, data, want) in cases {
        assert_eq!(
            read(tensor("w", kind, &[3], bytes(9, data)))?.to_f64s()?,
            want
        );
        let list: Vec<u64> = data.iter().map(|&b| b.into()).collect();
        assert_eq!(
            read(tensor("w", kind, &[3], packed(5, &list)))?.to_f64s()?,
            want
        );
    }
    Ok(())
}

#[test]
fn raw_data_shares_the_file() -> Result<()> {
    // Padding in the documentation string brings the data to an aligned place.
    for pad in 0..4 {
        let doc = "x".repeat(pad);
        let graph = [
            text(10, &doc),
            initializer(&floats("w", &[2], &[1.0, 2.0])),
            output("w"),
        ];
        let file = Arc::new(AlignedBytes::copy_of(&model(13, &graph))?);
        let source = ModelFile::new(file.clone(), "m");
        let graph = load_model(&source, &Limits::default())?;
        let w = constant(&graph, "w").expect("the initializer is a constant");
        assert_eq!(w.as_slice::<f32>()?, [1.0, 2.0]);
        let inside = file.as_slice().as_ptr_range().contains(&w.read()?.as_ptr());
        let aligned = file
            .as_slice()
            .windows(8)
            .position(|s| w.read().is_ok_and(|w| s == w));
        assert_eq!(inside, aligned.is_some_and(|at| at % 4 == 0));
    }
    Ok(())
}

fn external_tensor(location: &str, offset: &str, length: &str) -> Bytes {
    let entry = |k, v| bytes(13, &join(&[text(1, k), text(2, v)]));
    let entries = [
        entry("location", location),
        entry("offset", offset),
        entry("length", length),
        int(14, 1),
    ];
    tensor("w", 1, &[2], join(&entries))
}

/// A file `w.bin` that notes what is read of it.
#[derive(Default)]
struct Noted(RefCell<Vec<(String, u64, usize)>>);

const WEIGHTS: [f32; 3] = [0.0, 7.0, 8.0];

impl ExternalFiles for Noted {
    fn size(&self, _: &str) -> Result<u64> {
        Ok(size_of_val(&WEIGHTS) as u64)
    }

    fn part(&self, path: &str, offset: u64, len: usize) -> Result<Tensor> {
        self.0.borrow_mut().push((path.to_string(), offset, len));
        let data: Vec<u8> = WEIGHTS.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::from_raw(DType::U8, &[len], &data[offset as usize..][..len])
    }
}

#[test]
fn external_data() -> Result<()> {
    let files = Noted::default();
    let load = |tensor: Bytes| {
        let file = model(13, &[initializer(&tensor), output("w")]);
        let source = ModelFile::new(Arc::new(AlignedBytes::copy_of(&file)?), "m");
        load_model(&source.with_external(&files), &Limits::default())
    };
    let graph = load(external_tensor("w.bin", "4", "8"))?;
    let w = constant(&graph, "w").expect("the initializer is a constant");
    assert_eq!(w.as_slice::<f32>()?, [7.0, 8.0]);
    let broken = [
        ("../w.bin", "0", "8"),
        ("/w.bin", "0", "8"),
        ("w.bin", "8", "8"),
        ("w.bin", "-4", "8"),
        ("w.bin", "0", "4"),
        ("w.bin", "18446744073709551615", "8"),
    ];
    for (location, offset, length) in broken {
        let error = load(external_tensor(location, offset, length)).err();
        assert_eq!(
            error.map(|e| e.code()),
            Some(ErrorCode::InvalidModel),
            "{location} {offset}"
        );
    }
    assert_eq!(*files.0.borrow(), [("w.bin".to_string(), 4, 8)]);
    Ok(())
}

/// A file that is larger than the memory of 32 bits.
struct Huge;

impl ExternalFiles for Huge {
    fn size(&self, _: &str) -> Result<u64> {
        Ok(6 << 30)
    }

    fn part(&self, _: &str, offset: u64, len: usize) -> Result<Tensor> {
        let gigabytes = (offset >> 30) as f32;
        let data = gigabytes.to_le_bytes().repeat(len / 4);
        Tensor::from_raw(DType::U8, &[len], &data)
    }
}

#[test]
fn external_data_lies_beyond_four_gigabytes() -> Result<()> {
    let load = |offset: u64| {
        let tensor = external_tensor("w.bin", &offset.to_string(), "8");
        let file = model(13, &[initializer(&tensor), output("w")]);
        let source = ModelFile::new(Arc::new(AlignedBytes::copy_of(&file)?), "m");
        load_model(&source.with_external(&Huge), &Limits::default())
    };
    let graph = load(5 << 30)?;
    let w = constant(&graph, "w").expect("the initializer is a constant");
    assert_eq!(w.as_slice::<f32>()?, [5.0, 5.0]);
    let error = load((6 << 30) - 4).err().map(|e| e.code());
    assert_eq!(error, Some(ErrorCode::InvalidModel));
    Ok(())
}

#[test]
fn external_booleans_are_zero_or_one() -> Result<()> {
    let load = |data: &[u8]| {
        let entry = |k, v| bytes(13, &join(&[text(1, k), text(2, v)]));
        let tensor = tensor(
            "w",
            9,
            &[2],
            join(&[entry("location", "w.bin"), int(14, 1)]),
        );
        let file = model(13, &[initializer(&tensor), output("w")]);
        let source = ModelFile::new(Arc::new(AlignedBytes::copy_of(&file)?), "m");
        let weights = Arc::new(AlignedBytes::copy_of(data)?);
        let files = GivenFiles::new(HashMap::from([("w.bin".to_string(), weights)]));
        load_model(&source.with_external(&files), &Limits::default())
    };
    assert!(load(&[0, 1]).is_ok());
    let error = load(&[0, 2]).err().map(|e| e.code());
    assert_eq!(error, Some(ErrorCode::InvalidModel));
    Ok(())
}

#[test]
fn sparse_initializers_are_written_out() -> Result<()> {
    let sparse = |places: &[u64], dims: &[i64]| {
        let values = floats("w", &[2], &[3.0, 4.0]);
        let indices = tensor("i", 7, dims, packed(7, places));
        let all = join(&[bytes(1, &values), bytes(2, &indices), int(3, 2), int(3, 3)]);
        load(&model(13, &[bytes(15, &all), output("w")]))
    };
    let flat = sparse(&[1, 5], &[2])?;
    let pairs = sparse(&[0, 1, 1, 2], &[2, 2])?;
    for graph in [flat, pairs] {
        let w = constant(&graph, "w").expect("the initializer is a constant");
        assert_eq!(w.as_slice::<f32>()?, [0.0, 3.0, 0.0, 0.0, 0.0, 4.0]);
    }
    for places in [&[0, 6][..], &[0, u64::MAX]] {
        assert!(sparse(places, &[2]).is_err());
    }
    Ok(())
}

/// Weights of less than a byte are read where they are turned into real numbers, and only there.
#[test]
fn packed_weights() -> Result<()> {
    let weights = |kind, packed: &[u8]| tensor("q", kind, &[3], bytes(9, packed));
    let read = |kind, packed: &[u8], op: &str, attributes: &[Bytes]| {
        load(&model(
            21,
            &[
                initializer(&weights(kind, packed)),
                initializer(&floats("s", &[], &[0.5])),
                node(op, &["q", "s"][..2 - attributes.len()], &["w"], attributes),
                output("w"),
            ],
        ))
    };
    let numbers = |kind, packed: &[u8]| -> Result<Vec<i64>> {
        let graph = read(kind, packed, "DequantizeLinear", &[])?;
        constant(&graph, "q").map_or(Ok(Vec::new()), |q| q.to_i64s())
    };
    assert_eq!(numbers(21, &[0xf1, 0x07])?, [1, 15, 7]);
    assert_eq!(numbers(22, &[0xf1, 0x08])?, [1, -1, -8]);
    assert_eq!(numbers(25, &[0b10_01_11])?, [3, 1, 2]);
    assert_eq!(numbers(26, &[0b10_01_11])?, [-1, 1, -2]);
    assert!(numbers(22, &[0xf1]).is_err());
    let cast = read(22, &[0xf1, 0x08], "Cast", &[attr_int("to", 1)])?;
    let q = constant(&cast, "q").map(|q| q.dtype());
    assert_eq!(q, Some(DType::I4));
    Ok(())
}

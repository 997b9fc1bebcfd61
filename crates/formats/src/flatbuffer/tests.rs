//! Files of all formats that are FlatBuffers, read without their large data.

use std::sync::Arc;

use kilim_core::Limits;
use kilim_core::error::{ErrorCode, Result};
use kilim_core::graph::Graph;
use kilim_core::tensor::AlignedBytes;
use kilim_test_support::archive::{Archive, Cases};
use kilim_test_support::material;
use kilim_test_support::tflite::{self as writer, Field, constant, op, tensor};

use super::apart::outline_from;
use super::{Found, Table};
use crate::counted::Counted;
use crate::garbage::damaged;
use crate::parts::{LARGE, Outline};
use crate::{ImporterRegistry, ModelFile, Parted, load_model, mnn, ort, tflite};

type Walk = fn(&Table, &mut Found) -> Result<()>;

/// The formats by their reference cases, with the ends of the names of their files.
const FORMATS: [(&str, &str, Walk); 4] = [
    ("circle", ".circle", tflite::find_data),
    ("mnn", ".mnn", mnn::find_data),
    ("ort", ".ort", ort::find_data),
    ("tflite", ".tflite", tflite::find_data),
];

/// Bytes from which on the data of small files counts as large.
const LEAST: usize = 48;

/// For models that are not what they seem.
fn low() -> Limits {
    Limits {
        nodes: 1 << 12,
        depth: 8,
        folded_bytes: 1 << 20,
        tensor_bytes: 1 << 20,
        ..Limits::strict()
    }
}

fn whole(bytes: &[u8]) -> Result<Graph> {
    let bytes = Arc::new(AlignedBytes::copy_of(bytes)?);
    let source = ModelFile::new(bytes, "m").with_structure_only(true);
    load_model(&source, &Limits::default())
}

/// Reads a file without its data, and how many bytes of it were left out.
fn apart(bytes: &[u8], walk: Walk, limits: &Limits) -> (Result<Graph>, usize) {
    let file = Arc::new(Counted::new(bytes.to_vec()));
    let replaced = outline_from(LEAST, &*file, walk);
    let outline = Outline::read(&*file, &replaced).expect("an outline");
    let left_out = bytes.len() - outline.as_slice().len();
    let parts = Parted::new(file, true);
    let source = ModelFile::parted(&parts, outline, "m").with_structure_only(true);
    (load_model(&source, limits), left_out)
}

/// Whether two graphs have the same nodes on the same values.
fn check_same(a: &Graph, b: &Graph, path: &str) {
    assert_eq!(a.nodes.len(), b.nodes.len(), "{path}");
    for (a, b) in a.nodes.iter().zip(&b.nodes) {
        match (a.op.bodies(), b.op.bodies()) {
            // Operators with bodies are the same where these are one graph in memory.
            (Some(one), Some(other)) => {
                assert_eq!(a.op.name(), b.op.name(), "{path}");
                for (one, other) in one.graphs.iter().zip(&other.graphs) {
                    check_same(one, other, path);
                }
            }
            _ => assert!(a.op.as_ref() == b.op.as_ref(), "{path}: {}", a.name),
        }
        assert_eq!((&a.inputs, &a.outputs), (&b.inputs, &b.outputs), "{path}");
    }
    for (a, b) in a.values.iter().zip(&b.values) {
        assert_eq!((&a.name, &a.fact), (&b.name, &b.fact), "{path}");
        let bytes = |value: &kilim_core::graph::Value| {
            let tensor = value.constant.as_ref();
            tensor.map(|tensor| tensor.read().map(<[u8]>::to_vec).ok())
        };
        assert_eq!(bytes(a), bytes(b), "{path}: {}", a.name);
    }
}

#[test]
fn graphs_are_those_of_whole_files() {
    for (format, end, walk) in FORMATS {
        let cases = Cases::of(format);
        let (mut total, mut graphs) = (0, 0);
        for (path, _) in cases
            .archive
            .entries()
            .filter(|(path, _)| path.ends_with(end))
        {
            let bytes = cases.file(path);
            let (made, left_out) = apart(bytes, walk, &Limits::default());
            total += left_out;
            match (whole(bytes), made) {
                (Ok(whole), Ok(made)) => {
                    check_same(&whole, &made, path);
                    graphs += usize::from(left_out > 0);
                }
                (Err(whole), Err(made)) => assert_eq!(whole.code(), made.code(), "{path}"),
                (_, made) => panic!("{path}: {:?}", made.err()),
            }
        }
        assert!(total > 0 && graphs > 0, "{format}: nothing is left out");
    }
}

#[test]
fn damaged_files_are_graphs_or_errors() {
    for (format, end, walk) in FORMATS {
        let cases = Cases::of(format);
        let models = cases.archive.entries().map(|(path, _)| path);
        let models = models.filter(|path| path.ends_with(end));
        // The smallest in which something is left out is read the most often.
        let models = models.filter(|path| apart(cases.file(path), walk, &low()).1 > 0);
        let path = models.min_by_key(|path| cases.file(path).len());
        let bytes = cases.file(path.expect("a model"));
        damaged(bytes, (bytes.len() / 200).max(2), |bytes| {
            let _ = apart(bytes, walk, &low());
        });
    }
}

#[test]
fn inputs_of_fuzzing_are_graphs_or_errors_without_their_data() {
    let folder = material::root().join("crates/formats/tests/fuzzed/corpus");
    for (format, _, walk) in FORMATS {
        let Ok(file) = std::fs::read(folder.join(format!("{format}.zip"))) else {
            continue;
        };
        let archive = Archive::read(file).expect("an archive of inputs");
        for (name, _) in archive.entries() {
            // The first byte says how the model is read.
            let model = archive.get(name).and_then(|input| input.get(1..));
            let _ = apart(model.unwrap_or_default(), walk, &low());
        }
    }
}

/// `y = x w`, with so many rows of weights.
fn product(rows: usize) -> Vec<u8> {
    const FULLY_CONNECTED: i32 = 9;
    let weights: Vec<f32> = (0..rows * 4).map(|i| i as f32).collect();
    let tensors = [
        tensor("x", &[1, 4]),
        constant("w", &[rows as i32, 4], &weights),
        tensor("y", &[1, rows as i32]),
    ];
    let options = [Field::None];
    let product = op(FULLY_CONNECTED, &[0, 1, -1], &[2], &options);
    writer::file(&tensors, &[0], &[2], &[product])
}

/// Loads a file part by part: its graph, the bytes that are in memory, and those that were read.
fn loaded(bytes: Vec<u8>) -> Result<(Graph, usize, usize)> {
    let file = Arc::new(Counted::new(bytes));
    let outline = ImporterRegistry::default().read(&*file, "m")?;
    let kept = outline.as_slice().len();
    let parts = Parted::new(file.clone(), true);
    let graph = load_model(&ModelFile::parted(&parts, outline, "m"), &Limits::default())?;
    Ok((graph, kept, file.read_so_far()))
}

/// The largest constant.
fn weights(graph: &Graph) -> Vec<u8> {
    let constants = graph.values.iter().filter_map(|v| v.constant.as_ref());
    let largest = constants.max_by_key(|t| t.len()).expect("weights");
    largest.read().expect("numbers").to_vec()
}

#[test]
fn large_data_is_neither_kept_nor_read() -> Result<()> {
    let bytes = product(64 * LARGE);
    let (graph, kept, read) = loaded(bytes.clone())?;
    assert!(kept < LARGE, "{kept} bytes of {}", bytes.len());
    // The first bytes are read twice, to tell the format.
    assert!(read < 16 * LARGE, "{read} bytes of {}", bytes.len());
    assert_eq!(weights(&graph), weights(&whole(&bytes)?));
    // A small file is read at once.
    let bytes = product(4);
    let (_, kept, _) = loaded(bytes.clone())?;
    assert_eq!(kept, bytes.len());
    Ok(())
}

#[test]
fn data_behind_the_tables_is_left_out() -> Result<()> {
    // The buffer of the weights says where they lie; the model's slot of buffers is the fifth.
    let whole_file = product(LARGE);
    let data = weights(&whole(&whole_file)?);
    let moved = |offset: u64, size: u64| {
        let buffers = [
            Field::Table(vec![Field::None]),
            Field::Table(vec![Field::None, Field::U64(offset), Field::U64(size)]),
        ];
        let mut bytes = whole_file[..whole_file.len() - data.len()].to_vec();
        let word = |bytes: &[u8], at: usize| {
            u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize
        };
        let model = word(&bytes, 0);
        writer::refer(
            &mut bytes,
            model + 4 + 4 * 4,
            &Field::Tables(buffers.into()),
        );
        bytes
    };
    let len = moved(2, 0).len() as u64;
    let mut bytes = moved(len, data.len() as u64);
    bytes.extend(&data);
    let (graph, kept, _) = loaded(bytes)?;
    assert_eq!(kept as u64, len);
    assert_eq!(weights(&graph), data);
    // What is not within the file is an error as in a whole one.
    for (offset, size) in [(len + 1, data.len() as u64), (u64::MAX, 8), (len, u64::MAX)] {
        let mut bytes = moved(offset, size);
        bytes.extend(&data);
        let error = loaded(bytes).expect_err("it ends before");
        assert_eq!(error.code(), ErrorCode::InvalidModel, "{error}");
    }
    Ok(())
}

#[test]
fn offsets_that_lead_to_and_fro_end() {
    // Very many buffers, whose tables are two, far from each other.
    const COUNT: usize = 1 << 16;
    let mut bytes = product(4);
    let list = writer::write(&mut bytes, &Field::Bytes(vec![0; 4 * COUNT]));
    let empty = Field::Table(vec![Field::None]);
    let first = writer::write(&mut bytes, &empty);
    bytes.resize(bytes.len() + (1 << 18), 0);
    let second = writer::write(&mut bytes, &empty);
    let mut put = |at: usize, number: usize| {
        bytes[at..at + 4].copy_from_slice(&(number as u32).to_le_bytes());
    };
    put(list, COUNT);
    for i in 0..COUNT {
        let at = list + 4 + 4 * i;
        put(at, [first, second][i % 2] - at);
    }
    let model = u32::from_le_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    let slot = model + 4 + 4 * 4;
    bytes[slot..slot + 4].copy_from_slice(&((list - slot) as u32).to_le_bytes());
    let file = Counted::new(bytes);
    assert!(outline_from(LEAST, &file, tflite::find_data).is_empty());
    let (read, size) = (file.read_so_far(), file.bytes.len());
    assert!(read <= 2 * size + (1 << 18), "{read} bytes of {size}");
}

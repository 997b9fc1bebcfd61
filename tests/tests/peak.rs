//! The most memory that a load and a first run take: weights once, and what runs need beside them.

#![cfg(not(target_arch = "wasm32"))]

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{ThreadId, current};

use kilim::core::tensor::AlignedBytes;
use kilim::formats::{FileParts, GivenFile};
use kilim::{
    BackendId, DType, Error, ErrorCode, LoadOptions, ModelSource, Result, RunOptions, Runtime,
    Tensor,
};
use kilim_test_support::allocations::{Counting, most_during};
use kilim_tests::onnx::{self, Inline, Node, Value};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LAYERS: usize = 24;
const FLOAT: i64 = 1;
const UINT8: i64 = 2;
const FLOAT16: i64 = 10;
/// Weights of a scale.
const BLOCK: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Weights {
    /// Products whose weights are packed.
    Floats,
    /// Products of `float32` with weights that are packed in half precision.
    Halves,
    /// Products that read weights of 4 bits as they lie.
    FourBits,
}

impl Weights {
    /// Rows and columns of a matrix.
    fn size(self) -> usize {
        match self {
            Weights::Floats => 512,
            Weights::Halves => 768,
            Weights::FourBits => 1024,
        }
    }

    /// A model of products with so many matrices of `n` rows and columns, and the bytes of its weights.
    fn model(self, matrices: usize, n: usize, rows: &str) -> (Vec<u8>, usize) {
        let (dims, kind): (&[usize], i64) = match self {
            Weights::Floats => (&[n, n], FLOAT),
            Weights::Halves => (&[n, n], FLOAT16),
            Weights::FourBits => (&[n, n / BLOCK, BLOCK / 2], UINT8),
        };
        let many: usize = dims.iter().product();
        let scales = n * n / BLOCK;
        let floats = |seed: usize, count: usize| -> Vec<u8> {
            let each = (0..count).map(|i| ((i * 7919 + seed) % 1009) as f32 / 1e5);
            each.flat_map(f32::to_le_bytes).collect()
        };
        let data: Vec<[Vec<u8>; 2]> = (0..matrices)
            .map(|i| match self {
                Weights::Floats => [floats(i, n * n), Vec::new()],
                Weights::Halves => [halves(i, n * n), Vec::new()],
                Weights::FourBits => {
                    let packed = (0..many).map(|j| (j * 31 + i) as u8).collect();
                    [packed, floats(i, scales)]
                }
            })
            .collect();
        let names: Vec<[String; 5]> = (0..matrices)
            .map(|i| ["x", "w", "s", "c"].map(|name| format!("{name}{i}")))
            .zip(1..)
            .map(|([x, w, s, c], next)| [x, w, s, c, format!("x{next}")])
            .collect();
        let scale_dims = [n, n / BLOCK];
        let mut weights = Vec::new();
        for ([_, w, s, ..], [packed, scale]) in names.iter().zip(&data) {
            weights.push(Inline {
                name: w,
                dims,
                kind,
                elements: packed,
            });
            if self == Weights::FourBits {
                weights.push(Inline {
                    name: s,
                    dims: &scale_dims,
                    kind: FLOAT,
                    elements: scale,
                });
            }
        }
        let inputs: Vec<Vec<&str>> = names
            .iter()
            .map(|[x, w, s, c, _]| match self {
                Weights::Floats => vec![x, w],
                Weights::Halves => vec![x, c],
                Weights::FourBits => vec![x, w, s],
            })
            .map(|names| names.into_iter().map(String::as_str).collect())
            .collect();
        let outputs: Vec<[&str; 1]> = names.iter().map(|[.., y]| [y.as_str()]).collect();
        let attributes = [
            ("K", Value::Int(n as i64)),
            ("N", Value::Int(n as i64)),
            ("bits", Value::Int(4)),
            ("block_size", Value::Int(BLOCK as i64)),
        ];
        let casts: Vec<[[&str; 1]; 2]> = names
            .iter()
            .filter(|_| self == Weights::Halves)
            .map(|[_, w, _, c, _]| [[w.as_str()], [c.as_str()]])
            .collect();
        let cast = [("to", Value::Int(FLOAT))];
        let widened = casts.iter().map(|[from, to]| Node {
            domain: "",
            op: "Cast",
            inputs: from,
            outputs: to,
            attributes: &cast,
        });
        let (domain, op, attributes) = match self {
            Weights::FourBits => ("com.microsoft", "MatMulNBits", &attributes[..]),
            _ => ("", "MatMul", &[][..]),
        };
        let products = inputs.iter().zip(&outputs).map(|(inputs, outputs)| Node {
            domain,
            op,
            inputs,
            outputs,
            attributes,
        });
        let nodes: Vec<Node> = widened.chain(products).collect();
        let width = n.to_string();
        let dims = [rows, &width];
        let last = outputs[matrices - 1][0];
        let (x, y) = ([("x0", &dims[..])], [(last, &dims[..])]);
        let bytes = data.iter().flatten().map(Vec::len).sum();
        (onnx::model_holding(&nodes, &x, &y, &weights), bytes)
    }
}

/// Numbers of `float16` from 2⁻¹⁰ to 2⁻⁹, so that sums of a row stay about 1.
fn halves(seed: usize, count: usize) -> Vec<u8> {
    let each = (0..count).map(|i| 0x1400 + ((i * 7919 + seed) % 1009) as u16);
    each.flat_map(u16::to_le_bytes).collect()
}

/// A file that one thread alone may read, as that of a session in a page.
struct Own {
    file: Mutex<File>,
    size: u64,
    thread: ThreadId,
}

impl Own {
    fn open(path: &Path) -> Own {
        let file = File::open(path).expect("it is there");
        Own {
            size: file.metadata().expect("it has a size").len(),
            file: Mutex::new(file),
            thread: current().id(),
        }
    }
}

impl FileParts for Own {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        if current().id() != self.thread {
            return Err(Error::new(ErrorCode::Io, "another thread has the file"));
        }
        let mut file = self.file.lock().expect("one thread reads");
        let read = file
            .seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(to));
        read.map_err(|e| Error::new(ErrorCode::Io, e.to_string()))
    }
}

/// Loads and runs a model: what its arena takes, and what it gives for a row of ones.
fn load_and_run(source: ModelSource, backend: &str, n: usize) -> (usize, Vec<f64>) {
    let options = LoadOptions {
        backends: vec![BackendId::from(backend)],
        ..LoadOptions::default()
    };
    let mut session = pollster::block_on(kilim::load(source, options)).expect("it loads");
    let x = Tensor::from_slice(&[1, n], &vec![1.0f32; n]);
    let inputs = [("x0", x.expect("a row"))];
    let options = RunOptions::default();
    let outputs = pollster::block_on(session.run(&inputs, &options)).expect("it runs");
    let arena = session.report().backends[0].planned_bytes;
    assert_eq!(outputs[0].1.dtype(), DType::F32);
    (arena, outputs[0].1.to_f64s().expect("numbers"))
}

/// One test, since all threads count together.
#[test]
fn weights_are_in_memory_once() {
    let folder = std::env::temp_dir().join(format!("kilim-peak-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let path = folder.join("model.onnx");
    for weights in [Weights::Floats, Weights::Halves, Weights::FourBits] {
        let n = weights.size();
        let mut results = Vec::new();
        for rows in ["1", "n"] {
            let (model, bytes) = weights.model(LAYERS, n, rows);
            std::fs::write(&path, &model).expect("it can be written");
            let from_file = || load_and_run(ModelSource::from(&*path), "cpu", n);
            // What outlives every session comes with the first one.
            from_file();
            let (most, (arena, result)) = most_during(from_file);
            let bound = (bytes + arena) * 115 / 100;
            assert!(
                most <= bound,
                "{weights:?}, {rows} rows: {most} of {bound} bytes for weights of {bytes} and an arena of {arena}"
            );
            results.push(result);
            let (most, (arena, result)) = most_during(|| {
                let model = GivenFile::Parts(Arc::new(Own::open(&path)));
                let external = Default::default();
                load_and_run(ModelSource::Given { model, external }, "cpu", n)
            });
            let bound = (bytes + arena) * 115 / 100;
            assert!(
                most <= bound,
                "{weights:?}, {rows} rows, of parts: {most} of {bound} bytes for weights of {bytes} and an arena of {arena}"
            );
            results.push(result);
            let (most, (arena, result)) = most_during(|| {
                let model = AlignedBytes::copy_of(&model).expect("there is memory");
                let external = Default::default();
                let model = Arc::new(model);
                load_and_run(ModelSource::Bytes { model, external }, "cpu", n)
            });
            let bound = (bytes + arena) * 115 / 100;
            // Another size may ask for another packing: of a file that was given as bytes, raw weights stay.
            assert!(
                rows == "n" || most <= bound,
                "{weights:?}, {rows} rows, of bytes: {most} of {bound} bytes for weights of {bytes} and an arena of {arena}"
            );
            results.push(result);
        }
        for result in &results {
            assert_eq!(*result, results[0], "{weights:?}");
        }
    }
    weights_go_to_a_gpu_in_pieces(&path);
    std::fs::remove_dir_all(folder).expect("the folder can be removed");
}

/// A matrix that a device has as it is in the file is in memory nowhere else.
fn weights_go_to_a_gpu_in_pieces(path: &Path) {
    let gpu = BackendId::from("wgpu");
    if pollster::block_on(Runtime::shared().backend(&gpu)).is_err() {
        return;
    }
    let mut most = [0; 2];
    // What outlives every session comes with the first one.
    for (most, n) in most.iter_mut().zip([256, 8192]) {
        let (model, _) = Weights::FourBits.model(1, n, "1");
        std::fs::write(path, &model).expect("it can be written");
        drop(model);
        *most = most_during(|| load_and_run(ModelSource::from(path), "wgpu", n)).0;
    }
    let bound = 8192 * 8192 / 2 / 2;
    assert!(most[1] <= bound, "{} of {bound} bytes", most[1]);
}

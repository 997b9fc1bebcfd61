//! Random models, as `tools/fuzz` draws them, against what it computed in float64.

mod stream;

pub use stream::{Draw, Generator};

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::task::Poll;
use std::{fs, io, panic};

use kilim::{BackendId, DType, ErrorCode, LoadOptions, ModelSource, Placement, RunOptions, Tensor};
use serde::Deserialize;

/// What a case says of itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Header {
    /// The operator it is about, the seed and the number.
    pub name: String,
    pub index: u64,
    pub ops: Vec<String>,
    pub opset: u32,
    inputs: usize,
    /// The element types of the outputs.
    outputs: Vec<String>,
}

impl Header {
    /// The operator that the case is about.
    pub fn subject(&self) -> &str {
        self.name.split('_').next().unwrap_or_default()
    }
}

/// Whether elements of a type may differ from what is wanted by some amount.
fn is_judged(dtype: &str) -> bool {
    matches!(
        dtype,
        "float64" | "float32" | "float16" | "bfloat16" | "complex64" | "complex128"
    )
}

/// Whether a type is of floats that are only stored. Several bytes may stand for NaN and zero there.
fn is_narrow_float(dtype: &str) -> bool {
    matches!(
        dtype.as_bytes(),
        [b'f', b'l', b'o', b'a', b't', b'4' | b'6' | b'8', ..]
    )
}

/// A model, its inputs and what it must give, if anything says so.
pub struct Case {
    pub header: Header,
    /// The parts as they were read, header first.
    parts: Vec<Vec<u8>>,
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Passed,
    /// Refused with a reason, when it was loaded or planned.
    Refused(String),
    /// A wrong result, an error of another kind, or a panic.
    Wrong(String),
}

type Named = (String, Tensor);

struct Want {
    dtype: String,
    tensor: Tensor,
    /// The largest difference of every element, or of both parts of it; of floats and complex numbers only.
    slack: Vec<f64>,
}

impl Case {
    fn read(&self) -> kilim::Result<(Vec<Named>, Vec<Want>)> {
        let tensor = kilim::formats::onnx::read_tensor;
        let mut parts = self.parts.iter().skip(2);
        let mut part = || parts.next().map(Vec::as_slice).unwrap_or_default();
        let inputs = (0..self.header.inputs).map(|_| tensor(part()));
        let inputs = inputs.collect::<kilim::Result<_>>()?;
        let mut wants = Vec::new();
        for dtype in &self.header.outputs {
            let want = tensor(part())?.1;
            let slack = if is_judged(dtype) {
                let numbers = part().as_chunks::<8>().0.iter();
                numbers.map(|&b| f64::from_le_bytes(b)).collect()
            } else {
                Vec::new()
            };
            wants.push(Want {
                dtype: dtype.clone(),
                tensor: want,
                slack,
            });
        }
        Ok((inputs, wants))
    }

    /// Loads and runs the model, twice. The first of `backends` that takes a node gets it.
    pub async fn run(&self, backends: &[BackendId]) -> Outcome {
        caught(Box::pin(async {
            match self.attempt(backends).await {
                Ok(None) => Outcome::Passed,
                Ok(Some(wrong)) => Outcome::Wrong(wrong),
                Err(e) if matches!(e.code(), ErrorCode::Unsupported | ErrorCode::NoBackend) => {
                    Outcome::Refused(e.to_string())
                }
                Err(e) => Outcome::Wrong(e.to_string()),
            }
        }))
        .await
    }

    async fn attempt(&self, backends: &[BackendId]) -> kilim::Result<Option<String>> {
        let (inputs, wants) = self.read()?;
        let mut options = LoadOptions {
            backends: backends.to_vec(),
            ..LoadOptions::default()
        };
        options.placement = Placement::Fixed;
        let model = self.parts.get(1).cloned().unwrap_or_default();
        let mut session = kilim::load(ModelSource::from(model), options).await?;
        let feeds: Vec<(&str, Tensor)> = inputs
            .iter()
            .map(|(n, t)| (n.as_str(), t.clone()))
            .collect();
        for _ in 0..2 {
            let outputs = session.run(&feeds, &RunOptions::default()).await?;
            if wants.is_empty() {
                continue;
            }
            if outputs.len() != wants.len() {
                return Ok(Some(format!("{} outputs", outputs.len())));
            }
            for ((name, got), want) in outputs.iter().zip(&wants) {
                if let Some(wrong) = want.differs(got)? {
                    return Ok(Some(format!("`{name}`: {wrong}")));
                }
            }
        }
        Ok(None)
    }

    /// Writes the case as one of the ONNX suite, with the reason why it is kept.
    pub fn save(&self, folder: &Path, why: &str) -> io::Result<()> {
        let data = folder.join("test_data_set_0");
        fs::create_dir_all(&data)?;
        fs::write(folder.join("why.txt"), format!("{why}\n"))?;
        fs::write(folder.join("case.bin"), self.bytes())?;
        let mut parts = self.parts.iter().skip(1);
        let mut put = |name: String| match parts.next() {
            Some(part) => fs::write(folder.join(name), part),
            None => Ok(()),
        };
        put("model.onnx".to_string())?;
        for i in 0..self.header.inputs {
            put(format!("test_data_set_0/input_{i}.pb"))?;
        }
        for (i, dtype) in self.header.outputs.iter().enumerate() {
            put(format!("test_data_set_0/output_{i}.pb"))?;
            if is_judged(dtype) {
                put(format!("test_data_set_0/slack_{i}.f64"))?;
            }
        }
        Ok(())
    }

    /// The case as `Generator` reads it.
    pub fn bytes(&self) -> Vec<u8> {
        let framed = |p: &Vec<u8>| [&(p.len() as u32).to_le_bytes()[..], p].concat();
        self.parts.iter().flat_map(framed).collect()
    }
}

impl Want {
    fn differs(&self, got: &Tensor) -> kilim::Result<Option<String>> {
        if got.dtype().name() != self.dtype || got.shape() != self.tensor.shape() {
            let (dtype, shape) = (&self.dtype, self.tensor.shape());
            let message = format!("{}{:?}, not {dtype}{shape:?}", got.dtype(), got.shape());
            return Ok(Some(message));
        }
        if !is_judged(&self.dtype) {
            if got == &self.tensor {
                return Ok(None);
            }
            if self.tensor.dtype() == DType::String {
                let pairs = got.texts()?.iter().zip(self.tensor.texts()?);
                let wrong = pairs.enumerate().find(|(_, (a, b))| a != b);
                return Ok(
                    wrong.map(|(i, (got, want))| format!("element {i} is {got:?}, not {want:?}"))
                );
            }
            let pairs = got.to_f64s()?.into_iter().zip(self.tensor.to_f64s()?);
            // NaN has many bytes.
            let other = |a: &f64, b: &f64| a != b && !(a.is_nan() && b.is_nan());
            let mut pairs = pairs.enumerate().peekable();
            let wrong = pairs.find(|(_, (a, b))| other(a, b));
            if wrong.is_none() && is_narrow_float(&self.dtype) {
                return Ok(None);
            }
            return Ok(Some(wrong.map_or_else(
                || "other bytes".to_string(),
                |(i, (got, want))| format!("element {i} is {got}, not {want}"),
            )));
        }
        let pairs = got.to_f64s()?.into_iter().zip(self.tensor.to_f64s()?);
        let mut wrong = pairs
            .zip(&self.slack)
            .enumerate()
            .filter(|(_, ((got, want), slack))| {
                let same = got == want || (got.is_nan() && want.is_nan());
                let near = (got - want).abs() <= **slack || slack.is_infinite();
                !same && !near
            });
        let Some((i, ((got, want), slack))) = wrong.next() else {
            return Ok(None);
        };
        let more = wrong.count();
        Ok(Some(format!(
            "element {i} is {got:?}, not {want:?} ± {slack:.1e}, and {more} more"
        )))
    }
}

thread_local! {
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps what panics say for the outcome of their case, instead of printing it.
pub fn quiet_panics() {
    panic::set_hook(Box::new(|info| {
        let said = info.to_string().replace('\n', " ");
        PANIC.with_borrow_mut(|kept| *kept = said);
    }));
}

async fn caught(mut case: Pin<Box<dyn Future<Output = Outcome> + '_>>) -> Outcome {
    std::future::poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| case.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| {
            let said = PANIC.with_borrow(String::clone);
            Poll::Ready(Outcome::Wrong(format!("panic: {said}")))
        })
    })
    .await
}

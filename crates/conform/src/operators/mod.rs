//! Operators on random inputs: odd sizes, batches, empty tensors, scalars, broadcasts, negative
//! axes. The expected results are computed here, in float64 and without any cleverness.

mod attention;
mod dense;
mod einsum;
mod experts;
mod packed;
mod pointwise;
mod quantized;
mod recurrent;
mod rotary;
mod rows;
mod shuffles;

use std::sync::Arc;

use kilim::compare::Comparison;
use kilim::core::graph::Node;
use kilim::core::{AbortSignal, Operator};
use kilim::{
    BackendId, ErrorCode, Fact, Graph, LoadOptions, Placement, RunOptions, Runtime, Tensor,
};

/// One node with its inputs and what it must give.
pub struct Case {
    pub name: String,
    pub op: Arc<dyn Operator>,
    pub inputs: Vec<Input>,
    /// Shape and elements of each output.
    pub want: Vec<(Vec<usize>, Vec<f64>)>,
    /// Largest difference, relative to the largest magnitude wanted.
    pub tolerance: f64,
}

/// An input of a case.
#[derive(Clone)]
pub enum Input {
    /// Given at run time.
    Fed(Tensor),
    /// A constant of the graph.
    Constant(Tensor),
    /// The value that input number `.0` of the case has.
    Again(usize),
    /// An optional input left out.
    Absent,
}

/// Numbers that are the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Uniform in -1..1.
    pub fn unit(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn array(&mut self, shape: &[usize]) -> Array {
        let n = shape.iter().product();
        Array {
            shape: shape.to_vec(),
            data: (0..n).map(|_| self.unit()).collect(),
        }
    }
}

/// A float32 array of the suite.
#[derive(Clone)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Vec<f32>,
}

impl Array {
    pub fn tensor(&self) -> Tensor {
        Tensor::from_slice(&self.shape, &self.data).expect("the suite's arrays are well formed")
    }

    pub fn fed(&self) -> Input {
        Input::Fed(self.tensor())
    }

    pub fn constant(&self) -> Input {
        Input::Constant(self.tensor())
    }
}

/// int64 constants: axes, shapes.
pub fn ints(values: &[i64]) -> Input {
    let tensor = Tensor::from_slice(&[values.len()], values);
    Input::Constant(tensor.expect("the suite's arrays are well formed"))
}

/// Calls `f` with every index of a shape, in row-major order.
pub fn each_index(shape: &[usize], mut f: impl FnMut(&[usize])) {
    if shape.contains(&0) {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        f(&index);
        let mut axis = shape.len();
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// The flat position of an index.
pub fn flat(shape: &[usize], index: &[usize]) -> usize {
    shape.iter().zip(index).fold(0, |at, (n, i)| at * n + i)
}

/// Every case there is.
pub fn all() -> Vec<Case> {
    let mut cases = pointwise::cases();
    cases.extend(attention::cases());
    cases.extend(dense::cases());
    cases.extend(einsum::cases());
    cases.extend(experts::cases());
    cases.extend(packed::cases());
    cases.extend(rotary::cases());
    cases.extend(rows::cases());
    cases.extend(recurrent::cases());
    cases.extend(shuffles::cases());
    cases.extend(quantized::cases());
    cases
}

/// Stands for a backend where a case was computed while planning.
pub const PLANNED: &str = "plan";

/// How a case went that has right results.
#[derive(Debug)]
pub struct Ran {
    /// The backend that ran the node, or [`PLANNED`].
    pub on: String,
    /// The largest difference of all runs, relative to the largest magnitude wanted.
    pub error: f64,
    /// What the first backend said where it did not take the node.
    pub refusal: Option<String>,
}

/// How a case ended.
#[derive(Debug)]
pub enum Outcome {
    Passed(Ran),
    /// No backend takes the node, for these reasons.
    Refused(String),
    Wrong(String),
}

/// Has kernels cut their work into pieces of so many operations, as they do with work that takes long.
pub struct Cut(pub usize);

impl AbortSignal for Cut {
    fn is_set(&self) -> bool {
        false
    }

    fn piece(&self) -> usize {
        self.0
    }
}

/// Operations of the pieces into which each case is cut.
pub const PIECES: [usize; 3] = [1 << 10, 200, 1];

/// Runs one case; the first of `backends` that takes the node gets it.
pub async fn run(case: &Case, backends: &[BackendId]) -> Outcome {
    let options = LoadOptions {
        backends: backends.to_vec(),
        ..LoadOptions::default()
    };
    run_with(case, &Runtime::shared(), &options).await
}

/// Runs one case on the backends of `options`; the first that takes the node gets it.
pub async fn run_with(case: &Case, runtime: &Runtime, options: &LoadOptions) -> Outcome {
    match attempt(case, runtime, options.clone()).await {
        Ok(outcome) => outcome,
        Err(e) if e.code() == ErrorCode::NoBackend => Outcome::Refused(e.to_string()),
        Err(e) => Outcome::Wrong(e.to_string()),
    }
}

async fn attempt(
    case: &Case,
    runtime: &Runtime,
    mut options: LoadOptions,
) -> kilim::Result<Outcome> {
    let mut graph = Graph::new(case.name.clone());
    let mut inputs = Vec::new();
    let mut feeds = Vec::new();
    for (i, input) in case.inputs.iter().enumerate() {
        inputs.push(match input {
            Input::Fed(t) => {
                let name = format!("input{i}");
                feeds.push((name.clone(), t.clone()));
                Some(graph.add_input(name, Fact::of(t)))
            }
            Input::Constant(t) => Some(graph.add_constant(format!("constant{i}"), t.clone())),
            Input::Again(earlier) => inputs[*earlier],
            Input::Absent => None,
        });
    }
    let outputs = 0..case.want.len();
    let outputs = outputs.map(|i| graph.add_value(format!("out{i}"), Fact::default()));
    let outputs: Vec<_> = outputs.collect();
    graph.outputs.extend(&outputs);
    graph.nodes.push(Node {
        name: case.name.clone(),
        op: case.op.clone(),
        inputs,
        outputs,
    });
    let first = options.backends.first().map(|id| runtime.resolve(id));
    options.placement = Placement::Fixed;
    // More than most machines of continuous integration have; what is cut into pieces is spread over all of them.
    options.context.threads = Some(3);
    let mut session = runtime.session(graph, options).await?;
    let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
    // The second run makes new plans for nothing; the others cut what it computes into pieces.
    let cuts = PIECES.map(|piece| RunOptions {
        abort: Some(Arc::new(Cut(piece))),
        ..RunOptions::default()
    });
    let uncut = [RunOptions::default(), RunOptions::default()];
    let mut error: f64 = 0.0;
    for run in uncut.into_iter().chain(cuts) {
        let got = session.run(&feeds, &run).await?;
        for ((name, got), (shape, want)) in got.iter().zip(&case.want) {
            let got = Tensor::from_slice(got.shape(), &got.to_f64s()?)?;
            let want = Tensor::from_slice(shape, want)?;
            match Comparison::Relative(case.tolerance).verdict(&got, &want, None) {
                Ok(v) if v.passed => error = error.max(v.error),
                Ok(v) => {
                    let message = format!("{name}: error {:.2e} of {:.0e}", v.error, v.tolerance);
                    return Ok(Outcome::Wrong(message));
                }
                Err(e) => return Ok(Outcome::Wrong(format!("{name}: {e}"))),
            }
        }
    }
    let report = session.report();
    let mut ran = report.nodes.iter().map(|n| n.backend.clone());
    let last = ran.rfind(|b| b != PLANNED);
    let mut refusals = report.nodes.iter().flat_map(|n| &n.refusals);
    let refusal = refusals.find(|r| first.as_ref().is_some_and(|id| r.backend == id.as_str()));
    Ok(Outcome::Passed(Ran {
        on: last.unwrap_or_else(|| PLANNED.to_string()),
        error,
        refusal: refusal.map(|r| r.reason.clone()),
    }))
}

//! Mixed precision: which nodes may compute in `f16`.

use std::sync::Arc;

use super::{NodeRecord, RunOptions, Session, SessionOptions};
use crate::backend::{Backend, NodeSpec, TensorSpec};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::graph::{Graph, NodeId};
use crate::memory::Sharing;
use crate::ops::{Fact, InferContext, InputFact};
use crate::passes;
use crate::report::PrecisionReport;
use crate::tensor::Tensor;

/// Half precision where a backend is faster in it, as long as the model's outputs stay close.
#[derive(Clone, Debug, Default)]
pub struct MixedPrecision {
    /// The largest difference of any output from the one in single precision, relative to that
    /// output's largest magnitude.
    pub tolerance: f64,
    /// Inputs to measure with, all of the model's in each. They should be typical ones: what they
    /// do not show is not noticed.
    pub samples: Vec<Vec<(String, Tensor)>>,
}

/// Sets of nodes that are tried before the rest stays in single precision.
const TRIALS: usize = 64;

/// Rewrites `graph`, which the passes are done with. All nodes that a backend prefers in half
/// precision are tried together; where an output is off, halves of them, and so on down to single
/// nodes.
///
/// # Errors
/// `Input` without samples; whatever a run in single precision says.
pub(super) async fn choose(
    graph: &mut Graph,
    backends: &[Arc<dyn Backend>],
    evaluator: &Arc<dyn Backend>,
    options: &SessionOptions,
    mixed: &MixedPrecision,
) -> Result<PrecisionReport> {
    let Some(first) = mixed.samples.first() else {
        return Err(Error::new(
            ErrorCode::Input,
            "mixed precision needs samples to be measured with",
        ));
    };
    let trial = Trial {
        backends,
        evaluator,
        options: SessionOptions {
            optimise: false,
            mixed_precision: None,
            sharing: Sharing::default(),
            plan_unknown_as: None,
            ..options.clone()
        },
    };
    let (_, records) = {
        let mut session = trial.session(graph.clone(), true).await?;
        let first: Vec<_> = borrowed(first)
            .into_iter()
            .map(|(name, tensor)| (name, tensor.into()))
            .collect();
        session.record(&first).await?
    };
    let mut wanted = Vec::with_capacity(mixed.samples.len());
    let mut single = trial.session(graph.clone(), false).await?;
    for sample in &mixed.samples {
        wanted.push(
            single
                .run(&borrowed(sample), &RunOptions::default())
                .await?,
        );
    }
    drop(single);
    let inside = records.iter().filter(|r| r.scope.is_empty());
    let candidates: Vec<NodeId> = inside
        .filter(|r| is_preferred(r, backends))
        .map(|r| r.node)
        .collect();
    let considered = candidates.len();
    let mut chosen: Vec<NodeId> = Vec::new();
    let mut error = 0.0;
    let mut waiting = vec![candidates];
    for _ in 0..TRIALS {
        let Some(more) = waiting.pop() else { break };
        if more.is_empty() {
            continue;
        }
        let mut set = chosen.clone();
        set.extend(&more);
        let mut narrowed = graph.clone();
        passes::narrow(&mut narrowed, &set)?;
        let found = trial.error(narrowed, &mixed.samples, &wanted).await?;
        if found <= mixed.tolerance {
            (chosen, error) = (set, found);
        } else if more.len() > 1 {
            let (left, right) = more.split_at(more.len() / 2);
            waiting.extend([right.to_vec(), left.to_vec()]);
        }
    }
    let name = |id: &NodeId| graph.nodes[id.0].name.clone();
    let nodes = chosen.iter().map(name).collect();
    passes::narrow(graph, &chosen)?;
    Ok(PrecisionReport {
        tolerance: mixed.tolerance,
        error,
        nodes,
        considered,
    })
}

/// Sessions of variants of the graph.
struct Trial<'a> {
    backends: &'a [Arc<dyn Backend>],
    evaluator: &'a Arc<dyn Backend>,
    options: SessionOptions,
}

impl Trial<'_> {
    async fn session(&self, graph: Graph, keep_all: bool) -> Result<Session> {
        let options = SessionOptions {
            keep_all,
            ..self.options.clone()
        };
        let (backends, evaluator) = (self.backends.to_vec(), self.evaluator.clone());
        // A session that is made makes others: the future would contain itself.
        Box::pin(Session::new(graph, backends, evaluator, options)).await
    }

    /// The largest difference of any output on any sample.
    async fn error(
        &self,
        graph: Graph,
        samples: &[Vec<(String, Tensor)>],
        wanted: &[Vec<(String, Tensor)>],
    ) -> Result<f64> {
        let mut session = self.session(graph, false).await?;
        let mut worst = 0.0f64;
        for (sample, wanted) in samples.iter().zip(wanted) {
            let got = session
                .run(&borrowed(sample), &RunOptions::default())
                .await?;
            for ((_, got), (_, want)) in got.iter().zip(wanted) {
                worst = worst.max(difference(got, want)?);
            }
        }
        Ok(worst)
    }
}

fn borrowed(sample: &[(String, Tensor)]) -> Vec<(&str, Tensor)> {
    sample
        .iter()
        .map(|(n, t)| (n.as_str(), t.clone()))
        .collect()
}

/// The largest difference, relative to the largest magnitude of `want`.
fn difference(got: &Tensor, want: &Tensor) -> Result<f64> {
    let (got, want) = (got.to_f64s()?, want.to_f64s()?);
    let scale = want.iter().filter(|v| v.is_finite());
    let scale = scale.fold(0.0f64, |m, v| m.max(v.abs()));
    let apart = got.iter().zip(&want).map(|(&a, &b)| {
        let same = a == b || (a.is_nan() && b.is_nan());
        match (a - b).abs() {
            _ if same => 0.0,
            d if d.is_finite() => d / scale,
            _ => f64::INFINITY,
        }
    });
    Ok(apart.fold(0.0, f64::max))
}

/// Whether the backend that takes the node in single precision would rather have it in half.
fn is_preferred(record: &NodeRecord, backends: &[Arc<dyn Backend>]) -> bool {
    let spec = |tensor: &Tensor, known: bool, half: bool| {
        let mut spec = TensorSpec::new(tensor.dtype(), tensor.shape());
        spec.value = known.then(|| tensor.clone());
        if half && spec.dtype == DType::F32 {
            spec.dtype = DType::F16;
            spec.value = None;
        }
        spec
    };
    let node = |half: bool| {
        let inputs: Vec<Option<TensorSpec>> = record
            .inputs
            .iter()
            .enumerate()
            .map(|(i, input)| {
                let input = input.as_ref()?;
                let planned = record.op.value_inputs().contains(&i);
                Some(spec(
                    &input.tensor,
                    planned || input.constant,
                    half && !planned,
                ))
            })
            .collect();
        let outputs = record.outputs.iter().map(|t| spec(t, false, half));
        (inputs, outputs.collect::<Vec<_>>())
    };
    let single = record.outputs.iter().all(|t| t.dtype() == DType::F32);
    if !single || record.op.is_view() || !record.op.deterministic() {
        return false;
    }
    let ask = |(inputs, outputs): &(Vec<Option<TensorSpec>>, Vec<TensorSpec>),
               of: &dyn Fn(&NodeSpec) -> bool| {
        of(&NodeSpec {
            name: &record.name,
            op: record.op.as_ref(),
            inputs,
            outputs,
        })
    };
    let (as_is, halved) = (node(false), node(true));
    let facts: Vec<Option<InputFact>> = halved
        .0
        .iter()
        .map(|s| {
            s.as_ref().map(|s| InputFact {
                fact: Fact::fixed(s.dtype, &s.shape),
                value: s.value.clone(),
            })
        })
        .collect();
    let inferred = record.op.infer(&InferContext {
        inputs: &facts,
        outputs: record.outputs.len(),
    });
    let stays_half = inferred.is_ok_and(|facts| {
        let mut outputs = facts.iter().take(record.outputs.len());
        outputs.all(|f| f.dtype == Some(DType::F16))
    });
    let taker = backends
        .iter()
        .find(|b| ask(&as_is, &|n| b.supports(n).is_ok()));
    stays_half && taker.is_some_and(|b| ask(&halved, &|n| b.prefers_half(n)))
}

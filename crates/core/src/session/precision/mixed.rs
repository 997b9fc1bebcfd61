//! Mixed precision: which nodes may compute in `f16`.

use std::collections::HashSet;
use std::sync::Arc;

use super::between::between;
use crate::backend::{Backend, Half};
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::{InputFact, TensorSpec};
use crate::graph::{Graph, InferContext, NodeId, NodeSpec, Refusal};
use crate::memory::Sharing;
use crate::passes;
use crate::pin;
use crate::report::{PrecisionReport, SingleReport};
use crate::session::{NodeRecord, RunOptions, Session, SessionOptions};
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
/// `Input` without samples, `InvalidValue` for a tolerance below zero; whatever a run in single
/// precision says.
pub(in crate::session) async fn choose(
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
    if mixed.tolerance.is_nan() || mixed.tolerance < 0.0 {
        let message = "the tolerance of mixed precision is not a number of at least 0";
        return Err(Error::new(ErrorCode::InvalidValue, message).with_got(mixed.tolerance));
    }
    let trial = Trial {
        backends,
        evaluator,
        options: SessionOptions {
            optimise: false,
            observer: None,
            mixed_precision: None,
            tune: false,
            precisions: Vec::new(),
            sharing: Sharing::default(),
            plan_unknown_as: None,
            ..options.clone()
        },
    };
    let runs = trial.run_options();
    let (_, records) = {
        let mut session = trial.session(graph.clone(), true).await?;
        let first: Vec<_> = borrowed(first)
            .into_iter()
            .map(|(name, tensor)| (name, tensor.into()))
            .collect();
        session.record(&first, &runs).await?
    };
    let mut wanted = Vec::with_capacity(mixed.samples.len());
    let mut session = trial.session(graph.clone(), false).await?;
    for sample in &mixed.samples {
        let inputs = borrowed(sample);
        wanted.push(session.run(&inputs, &runs).await?);
    }
    drop(session);
    let mut candidates: Vec<NodeId> = Vec::new();
    let mut movers: Vec<NodeId> = Vec::new();
    let mut single: Vec<SingleReport> = Vec::new();
    for record in records.iter().filter(|r| r.scope.is_empty()) {
        if runs_in_half(record, backends, options) {
            movers.push(record.node);
        }
        match wants_half(record, backends, options) {
            Some(Ok(())) => candidates.push(record.node),
            Some(Err(reason)) => single.push(SingleReport {
                node: record.name.clone(),
                reason,
            }),
            None => {}
        }
    }
    drop(records);
    let considered = candidates.len();
    let name = |id: NodeId| graph.nodes[id.0].name.clone();
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
        let mut halved = graph.clone();
        halve(&mut halved, &set, &movers)?;
        let found = trial.error(halved, &mixed.samples, &wanted).await?;
        if found <= mixed.tolerance {
            (chosen, error) = (set, found);
        } else if let [one] = more[..] {
            single.push(SingleReport {
                node: name(one),
                reason: format!("an output would move by {found:.1e}"),
            });
        } else {
            let (left, right) = more.split_at(more.len() / 2);
            waiting.extend([right.to_vec(), left.to_vec()]);
        }
    }
    single.extend(waiting.into_iter().flatten().map(|id| SingleReport {
        node: name(id),
        reason: format!("not tried by itself: {TRIALS} trials were made"),
    }));
    let nodes = chosen.iter().map(|&id| name(id)).collect();
    let moved: HashSet<String> = between(graph, &chosen, &movers)
        .into_iter()
        .map(name)
        .collect();
    single.retain(|s| !moved.contains(&s.node));
    halve(graph, &chosen, &movers)?;
    Ok(PrecisionReport {
        tolerance: mixed.tolerance,
        error,
        nodes,
        considered,
        single,
    })
}

/// Has `chosen` compute in `f16`, and those of `movers` that lie between them move it.
fn halve(graph: &mut Graph, chosen: &[NodeId], movers: &[NodeId]) -> Result<()> {
    let moved = between(graph, chosen, movers);
    let half: HashSet<NodeId> = chosen.iter().copied().chain(moved).collect();
    passes::retype(graph, &|id| half.contains(&id).then_some(DType::F16))
}

/// Sessions of variants of the graph.
struct Trial<'a> {
    backends: &'a [Arc<dyn Backend>],
    evaluator: &'a Arc<dyn Backend>,
    options: SessionOptions,
}

impl Trial<'_> {
    /// Options of runs that stop with the load that they belong to.
    fn run_options(&self) -> RunOptions {
        RunOptions {
            abort: Some(Arc::new(self.options.interrupt.clone())),
            ..RunOptions::default()
        }
    }

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
            let got = session.run(&borrowed(sample), &self.run_options()).await?;
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

/// Whether half precision is the question: it computes in single precision.
fn is_single(record: &NodeRecord) -> bool {
    let single = record.outputs.iter().all(|t| t.dtype() == DType::F32);
    single && record.op.deterministic()
}

/// Whether the backend that takes the node in single precision runs it in half as well, fast or not.
fn runs_in_half(
    record: &NodeRecord,
    backends: &[Arc<dyn Backend>],
    options: &SessionOptions,
) -> bool {
    let pinned = pin::precision_of(&options.precisions, &record.name, record.op.name()).is_some();
    if pinned || !is_single(record) {
        return false;
    }
    let (as_is, halved) = (Question::of(record, false), Question::of(record, true));
    let taker = backends
        .iter()
        .find(|b| as_is.ask(|n| b.supports(n)).is_ok());
    // No kernel runs for a view.
    record.op.is_view()
        || taker.is_some_and(|b| {
            let off = options.configs.get(&b.describe().id).f16 == Some(Half::Off);
            !off && halved.ask(|n| b.supports(n)).is_ok()
        })
}

/// Whether the backend that takes the node in single precision would rather have it in half, and why
/// not. `None` where half precision is not the question.
fn wants_half(
    record: &NodeRecord,
    backends: &[Arc<dyn Backend>],
    options: &SessionOptions,
) -> Option<Result<(), String>> {
    if !is_single(record) || record.op.is_view() {
        return None;
    }
    if pin::precision_of(&options.precisions, &record.name, record.op.name()).is_some() {
        return Some(Err("the options give its precision".to_string()));
    }
    let (as_is, halved) = (Question::of(record, false), Question::of(record, true));
    let taker = backends
        .iter()
        .find(|b| as_is.ask(|n| b.supports(n)).is_ok())?;
    let id = &taker.describe().id;
    let allowed = options.configs.get(id).f16 != Some(Half::Off);
    let answer = match halved.stays_half() {
        _ if !allowed => Err(Refusal::new("the options turn float16 off")),
        true => halved.ask(|n| taker.prefers_half(n)),
        false => Err(Refusal::new("its outputs have a type of their own")),
    };
    Some(answer.map_err(|refusal| format!("{id}: {}", refusal.reason)))
}

/// A recorded node as backends are asked about it.
struct Question<'a> {
    record: &'a NodeRecord,
    inputs: Vec<Option<TensorSpec>>,
    outputs: Vec<TensorSpec>,
}

impl<'a> Question<'a> {
    /// The question of a record, with `f16` in place of `f32` if `half`.
    fn of(record: &'a NodeRecord, half: bool) -> Question<'a> {
        let spec = |tensor: &Tensor, known: bool, half: bool| {
            let mut spec = TensorSpec::new(tensor.dtype(), tensor.shape());
            spec.value = known.then(|| tensor.clone());
            if half && spec.dtype == DType::F32 {
                spec.dtype = DType::F16;
                let value = spec.value.as_ref();
                spec.value = value.and_then(|t| t.in_precision(DType::F16).ok());
            }
            spec
        };
        let inputs = record.inputs.iter().enumerate().map(|(i, input)| {
            let input = input.as_ref()?;
            let planned = record.op.value_inputs().contains(&i);
            let known = planned || input.constant;
            Some(spec(&input.tensor, known, half && !planned))
        });
        Question {
            record,
            inputs: inputs.collect(),
            outputs: record
                .outputs
                .iter()
                .map(|t| spec(t, false, half))
                .collect(),
        }
    }

    fn ask<T>(&self, of: impl Fn(&NodeSpec) -> T) -> T {
        of(&NodeSpec {
            name: &self.record.name,
            op: self.record.op.as_ref(),
            inputs: &self.inputs,
            outputs: &self.outputs,
        })
    }

    /// Whether all outputs are `f16`.
    fn stays_half(&self) -> bool {
        let facts = self.inputs.iter().map(|s| s.as_ref().map(InputFact::from));
        let facts: Vec<_> = facts.collect();
        let inferred = self
            .record
            .op
            .infer(&InferContext::new(&facts, self.outputs.len()));
        inferred.is_ok_and(|facts| {
            let mut outputs = facts.iter().take(self.outputs.len());
            outputs.all(|f| f.dtype == Some(DType::F16))
        })
    }
}

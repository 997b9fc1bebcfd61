//! Two backends side by side, node by node.

use std::sync::Arc;

use kilim_core::interrupt::AbortSignal;
use kilim_core::session::{NodeRecord, RunOptions};
use kilim_core::{
    Backend, BackendId, Datum, ErrorCode, Fact, Graph, Interrupt, Placement, Result, Tensor,
};
use serde::Serialize;

use crate::compare::{Comparison, Verdict};
use crate::{Runtime, Session, SessionOptions};

/// How [`verify`] compares.
#[derive(Clone)]
pub struct VerifyOptions {
    /// Whose results count.
    pub reference: BackendId,
    /// Who is compared with it; the session's first backend where nobody is named.
    pub candidate: Option<BackendId>,
    /// The largest difference, relative to the largest magnitude of the reference's tensor.
    pub tolerance: f64,
    /// Stops it: all loads and runs that it is made of.
    pub abort: Option<Arc<dyn AbortSignal>>,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        VerifyOptions {
            reference: BackendId::new("cpu"),
            candidate: None,
            tolerance: 1e-3,
            abort: None,
        }
    }
}

/// How tensors compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Agreement {
    Same,
    Differs,
    /// The candidate does not run the node, or its results are random.
    Skipped,
}

/// One node, run by both backends on the same inputs.
#[derive(Clone, Debug, Serialize)]
pub struct NodeCheck {
    pub name: String,
    pub op: String,
    /// The control-flow nodes whose bodies hold it, outermost first.
    pub scope: Vec<String>,
    pub agreement: Agreement,
    /// The largest difference, in the unit of the tolerance.
    pub error: Option<f64>,
    /// Why it was skipped, or what went wrong.
    pub message: Option<String>,
}

/// One output of the whole model, run as the session runs it.
#[derive(Clone, Debug, Serialize)]
pub struct OutputCheck {
    pub name: String,
    pub agreement: Agreement,
    pub error: Option<f64>,
    pub message: Option<String>,
}

/// What [`verify`] found.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    pub reference: String,
    pub candidate: String,
    pub tolerance: f64,
    /// The first node that differs.
    pub first: Option<NodeCheck>,
    /// In the order of execution.
    pub nodes: Vec<NodeCheck>,
    pub outputs: Vec<OutputCheck>,
}

impl Verification {
    /// Whether nothing differs.
    pub fn passed(&self) -> bool {
        let same = |a: Agreement| a != Agreement::Differs;
        self.nodes.iter().all(|n| same(n.agreement))
            && self.outputs.iter().all(|o| same(o.agreement))
    }
}

/// Runs the model of a session on a reference backend, then every node alone on the candidate with the
/// inputs that the reference's node had, so that a node that differs is the one at fault; and
/// the whole model as the session runs it, a run that changes its variables like any other. Nodes are those after the passes, the bodies of
/// control flow included. Everything that the reference computes is held in memory meanwhile.
///
/// # Errors
/// `State` where the session has let go of its weights (see `keep_weights` of the options); whatever
/// the runs of the whole model say; `Aborted` where it was told to stop. What else a single node says is in its check.
pub async fn verify(
    session: &mut Session,
    inputs: &[(&str, Datum)],
    options: &VerifyOptions,
) -> Result<Verification> {
    let reference = find(session, &options.reference).await?;
    let candidate = match &options.candidate {
        Some(id) => find(session, id).await?,
        None => session.backends()[0].clone(),
    };
    let by = Comparison::Relative(options.tolerance);
    let interrupt = Interrupt::on(options.abort.clone());
    let run_options = RunOptions {
        abort: options.abort.clone(),
        ..RunOptions::default()
    };
    let core_options = SessionOptions {
        optimise: false,
        keep_all: true,
        ..alone(session.options(), &reference, &interrupt)
    };
    let mut recording = Session::new(
        session.whole_graph()?.clone(),
        vec![reference.clone()],
        session.evaluator().clone(),
        core_options,
    )
    .await?;
    recording.copy_variables(session)?;
    let (wanted, records) = recording.record(inputs, &run_options).await?;
    drop(recording);
    let mut nodes = Vec::with_capacity(records.len());
    for record in &records {
        interrupt.check()?;
        nodes.push(check_node(session, record, &candidate, &by, &run_options).await);
    }
    let got = session.run_data(inputs, &run_options).await?;
    let outputs = got.iter().zip(&wanted).map(|((name, got), (_, want))| {
        let (agreement, error, message) = judge(by.data_verdict(got, want, None));
        OutputCheck {
            name: name.clone(),
            agreement,
            error,
            message,
        }
    });
    let outputs = outputs.collect();
    let differs = |n: &&NodeCheck| n.agreement == Agreement::Differs;
    Ok(Verification {
        reference: reference.describe().id.to_string(),
        candidate: candidate.describe().id.to_string(),
        tolerance: options.tolerance,
        first: nodes.iter().find(differs).cloned(),
        nodes,
        outputs,
    })
}

/// A backend of the session, or one that the shared runtime can open.
async fn find(session: &Session, id: &BackendId) -> Result<Arc<dyn Backend>> {
    let id = &Runtime::shared().resolve(id);
    let own = session.backends().iter().chain([session.evaluator()]);
    let mut own = own.filter(|b| b.describe().id == *id);
    match own.next() {
        Some(backend) => Ok(backend.clone()),
        None => Runtime::shared().backend(id).await,
    }
}

async fn check_node(
    session: &Session,
    record: &NodeRecord,
    candidate: &Arc<dyn Backend>,
    by: &Comparison,
    options: &RunOptions,
) -> NodeCheck {
    let mut check = NodeCheck {
        name: record.name.clone(),
        op: record.op.name().to_string(),
        scope: record.scope.clone(),
        agreement: Agreement::Skipped,
        error: None,
        message: None,
    };
    if !record.op.deterministic() {
        check.message = Some("its results are random".to_string());
        return check;
    }
    match rerun(session, record, candidate, options).await {
        Ok(outputs) => {
            check.agreement = Agreement::Same;
            for (got, want) in outputs.iter().zip(&record.outputs) {
                let (agreement, error, message) = judge(by.verdict(got, want, None));
                check.error = check.error.into_iter().chain(error).reduce(f64::max);
                if agreement == Agreement::Differs {
                    check.agreement = agreement;
                    check.message = check.message.or(message);
                }
            }
        }
        Err(e) => {
            if e.code() != ErrorCode::NoBackend {
                check.agreement = Agreement::Differs;
            }
            check.message = Some(e.to_string());
        }
    }
    check
}

/// The node alone on another backend.
async fn rerun(
    session: &Session,
    record: &NodeRecord,
    candidate: &Arc<dyn Backend>,
    run_options: &RunOptions,
) -> Result<Vec<Tensor>> {
    let mut graph = Graph::new(&record.name);
    let mut inputs = Vec::with_capacity(record.inputs.len());
    let mut feeds = Vec::new();
    for (i, input) in record.inputs.iter().enumerate() {
        let Some(input) = input else {
            inputs.push(None);
            continue;
        };
        let name = format!("input {i}");
        let known = input.constant || record.op.value_inputs().contains(&i);
        inputs.push(Some(if known {
            graph.add_constant(name, input.tensor.clone())
        } else {
            feeds.push((name.clone(), input.tensor.clone()));
            graph.add_input(name, Fact::of(&input.tensor))
        }));
    }
    for i in 0..record.outputs.len() {
        let out = graph.add_value(format!("output {i}"), Fact::default());
        graph.outputs.push(out);
    }
    let outputs = graph.outputs.clone();
    graph.nodes.push(kilim_core::Node {
        name: record.name.clone(),
        op: record.op.clone(),
        inputs,
        outputs,
    });
    let interrupt = Interrupt::on(run_options.abort.clone());
    let options = SessionOptions {
        optimise: false,
        placement: Placement::Fixed,
        layouts: Default::default(),
        ..alone(session.options(), candidate, &interrupt)
    };
    let backends = vec![candidate.clone()];
    let evaluator = session.evaluator().clone();
    let mut single = Session::new(graph, backends, evaluator, options).await?;
    let feeds: Vec<(&str, Tensor)> = feeds.iter().map(|(n, t)| (&n[..], t.clone())).collect();
    let outputs = single.run(&feeds, run_options).await?;
    Ok(outputs.into_iter().map(|(_, t)| t).collect())
}

/// A session's options for one backend, without what concerns its set of backends.
fn alone(
    options: &SessionOptions,
    backend: &Arc<dyn Backend>,
    interrupt: &Interrupt,
) -> SessionOptions {
    SessionOptions {
        configs: options.configs.only(&backend.describe().id),
        interrupt: interrupt.clone(),
        strict: false,
        pins: Vec::new(),
        precisions: Vec::new(),
        mixed_precision: None,
        sharing: kilim_core::memory::Sharing::default(),
        scheduler: Arc::new(kilim_core::schedule::SyncScheduler),
        ..options.clone()
    }
}

/// Whether two values agree, how far they are apart, and why they cannot be compared.
fn judge(verdict: Result<Verdict>) -> (Agreement, Option<f64>, Option<String>) {
    match verdict {
        Ok(v) if v.passed => (Agreement::Same, Some(v.error), None),
        Ok(v) => (Agreement::Differs, Some(v.error), None),
        Err(e) => (Agreement::Differs, None, Some(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_differs_fails_it_where_no_node_does() {
        let verification = |agreement| Verification {
            reference: "cpu".to_string(),
            candidate: "wgpu".to_string(),
            tolerance: 1e-3,
            first: None,
            nodes: Vec::new(),
            outputs: vec![OutputCheck {
                name: "y".to_string(),
                agreement,
                error: None,
                message: None,
            }],
        };
        assert!(verification(Agreement::Same).passed());
        assert!(verification(Agreement::Skipped).passed());
        assert!(!verification(Agreement::Differs).passed());
    }
}

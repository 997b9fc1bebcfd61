//! The ONNX backend suite, as `tools/conformance/export.py` writes it, and the cases of
//! `references/`, which have its layout.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use kilim::compare::Comparison;
use kilim::core::tensor::AlignedBytes;
use kilim::formats::onnx::read_datum;
use kilim::{
    BackendId, DType, Datum, ErrorCode, Form, Kind, LoadOptions, ModelSource, Placement,
    RunOptions, Session,
};
use serde::Deserialize;

use crate::coverage::Coverage;
use crate::files::Files;
use crate::operators::Cut;
use crate::wholly;

mod rules;

pub use rules::{Ruled, run_without_rules};

/// The kinds of cases of the ONNX suite.
pub const KINDS: [&str; 5] = [
    "node",
    "simple",
    "pytorch-converted",
    "pytorch-operator",
    "light",
];

#[derive(Deserialize)]
struct Index {
    bfloat16_rtol: f64,
    cases: Vec<Case>,
}

impl Index {
    fn read(files: &dyn Files) -> Result<Index, String> {
        let text = files.read("index.json");
        let text = text.ok_or("the suite has no index.json")?;
        serde_json::from_slice(&text).map_err(|e| e.to_string())
    }
}

/// One case of the suite's index.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub name: String,
    pub kind: String,
    path: String,
    /// The model's file.
    #[serde(default = "model_file")]
    model: String,
    /// Files beside the model that it is loaded with.
    #[serde(default)]
    beside: Vec<String>,
    data_sets: usize,
    rtol: f64,
    atol: f64,
    nondeterministic: bool,
    /// Left out where every output is a tensor.
    #[serde(default)]
    outputs: Vec<Declared>,
    /// Later operator sets under which the model means the same.
    #[serde(default)]
    stamps: Vec<i64>,
    /// Where nodes run, `op:OPERATOR=BACKEND`: where backends may compute in several ways, those that do as the reference does.
    #[serde(default)]
    pins: Vec<String>,
}

/// An output as the case's model declares it.
#[derive(Clone, Debug, Deserialize)]
struct Declared {
    /// `float32`, `seq(float32)`, `optional(seq(float32))`, `seq(map)`.
    #[serde(rename = "type")]
    kind: String,
}

impl Declared {
    /// The kind of the reference's file.
    fn kind(&self) -> Kind {
        let form = if self.kind.contains("seq(map") {
            Form::MapSequence
        } else if self.kind.contains("seq(") {
            Form::Sequence
        } else {
            Form::Tensor
        };
        Kind {
            form,
            optional: self.kind.starts_with("optional("),
        }
    }
}

fn model_file() -> String {
    "model.onnx".to_string()
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Passed,
    /// A wrong result, or an error while running.
    Failed(String),
    /// Refused when it was loaded, with the reason.
    Refused(String),
}

/// The outcomes of one kind of cases.
#[derive(Debug, Default)]
pub struct Score {
    pub passed: Vec<String>,
    pub failed: Vec<(String, String)>,
    pub refused: Vec<(String, String)>,
    /// Where the nodes of the cases that passed ran.
    pub coverage: Coverage,
    /// Cases that passed and ran wholly on the backend asked first.
    pub wholly: Vec<String>,
    /// How many of these only have views, shapes and constants, which nothing computes.
    pub idle: usize,
    /// Cases that passed, in part elsewhere: which operators, and why.
    pub partly: Vec<(String, String)>,
}

/// Chooses the cases of some kinds.
pub fn of_kinds<'a>(kinds: &'a [&'a str]) -> impl Fn(&Case) -> bool + 'a {
    |case| kinds.contains(&case.kind.as_str())
}

/// Runs the cases that are chosen on `backends`, under the operator sets that they come with.
pub async fn run(
    files: &dyn Files,
    chosen: &dyn Fn(&Case) -> bool,
    backends: &[BackendId],
    mut done: impl FnMut(&Case, &Outcome),
) -> Result<BTreeMap<String, Score>, String> {
    let index = Index::read(files)?;
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    for case in index.cases.iter().filter(|case| chosen(case)) {
        let score = scores.entry(case.kind.clone()).or_default();
        let outcome = caught(Box::pin(run_case(
            files,
            case,
            index.bfloat16_rtol,
            backends,
            score,
        )))
        .await;
        done(case, &outcome);
        match outcome {
            Outcome::Passed => score.passed.push(case.name.clone()),
            Outcome::Failed(why) => score.failed.push((case.name.clone(), why)),
            Outcome::Refused(why) => score.refused.push((case.name.clone(), why)),
        }
    }
    Ok(scores)
}

/// How other models do that must give what the cases' own give.
#[derive(Debug, Default)]
pub struct Changed {
    pub runs: usize,
    /// What failed though the case's own model passes.
    pub failed: Vec<String>,
    /// How many ran wholly on the backend asked first.
    pub wholly: usize,
}

/// Runs the cases that pass on `backends` under every later operator set in which they mean the same.
pub async fn run_restamped(files: &dyn Files, backends: &[BackendId]) -> Result<Changed, String> {
    run_changed(files, &|_| true, backends, &|case, own| {
        let models = case.stamps.iter().map(|&version| {
            let model = crate::onnx::restamped(own, version)?;
            Some((format!("operator set {version}"), model))
        });
        models.collect()
    })
    .await
}

/// Runs those of the chosen cases that pass on `backends`, without the dimensions that their models declare.
pub async fn run_opened(
    files: &dyn Files,
    chosen: &dyn Fn(&Case) -> bool,
    backends: &[BackendId],
) -> Result<Changed, String> {
    run_changed(files, chosen, backends, &|_, own| {
        let model = crate::onnx::opened(own)?;
        Some(vec![("no dimensions".to_string(), model)])
    })
    .await
}

/// How cases do that were written as ONNX and read again.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
pub struct Converted {
    pub runs: usize,
    /// What gives another result than the case's own model, or does not load again.
    pub failed: Vec<String>,
    /// What ONNX cannot say, with the reason.
    pub refused: Vec<(String, String)>,
}

/// Runs the cases that pass on `backends` as they are written in ONNX, with the operator set that they need. The files are left in the
/// folder `keep`.
#[cfg(not(target_arch = "wasm32"))]
pub async fn run_converted(
    files: &dyn Files,
    backends: &[BackendId],
    keep: &std::path::Path,
) -> Result<Converted, String> {
    let index = Index::read(files)?;
    let mut converted = Converted::default();
    for case in &index.cases {
        let own = files.read(&format!("{}/{}", case.path, case.model));
        let own = own.ok_or_else(|| format!("{} cannot be read", case.name))?;
        let Some(source) = source(files, case, own.clone()) else {
            return Err(format!("the files beside {} cannot be read", case.name));
        };
        let options = options(case, backends);
        // What cannot be read is a matter of other tests.
        let Ok(graph) = kilim::Runtime::shared().parse(source, &options).await else {
            continue;
        };
        let written = kilim_convert::lower(&graph)
            .and_then(|graph| kilim_convert::OnnxModel::new(&graph, &Default::default()))
            .and_then(|model| {
                let mut bytes = Vec::new();
                model.write(&mut bytes).map(|()| bytes)
            });
        let bytes = match written {
            Ok(bytes) => bytes,
            Err(e) if e.code() == ErrorCode::Unsupported => {
                converted.refused.push((case.name.clone(), e.to_string()));
                continue;
            }
            Err(e) => {
                converted.failed.push(format!("{}: {e}", case.name));
                continue;
            }
        };
        let name = format!("{}-{}.onnx", case.kind, case.name.replace('/', "-"));
        std::fs::write(keep.join(name), &bytes).map_err(|e| e.to_string())?;
        let (rtol, again) = (index.bfloat16_rtol, options.clone());
        let run = run_model(files, case, bytes, rtol, options, None);
        converted.runs += 1;
        if let Outcome::Failed(why) | Outcome::Refused(why) = caught(Box::pin(run)).await {
            let run = run_model(files, case, own, rtol, again, None);
            if caught(Box::pin(run)).await == Outcome::Passed {
                converted.failed.push(format!("{}: {why}", case.name));
            }
        }
    }
    Ok(converted)
}

/// Other models that must give what a case's own gives, each with a word of what is other.
type Change = dyn Fn(&Case, &[u8]) -> Option<Vec<(String, Vec<u8>)>>;

async fn run_changed(
    files: &dyn Files,
    chosen: &dyn Fn(&Case) -> bool,
    backends: &[BackendId],
    change: &Change,
) -> Result<Changed, String> {
    let index = Index::read(files)?;
    let (mut changed, mut score) = (Changed::default(), Score::default());
    for case in index.cases.iter().filter(|case| chosen(case)) {
        let unreadable = || format!("{} cannot be read", case.name);
        let own = files.read(&format!("{}/{}", case.path, case.model));
        let own = own.ok_or_else(unreadable)?;
        let mut wrong = Vec::new();
        let mut runs = 0;
        for (what, model) in change(case, &own).ok_or_else(unreadable)? {
            runs += 1;
            let score = Some(&mut score);
            let options = options(case, backends);
            let run = run_model(files, case, model, index.bfloat16_rtol, options, score);
            if let Outcome::Failed(why) | Outcome::Refused(why) = caught(Box::pin(run)).await {
                wrong.push(format!("{}, {what}: {why}", case.name));
            }
        }
        if !wrong.is_empty() {
            let options = options(case, backends);
            let run = run_model(files, case, own, index.bfloat16_rtol, options, None);
            if caught(Box::pin(run)).await != Outcome::Passed {
                continue;
            }
        }
        changed.runs += runs;
        changed.failed.extend(wrong);
    }
    changed.wholly = score.wholly.len();
    Ok(changed)
}

/// A panic is a failure of its case, not of the whole suite.
async fn caught(mut case: Pin<Box<dyn Future<Output = Outcome> + '_>>) -> Outcome {
    std::future::poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| case.as_mut().poll(cx)));
        polled.unwrap_or_else(|_| Poll::Ready(Outcome::Failed("it panicked".to_string())))
    })
    .await
}

/// The options under which cases run: every node on the first backend that takes it.
fn options(case: &Case, backends: &[BackendId]) -> LoadOptions {
    let mut options = LoadOptions {
        backends: backends.to_vec(),
        ..LoadOptions::default()
    };
    options.placement = Placement::Fixed;
    let pins = case.pins.iter().map(|pin| pin.parse());
    options.pins = pins.collect::<Result<_, _>>().expect("the index has pins");
    options
}

async fn run_case(
    files: &dyn Files,
    case: &Case,
    bfloat16_rtol: f64,
    backends: &[BackendId],
    score: &mut Score,
) -> Outcome {
    let Some(model) = files.read(&format!("{}/{}", case.path, case.model)) else {
        return Outcome::Failed("the model file is missing".to_string());
    };
    let options = options(case, backends);
    run_model(files, case, model, bfloat16_rtol, options, Some(score)).await
}

/// A model with the files that stand beside that of the case; `None` where one cannot be read.
fn source(files: &dyn Files, case: &Case, model: Vec<u8>) -> Option<ModelSource> {
    let mut source = ModelSource::from(model);
    if let ModelSource::Bytes { external, .. } = &mut source {
        for name in &case.beside {
            let file = files.read(&format!("{}/{name}", case.path))?;
            let bytes = AlignedBytes::copy_of(&file).ok()?;
            external.insert(name.clone(), Arc::new(bytes));
        }
    }
    Some(source)
}

async fn run_model(
    files: &dyn Files,
    case: &Case,
    model: Vec<u8>,
    bfloat16_rtol: f64,
    options: LoadOptions,
    score: Option<&mut Score>,
) -> Outcome {
    let Some(source) = source(files, case, model) else {
        return Outcome::Failed("a file beside the model cannot be read".to_string());
    };
    let mut session = match kilim::load(source, options).await {
        Ok(session) => session,
        Err(e) => {
            return match e.code() {
                ErrorCode::Unsupported | ErrorCode::NoBackend => Outcome::Refused(e.to_string()),
                _ => Outcome::Failed(e.to_string()),
            };
        }
    };
    // Kernels cut what takes long into pieces; in the second round they cut what is short.
    let cut = RunOptions {
        abort: Some(Arc::new(Cut(100))),
        ..RunOptions::default()
    };
    let rounds = [("", RunOptions::default()), ("cut into pieces, ", cut)];
    let all = |(how, options)| (0..case.data_sets).map(move |set| (set, how, options));
    for (set, how, options) in rounds.iter().map(|(how, o)| (*how, o)).flat_map(all) {
        let folder = format!("{}/test_data_set_{set}", case.path);
        if set == 0 {
            session.reset();
        }
        let wrong = run_set(files, case, bfloat16_rtol, &folder, &mut session, options).await;
        match wrong.map(|wrong| wrong.map(|wrong| format!("{how}{wrong}"))) {
            Ok(None) => {}
            Ok(Some(wrong)) => return Outcome::Failed(wrong),
            Err(e) if matches!(e.code(), ErrorCode::NoBackend | ErrorCode::Unsupported) => {
                return Outcome::Refused(e.to_string());
            }
            Err(e) => return Outcome::Failed(e.to_string()),
        }
    }
    if let Some(score) = score {
        score.coverage.add(&session);
        match wholly::elsewhere(&session) {
            list if list.is_empty() => {
                score.wholly.push(case.name.clone());
                score.idle += usize::from(!wholly::has_work(&session));
            }
            list => score.partly.push((case.name.clone(), list.join("; "))),
        }
    }
    Outcome::Passed
}

/// What is wrong with the outputs of a run, if anything is.
fn wrong_output(
    files: &dyn Files,
    case: &Case,
    bfloat16_rtol: f64,
    folder: &str,
    outputs: &[(String, Datum)],
) -> kilim::Result<Option<String>> {
    for (i, (name, got)) in outputs.iter().enumerate() {
        let Some(bytes) = files.read(&format!("{folder}/output_{i}.pb")) else {
            return Ok(Some(format!("the output `{name}` has no reference")));
        };
        let kind = case.outputs.get(i).map(Declared::kind).unwrap_or_default();
        let want = read_datum(&bytes, kind)?.1;
        if case.nondeterministic {
            let (Datum::Tensor(got), Datum::Tensor(want)) = (got, &want) else {
                return Ok(Some(format!("the output `{name}` is not a tensor")));
            };
            if got.shape() != want.shape() || got.dtype() != want.dtype() {
                return Ok(Some(format!(
                    "the output `{name}` has another shape or type"
                )));
            }
            continue;
        }
        let rtol = match &want {
            Datum::Tensor(want) if want.dtype() == DType::BF16 => bfloat16_rtol.max(case.rtol),
            _ => case.rtol,
        };
        let by = Comparison::Close {
            rtol,
            atol: case.atol,
        };
        let verdict = by.data_verdict(got, &want, None)?;
        if !verdict.passed {
            return Ok(Some(format!(
                "the output `{name}` is {:.1} tolerances off",
                verdict.error
            )));
        }
    }
    Ok(None)
}

/// `Some` says what is wrong with the result.
async fn run_set(
    files: &dyn Files,
    case: &Case,
    bfloat16_rtol: f64,
    folder: &str,
    session: &mut Session,
    options: &RunOptions,
) -> kilim::Result<Option<String>> {
    let mut inputs = Vec::new();
    let ports = session.inputs().to_vec();
    for (i, port) in ports.iter().enumerate() {
        if let Some(bytes) = files.read(&format!("{folder}/input_{i}.pb")) {
            inputs.push((port.name.as_str(), read_datum(&bytes, port.fact.kind)?.1));
        }
    }
    let outputs = session.run_data(&inputs, options).await?;
    if let Some(wrong) = wrong_output(files, case, bfloat16_rtol, folder, &outputs)? {
        return Ok(Some(wrong));
    }
    let next = format!("{folder}/output_{}.pb", outputs.len());
    if files.read(&next).is_some() {
        return Ok(Some("the reference has more outputs".to_string()));
    }
    Ok(None)
}

/// The cases that `exclusions.txt` lists in lines `NAME  reason`: they fail, and cannot pass.
pub struct Exclusions(Vec<(String, String)>);

impl Exclusions {
    pub fn parse(text: &str) -> Exclusions {
        let lines = text
            .lines()
            .filter(|l| !l.trim().is_empty() && !l.starts_with('#'))
            .filter_map(|l| l.split_once(char::is_whitespace))
            .map(|(name, reason)| (name.to_string(), reason.trim().to_string()));
        Exclusions(lines.collect())
    }

    /// Why a case is left out.
    pub fn reason(&self, case: &str) -> Option<&str> {
        let entry = self.0.iter().find(|(name, _)| name == case);
        entry.map(|(_, reason)| reason.as_str())
    }

    /// A case that did not pass, as the log says it.
    pub fn describe(&self, case: &Case, why: &str) -> String {
        let (kind, name) = (&case.kind, &case.name);
        match self.reason(name) {
            Some(reason) => format!("excluded {kind} {name}: {why}; {reason}"),
            None => format!("FAILED {kind} {name}: {why}"),
        }
    }

    /// The failures that nothing excuses.
    pub fn wrong(&self, score: &Score) -> Vec<String> {
        let failed = score.failed.iter();
        failed
            .filter(|(name, _)| self.reason(name).is_none())
            .map(|(name, why)| format!("{name}: {why}"))
            .collect()
    }

    /// `1878 passed, 0 failed, 5 excluded, 1 refused`.
    pub fn counts(&self, score: &Score) -> String {
        let failed = self.wrong(score).len();
        format!(
            "{} passed, {failed} failed, {} excluded, {} refused",
            score.passed.len(),
            score.failed.len() - failed,
            score.refused.len()
        )
    }
}

/// Refusals counted by the operator or reason they name, most frequent first.
pub fn reasons(score: &Score) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, why) in &score.refused {
        let short: String = why.chars().take(100).collect();
        *counts.entry(short).or_default() += 1;
    }
    let mut list: Vec<_> = counts.into_iter().collect();
    list.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    list
}

//! `kilim check`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use kilim::compare::Comparison;
use kilim::{Datum, ErrorCode, Result, RunOptions, Session, SessionOptions};
use serde::Serialize;

use crate::Failure;
use crate::check::manifest::{Case, Manifest, Variant};
use crate::check::testset;
use crate::data::npy;
use crate::model::{self, BackendArgs};

#[derive(clap::Args)]
pub struct Args {
    /// The model file; without it a manifest is needed.
    #[arg(required_unless_present = "manifest")]
    model: Option<PathBuf>,
    /// Cases: ONNX `test_data_set_N` folders, or INPUTS.npz:REFERENCES.npz (.npy for one tensor).
    cases: Vec<String>,
    /// A manifest with models, stored inputs, references and tolerances.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "cases"])]
    manifest: Option<PathBuf>,
    /// Only models whose name contains this.
    #[arg(long, value_name = "NAME", requires = "manifest")]
    only: Option<String>,
    /// Only these formats.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FORMATS",
        requires = "manifest"
    )]
    format: Option<Vec<String>>,
    /// Relative tolerance of cases given by hand.
    #[arg(long, default_value_t = 1e-3)]
    rtol: f64,
    /// Absolute tolerance of cases given by hand.
    #[arg(long, default_value_t = 1e-7)]
    atol: f64,
    /// Print every case as a line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    backends: BackendArgs,
}

/// The result of one case.
#[derive(Serialize)]
struct Line {
    model: String,
    file: String,
    case: String,
    /// `pass`, `miss`, `error`, or `refused` with a reason.
    status: &'static str,
    /// The worst of all outputs, in the unit of the tolerance.
    error: Option<f64>,
    tolerance: Option<f64>,
    output: Option<String>,
    message: Option<String>,
    backends: Vec<String>,
    seconds: f64,
}

#[derive(Default)]
struct Tally {
    passed: usize,
    missed: usize,
    refused: usize,
}

impl Tally {
    fn add(&mut self, line: &Line, json: bool) {
        match line.status {
            "pass" => self.passed += 1,
            "refused" => self.refused += 1,
            _ => self.missed += 1,
        }
        if json {
            if let Ok(text) = serde_json::to_string(line) {
                println!("{text}");
            }
            return;
        }
        let figures = match (line.error, line.tolerance) {
            (Some(e), Some(t)) => format!("error {e:.2e} of {t:.2e}"),
            _ => line.message.clone().unwrap_or_default(),
        };
        println!(
            "{:8} {} {} [{}] {figures} on {} ({:.2} s)",
            line.status,
            line.model,
            line.file,
            line.case,
            line.backends.join("+"),
            line.seconds
        );
    }

    fn finish(self, json: bool) -> Result<(), Failure> {
        let Tally {
            passed,
            missed,
            refused,
        } = self;
        if json {
            println!(r#"{{"passed":{passed},"missed":{missed},"refused":{refused}}}"#);
        } else {
            println!("{passed} passed, {missed} missed, {refused} refused");
        }
        if missed > 0 {
            Err(Failure::Missed)
        } else {
            Ok(())
        }
    }
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let options = args.backends.options()?;
    let mut tally = Tally::default();
    if let Some(file) = &args.manifest {
        let manifest = Manifest::read(file)?;
        let folder = file.parent().unwrap_or(Path::new("."));
        for model in &manifest.models {
            if args.only.as_ref().is_some_and(|n| !model.name.contains(n)) {
                continue;
            }
            for variant in &model.variants {
                let wanted = args
                    .format
                    .as_ref()
                    .is_none_or(|f| f.contains(&variant.format));
                if wanted {
                    let folder = folder.join(&model.name);
                    let lines = variant_lines(&model.name, variant, &folder, &options).await;
                    for line in lines {
                        tally.add(&line, args.json);
                    }
                }
            }
        }
        return tally.finish(args.json);
    }
    let Some(path) = &args.model else {
        return Err(Failure::Usage(
            "a model or a manifest is needed".to_string(),
        ));
    };
    if args.cases.is_empty() {
        return Err(Failure::Usage("no case is given".to_string()));
    }
    let mut session = model::load(path, options).await?;
    let by = Comparison::Close {
        rtol: args.rtol,
        atol: args.atol,
    };
    for case in &args.cases {
        let start = Instant::now();
        let case = testset::read(case, session.inputs(), session.outputs())?;
        let outputs: Vec<_> = case
            .outputs
            .into_iter()
            .map(|(n, t)| (n, t, None))
            .collect();
        let verdict = compare(&mut session, &case.inputs, &outputs, &by).await;
        let line = line_of(
            verdict,
            &session,
            start,
            path.display().to_string(),
            case.name,
        );
        tally.add(&line, args.json);
    }
    tally.finish(args.json)
}

async fn variant_lines(
    model: &str,
    variant: &Variant,
    folder: &Path,
    options: &SessionOptions,
) -> Vec<Line> {
    let file = variant.files.first().cloned().unwrap_or_default();
    let start = Instant::now();
    let loaded = Session::load(folder.join(&file).as_path(), options.clone()).await;
    let mut lines = Vec::new();
    match loaded {
        Ok(mut session) => {
            for case in &variant.cases {
                let start = Instant::now();
                let verdict = run_case(&mut session, variant, case, folder).await;
                let mut line = line_of(verdict, &session, start, file.clone(), case.case.clone());
                line.model = model.to_string();
                lines.push(line);
            }
        }
        Err(error) => {
            let refused = is_refusal(&error);
            for case in &variant.cases {
                lines.push(Line {
                    model: model.to_string(),
                    file: file.clone(),
                    case: case.case.clone(),
                    status: if refused { "refused" } else { "error" },
                    error: None,
                    tolerance: None,
                    output: None,
                    message: Some(error.to_string()),
                    backends: Vec::new(),
                    seconds: start.elapsed().as_secs_f64(),
                });
            }
        }
    }
    lines
}

/// Whether an error says that Kilim does not do this, rather than that it failed.
fn is_refusal(error: &kilim::Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::Unsupported | ErrorCode::UnknownFormat | ErrorCode::NoBackend
    )
}

/// The worst output: its name, error and tolerance, and whether all passed.
type Worst = (String, f64, f64, bool);

async fn run_case(
    session: &mut Session,
    variant: &Variant,
    case: &Case,
    folder: &Path,
) -> Result<Worst> {
    let by = match &variant.tolerance {
        serde_json::Value::String(text) => Comparison::parse(text)?,
        other => Comparison::parse(&other.to_string())?,
    };
    let mut inputs = Vec::with_capacity(case.inputs.len());
    for input in &case.inputs {
        let tensor = npy::read_named(&folder.join(&input.file), &input.key)?;
        inputs.push((input.name.clone(), tensor.into()));
    }
    let mut outputs = Vec::with_capacity(case.outputs.len());
    for output in &case.outputs {
        let tensor = npy::read_named(&folder.join(&output.file), &output.key)?;
        outputs.push((
            output.name.clone(),
            tensor.into(),
            Some(output.dtype.clone()),
        ));
    }
    compare(session, &inputs, &outputs, &by).await
}

async fn compare(
    session: &mut Session,
    inputs: &[(String, Datum)],
    wanted: &[(String, Datum, Option<String>)],
    by: &Comparison,
) -> Result<Worst> {
    let inputs: Vec<(&str, Datum)> = inputs
        .iter()
        .map(|(n, t)| (n.as_str(), t.clone()))
        .collect();
    let outputs = session.run_data(&inputs, &RunOptions::default()).await?;
    let mut worst: Worst = (String::new(), -1.0, 0.0, true);
    for (name, want, dtype) in wanted {
        let got = outputs.iter().find(|(n, _)| n == name).ok_or_else(|| {
            kilim::Error::new(
                ErrorCode::Input,
                format!("the model has no output `{name}`"),
            )
        })?;
        let v = by
            .data_verdict(&got.1, want, dtype.as_deref())
            .map_err(|e| e.with_input(name))?;
        if v.error > worst.1 {
            worst = (name.clone(), v.error, v.tolerance, worst.3);
        }
        worst.3 &= v.passed;
    }
    Ok(worst)
}

fn line_of(
    verdict: Result<Worst>,
    session: &Session,
    start: Instant,
    file: String,
    case: String,
) -> Line {
    let report = session.report();
    let mut backends: Vec<String> = Vec::new();
    for node in &report.nodes {
        if node.backend != "plan" && !backends.contains(&node.backend) {
            backends.push(node.backend.clone());
        }
    }
    let mut line = Line {
        model: String::new(),
        file,
        case,
        status: "error",
        error: None,
        tolerance: None,
        output: None,
        message: None,
        backends,
        seconds: start.elapsed().as_secs_f64(),
    };
    match verdict {
        Ok((output, error, tolerance, passed)) => {
            line.status = if passed { "pass" } else { "miss" };
            line.error = Some(error);
            line.tolerance = Some(tolerance);
            line.output = Some(output);
        }
        Err(e) => {
            line.message = Some(e.to_string());
            if is_refusal(&e) {
                line.status = "refused";
            }
        }
    }
    line
}

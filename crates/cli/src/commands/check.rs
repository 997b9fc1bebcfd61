//! `kilim check`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use kilim::compare::{Comparison, Rule};
use kilim::{Error, ErrorCode, LoadOptions, Result, Runtime, Session};

use crate::Failure;
use crate::check::manifest::{Case, Manifest, Variant};
use crate::check::testset;
use crate::check::verdict::{Found, Line, Tally, compare};
use crate::data::{DataLimits, npy};
use crate::model::{self, BackendArgs, not_negative};

pub const EXAMPLES: &str = "\
Examples:
  kilim check model.onnx test_data_set_0 test_data_set_1
  kilim check model.onnx inputs.npz:references.npz --rtol 1e-4
  kilim check --manifest manifest.json --format onnx,tflite --backends cpu";

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
    /// Formats of the models that are checked; all by default.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FORMATS",
        requires = "manifest"
    )]
    format: Option<Vec<String>>,
    /// Relative tolerance of cases given by hand.
    #[arg(long, default_value_t = 1e-3, value_parser = not_negative)]
    rtol: f64,
    /// Absolute tolerance of cases given by hand.
    #[arg(long, default_value_t = 1e-7, value_parser = not_negative)]
    atol: f64,
    /// Print every case as a line of JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: DataLimits,
    #[command(flatten)]
    backends: BackendArgs,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let options = args.backends.options()?;
    let mut tally = Tally::default();
    match (&args.manifest, &args.model) {
        (Some(file), _) => models_of(file, &args, &options, &mut tally).await?,
        (None, Some(model)) => cases_of(model, &args, options, &mut tally).await?,
        (None, None) => {
            let message = "a model or a manifest is needed";
            return Err(Failure::Usage(message.to_string()));
        }
    }
    args.backends.keep_cache()?;
    tally.finish(args.json)
}

/// The cases given on the command line.
async fn cases_of(
    file: &Path,
    args: &Args,
    options: LoadOptions,
    tally: &mut Tally,
) -> Result<(), Failure> {
    if args.cases.is_empty() {
        return Err(Failure::Usage("no case is given".to_string()));
    }
    if let Some(case) = args.cases.iter().find(|case| !testset::is_case(case)) {
        let message =
            format!("the case `{case}` is neither a folder nor of the form INPUTS:REFERENCES");
        return Err(Failure::Usage(message));
    }
    let mut session = model::load(file, options).await?;
    let by = Rule::Each(Comparison::Close {
        rtol: args.rtol,
        atol: args.atol,
    });
    for case in &args.cases {
        let start = Instant::now();
        let case = testset::read(case, session.inputs(), session.outputs(), &args.limits)?;
        let verdict = compare(&mut session, &case.inputs, &case.outputs, &by).await;
        let line = Line::of(verdict, Some(&session), start);
        let file = file.display().to_string();
        tally.add(&line.named("", &file, &case.name), args.json);
    }
    Ok(())
}

/// The models of a manifest that the arguments ask for.
async fn models_of(
    file: &Path,
    args: &Args,
    options: &LoadOptions,
    tally: &mut Tally,
) -> Result<(), Failure> {
    // A backend that is not there at all is no refusal of a model.
    Runtime::shared().backends(options).await?;
    let manifest = Manifest::read(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    for model in &manifest.models {
        if args.only.as_ref().is_some_and(|n| !model.name.contains(n)) {
            continue;
        }
        for variant in &model.variants {
            let formats = args.format.as_ref();
            if formats.is_some_and(|f| !f.contains(&variant.format)) {
                continue;
            }
            let bar = model::spinner(format!("checking {}", model.name));
            let lines = lines_of(&model.name, variant, folder, options, &args.limits).await;
            bar.finish_and_clear();
            for line in &lines {
                tally.add(line, args.json);
            }
        }
    }
    Ok(())
}

async fn lines_of(
    model: &str,
    variant: &Variant,
    folder: &Path,
    options: &LoadOptions,
    limits: &DataLimits,
) -> Vec<Line> {
    let folder = folder.join(model);
    let mut start = Instant::now();
    let (file, mut loaded) = load(&folder, &variant.files, options).await;
    let mut lines = Vec::new();
    for case in &variant.cases {
        let line = match &mut loaded {
            Ok(session) => {
                start = Instant::now();
                let verdict = run_case(session, variant, case, &folder, limits).await;
                Line::of(verdict, Some(session), start)
            }
            Err(error) => Line::of(Err(error.clone()), None, start),
        };
        lines.push(line.named(model, &file, &case.case));
    }
    lines
}

/// The model among the files of a variant: the first whose format is known.
async fn load(folder: &Path, files: &[String], options: &LoadOptions) -> (String, Result<Session>) {
    let mut unknown = None;
    for file in files {
        let loaded = kilim::load(folder.join(file).as_path(), options.clone()).await;
        match loaded {
            Err(error) if error.code() == ErrorCode::UnknownFormat => {
                unknown = unknown.or(Some((file.clone(), Err(error))));
            }
            loaded => return (file.clone(), loaded),
        }
    }
    unknown.unwrap_or_else(|| {
        let error = Error::new(ErrorCode::Io, "the manifest names no file of the model");
        (String::new(), Err(error))
    })
}

async fn run_case(
    session: &mut Session,
    variant: &Variant,
    case: &Case,
    folder: &Path,
    limits: &DataLimits,
) -> Result<Found> {
    let by = variant.rule()?;
    let mut inputs = Vec::with_capacity(case.inputs.len());
    for input in &case.inputs {
        let tensor = npy::read_named(&folder.join(&input.file), &input.key, limits)?;
        inputs.push((input.name.clone(), tensor.into()));
    }
    let mut outputs = Vec::with_capacity(case.outputs.len());
    for output in &case.outputs {
        let tensor = npy::read_named(&folder.join(&output.file), &output.key, limits)?;
        let dtype = Some(output.dtype.clone());
        outputs.push((output.name.clone(), tensor.into(), dtype));
    }
    compare(session, &inputs, &outputs, &by).await
}

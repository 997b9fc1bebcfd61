//! `kilim conform`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use comfy_table::{Table, presets};
use kilim::verify::{Agreement, Verification};
use kilim::{BackendId, ErrorCode, LoadOptions, Runtime, VerifyOptions};
use kilim_conform::Score;
use serde::Serialize;

use crate::data::io_error;
use crate::data::source::InputArgs;
use crate::model::{self, BackendArgs};
use crate::{Failure, out};

pub const EXAMPLES: &str = "Examples:
  kilim conform --backends xpu --plugin-path target/debug
  kilim conform --backends xpu --cases conv --models tests/models";

#[derive(clap::Args)]
pub struct Args {
    /// Run only the operator cases whose names begin like that.
    #[arg(long, default_value = "", value_name = "NAME")]
    cases: String,
    /// Compare the models in this folder, too, node by node with `cpu`, on random inputs.
    #[arg(long, value_name = "FOLDER")]
    models: Option<PathBuf>,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    backends: BackendArgs,
}

/// What became of one model.
#[derive(Serialize)]
struct ModelScore {
    model: String,
    /// What was compared; nothing where the model could not be run.
    found: Option<Verification>,
    /// Why the model could not be run.
    message: Option<String>,
}

impl ModelScore {
    fn passed(&self) -> bool {
        self.found.as_ref().is_some_and(Verification::passed)
    }

    fn count(&self, agreement: Agreement) -> usize {
        let nodes = self.found.iter().flat_map(|found| &found.nodes);
        nodes.filter(|n| n.agreement == agreement).count()
    }
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let options = options(&args)?;
    let runtime = Runtime::shared();
    let bar = model::spinner("running operator cases".to_string());
    let count = |case: &kilim_conform::operators::Case, _: &_| bar.set_message(case.name.clone());
    let score = kilim_conform::conform(&runtime, &options, &args.cases, count).await;
    bar.finish_and_clear();
    let score = score?;
    let mut models = Vec::new();
    if let Some(folder) = &args.models {
        for file in files(folder)? {
            models.extend(compare(&args, &file).await?);
        }
    }
    if args.json {
        out::json(&serde_json::json!({ "operators": score, "models": models }))?;
    } else {
        print(&score);
        print_models(&models);
    }
    match score.wrong.is_empty() && models.iter().all(ModelScore::passed) {
        true => Ok(()),
        false => Err(Failure::Missed),
    }
}

/// The options of the command line, with `cpu` behind the backends where this build has it: what the first refuses has to
/// run somewhere, so that the report has the reason.
fn options(args: &Args) -> Result<LoadOptions, Failure> {
    let mut options = args.backends.options()?;
    let cpu = BackendId::new("cpu");
    if !options.backends.contains(&cpu) && Runtime::shared().ids().contains(&cpu) {
        options.backends.push(cpu);
    }
    Ok(options)
}

/// The files of a folder, in the order of their names.
fn files(folder: &std::path::Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(|e| io_error(folder, e))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.is_file());
    files.sort_unstable();
    Ok(files)
}

/// Compares a model; `None` for a file that is none.
async fn compare(args: &Args, file: &std::path::Path) -> Result<Option<ModelScore>, Failure> {
    let mut options = options(args)?;
    options.keep_weights = true;
    let name = file.file_name().unwrap_or_default();
    let mut score = ModelScore {
        model: name.to_string_lossy().into_owned(),
        found: None,
        message: None,
    };
    let found = async {
        let mut session = kilim::load(file, options).await?;
        let ports = session.inputs().to_vec();
        let inputs = args.inputs.read(&ports)?;
        let found = kilim::verify(&mut session, &inputs, &VerifyOptions::default()).await;
        found.map_err(Failure::from)
    };
    match found.await {
        Ok(found) => score.found = Some(found),
        Err(Failure::Kilim(e)) if e.code() == ErrorCode::UnknownFormat => return Ok(None),
        Err(Failure::Kilim(e)) => score.message = Some(e.sentence()),
        Err(Failure::Usage(what)) => score.message = Some(what),
        Err(other) => return Err(other),
    }
    Ok(Some(score))
}

fn print(score: &Score) {
    let (passed, refused, wrong) = (&score.passed, &score.refused, &score.wrong);
    say!(
        "{} ({}): {} operator cases passed, {} were refused, {} are wrong, {} need no backend",
        score.backend,
        score.device,
        passed.len(),
        refused.len(),
        wrong.len(),
        score.planned
    );
    for w in wrong {
        say!("wrong: {}: {}", w.case, w.what);
    }
    if let Some(worst) = score.worst() {
        let (error, tolerance) = (worst.error, worst.tolerance);
        say!(
            "closest to its tolerance: {}, {error:.2e} of {tolerance:.0e}",
            worst.case
        );
    }
    let mut operators: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let ended = passed.iter().map(|p| (&p.op, 0));
    let ended = ended.chain(refused.iter().map(|r| (&r.op, 1)));
    for (op, how) in ended.chain(wrong.iter().map(|w| (&w.op, 2))) {
        operators.entry(op).or_default()[how] += 1;
    }
    let mut table = Table::new();
    let head = ["\noperator", "\npassed", "\nrefused", "\nwrong"];
    table.load_preset(presets::NOTHING).set_header(head);
    for (op, counts) in operators {
        let counts = counts.map(|n| n.to_string());
        table.add_row([op, &counts[0], &counts[1], &counts[2]]);
    }
    say!("{table}");
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for r in refused {
        *reasons.entry(&r.reason).or_default() += 1;
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    for (reason, count) in reasons {
        say!("refused {count}: {reason}");
    }
}

fn print_models(models: &[ModelScore]) {
    for m in models {
        let Some(found) = &m.found else {
            let why = m.message.as_deref().unwrap_or_default();
            say!("model {}: not run: {why}", m.model);
            continue;
        };
        let [same, differ, skipped] =
            [Agreement::Same, Agreement::Differs, Agreement::Skipped].map(|a| m.count(a));
        say!(
            "model {}: {same} nodes agree, {differ} differ, {skipped} were skipped",
            m.model
        );
        if let Some(first) = &found.first {
            say!("  the first that differs: {} ({})", first.name, first.op);
        }
    }
}

//! `kilim verify`.

use comfy_table::{Table, presets};
use kilim::verify::{Agreement, NodeCheck, Verification};
use kilim::{BackendId, VerifyOptions};

use crate::Failure;
use crate::data::source::InputArgs;
use crate::mixed;
use crate::model::{self, not_negative};
use crate::out;
use crate::session::ModelArgs;

#[derive(clap::Args)]
pub struct Args {
    /// The backend whose results count.
    #[arg(long, default_value = "cpu", value_name = "ID")]
    reference: String,
    /// The backend that is compared with it; the first of `--backends` where none is named.
    #[arg(long, value_name = "ID")]
    candidate: Option<String>,
    /// The largest difference, relative to the largest magnitude of the reference's tensor.
    #[arg(long, default_value_t = VerifyOptions::default().tolerance, value_parser = not_negative)]
    tolerance: f64,
    /// Show every node.
    #[arg(long)]
    all: bool,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    model: ModelArgs,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let mut wanted = args.model.backends.options()?;
    wanted.keep_weights = true;
    let mut session = args.model.load_with(wanted).await?;
    let ports = session.inputs().to_vec();
    let inputs = args.inputs.read(&ports)?;
    let options = VerifyOptions {
        reference: BackendId::from(args.reference.as_str()),
        candidate: args.candidate.as_deref().map(BackendId::from),
        tolerance: args.tolerance,
        ..VerifyOptions::default()
    };
    let bar = model::spinner("comparing".to_string());
    let found = kilim::verify(&mut session, &inputs, &options).await;
    bar.finish_and_clear();
    let found = found?;
    args.model.backends.keep_cache()?;
    if args.json {
        out::json(&found)?;
    } else {
        print(&found, args.all);
        mixed::print(&session.report());
    }
    match found.passed() {
        true => Ok(()),
        false => Err(Failure::Missed),
    }
}

fn print(found: &Verification, all: bool) {
    let count = |a| found.nodes.iter().filter(|n| n.agreement == a).count();
    say!(
        "{} against {}, tolerance {:e}: {} nodes agree, {} differ, {} were skipped",
        found.candidate,
        found.reference,
        found.tolerance,
        count(Agreement::Same),
        count(Agreement::Differs),
        count(Agreement::Skipped),
    );
    for output in &found.outputs {
        let error = output
            .error
            .map_or_else(String::new, |e| format!("{e:.2e}"));
        let why = output.message.as_deref().unwrap_or_default();
        say!(
            "output {}: {} {error} {why}",
            output.name,
            word(output.agreement)
        );
    }
    if let Some(first) = &found.first {
        say!("the first node that differs: {}", place(first));
    }
    let shown = |n: &&NodeCheck| all || n.agreement != Agreement::Same;
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "\nnode",
        "\noperator",
        "\nresult",
        "\nerror",
        "\nreason",
    ]);
    for n in found.nodes.iter().filter(shown) {
        table.add_row([
            place(n),
            n.op.clone(),
            word(n.agreement).to_string(),
            n.error.map_or_else(String::new, |e| format!("{e:.2e}")),
            n.message.clone().unwrap_or_default(),
        ]);
    }
    if table.row_iter().next().is_some() {
        say!("{table}");
    }
}

fn word(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Same => "same",
        Agreement::Differs => "differs",
        Agreement::Skipped => "skipped",
    }
}

fn place(n: &NodeCheck) -> String {
    let mut path = n.scope.clone();
    path.push(n.name.clone());
    path.join("/")
}

//! `kilim inspect`.

mod drawing;
mod memory;
mod metadata;
mod nodes;
mod passes;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use comfy_table::{ContentArrangement, Table, presets};
use kilim::core::passes::{Change, Rule};
use kilim::{ErrorCode, Metadata, Port, Report, Runtime, Session};
use serde::Serialize;

use crate::Failure;
use crate::data::io_error;
use crate::mixed;
use crate::out;
use crate::session::ModelArgs;

use nodes::{Document, Watch};

pub const EXAMPLES: &str = "\
Examples:
  kilim inspect model.onnx --backends wgpu,cpu
  kilim inspect model.onnx --json | jq .report.backends
  kilim inspect model.onnx --nodes json | jq '.nodes[0].attributes'
  kilim inspect model.onnx --memory plan.svg
  kilim inspect model.tflite --svg graph.svg
  kilim inspect model.onnx --passes --without transposes";

#[derive(clap::Args)]
pub struct Args {
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    /// Draw where every intermediate is in memory, and when, into an SVG file.
    #[arg(long, value_name = "FILE")]
    memory: Option<PathBuf>,
    /// Draw the graph as the file has it into an SVG file.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// List the rules that optimise the graph, and what each of them changed.
    #[arg(long)]
    passes: bool,
    /// Print the nodes as backends see them: after all passes, with attributes, types and shapes.
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with_all = ["json", "passes"])]
    nodes: Option<nodes::Format>,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
struct PortView {
    name: String,
    dtype: Option<&'static str>,
    /// Numbers, names of symbolic dimensions, `?`.
    shape: Option<Vec<String>>,
}

#[derive(Serialize)]
struct View<'a> {
    metadata: &'a Metadata,
    inputs: Vec<PortView>,
    outputs: Vec<PortView>,
    report: Report,
    /// What the passes changed, with `--passes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    passes: Option<Vec<Change>>,
}

fn view(ports: &[Port]) -> Vec<PortView> {
    ports
        .iter()
        .map(|p| PortView {
            name: p.name.clone(),
            dtype: p.fact.dtype.map(|d| d.name()),
            shape: p
                .fact
                .shape
                .as_ref()
                .map(|s| s.0.iter().map(ToString::to_string).collect()),
        })
        .collect()
}

pub async fn run(args: Args) -> Result<(), Failure> {
    if let Some(path) = &args.svg {
        let mut options = args.model.backends.options()?;
        options.structure_only = true;
        let runtime = Runtime::shared();
        let graph = runtime.parse(args.model.file.as_path(), &options).await?;
        let picture = drawing::draw(&graph);
        std::fs::write(path, picture).map_err(|e| io_error(path, e))?;
    }
    let (session, watch, without) = load(&args).await?;
    let report = session.report();
    if let Some(path) = &args.memory {
        std::fs::write(path, memory::draw(&report.memory)).map_err(|e| io_error(path, e))?;
    }
    match args.nodes {
        Some(nodes::Format::Json) => {
            return out::json(&Document {
                nodes: watch.nodes(),
                unplanned_stages: report.unplanned_stages,
            });
        }
        None => {}
    }
    if args.json {
        let view = View {
            metadata: session.metadata(),
            inputs: view(session.inputs()),
            outputs: view(session.outputs()),
            report,
            passes: args.passes.then(|| watch.changes.changes()),
        };
        return out::json(&view);
    }
    metadata::print(session.metadata());
    for (title, ports) in [("inputs", session.inputs()), ("outputs", session.outputs())] {
        say!("{title}");
        for port in ports {
            say!("  {}: {}", port.name, port.fact);
        }
    }
    say!(
        "\nnodes: {} in the file, {} after optimisation",
        report.nodes_loaded,
        report.nodes.len()
    );
    if report.unplanned_stages > 0 {
        say!(
            "{} stages are planned when the data that their shapes depend on is there",
            report.unplanned_stages
        );
    }
    print_backends(&report);
    if report.graph_bytes > 0 {
        say!(
            "\n{} of constants stay on the host for inputs of other shapes",
            bytes(report.graph_bytes)
        );
    }
    memory::print(&report);
    mixed::print(&report);
    print_nodes(&report);
    print_crossings(&report);
    if args.passes {
        passes::print(&watch.changes.changes(), &without);
    }
    Ok(())
}

/// The session, what was seen while it was made, and the rules that it went without. A model is shown without its weights where their file is
/// missing, and unplanned where sizes that are open may not all be 1: it is planned when it runs.
async fn load(args: &Args) -> Result<(Session, Arc<Watch>, Vec<Rule>), Failure> {
    let mut options = args.model.backends.options()?;
    options.plan_unknown_as = Some(1);
    let without = options.without.clone();
    let mut missing = None;
    loop {
        let watch = Arc::new(Watch {
            nodes: args.nodes.map(|_| Mutex::default()),
            ..Watch::default()
        });
        options.observer = Some(watch.clone());
        match args.model.load_with(options.clone()).await {
            Err(Failure::Kilim(error))
                if matches!(error.code(), ErrorCode::Shape | ErrorCode::InvalidValue)
                    && options.plan_unknown_as.is_some() =>
            {
                options.plan_unknown_as = None;
            }
            Err(Failure::Kilim(error))
                if error.code() == ErrorCode::Io && !options.structure_only =>
            {
                options.structure_only = true;
                missing = Some(error);
            }
            loaded => {
                let session = loaded?;
                if let Some(error) = missing {
                    eprintln!(
                        "note: the model is shown without its weights: {}",
                        error.sentence()
                    );
                }
                return Ok((session, watch, without));
            }
        }
    }
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.iter().copied());
    table
}

fn print_backends(report: &Report) {
    let mut t = table(&[
        "\nbackend",
        "\nnodes",
        "\nlaunches",
        "\nweights",
        "\nintermediates",
        "\nunshared",
        "\nplanned",
        "\ndevice",
    ]);
    for b in &report.backends {
        let nodes = report.nodes.iter().filter(|n| n.backend == b.id).count();
        t.add_row([
            b.id.clone(),
            nodes.to_string(),
            b.launches.to_string(),
            bytes(b.constant_bytes),
            bytes(b.intermediate_bytes),
            bytes(b.unshared_bytes),
            bytes(b.planned_bytes),
            b.device.clone(),
        ]);
    }
    say!("{t}");
}

fn print_nodes(report: &Report) {
    let mut t = table(&[
        "\nnode",
        "\noperator",
        "\nbackend",
        "\noutput",
        "\nwhy not elsewhere",
    ]);
    for n in &report.nodes {
        let mut name = n.scope.join("/");
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(&n.name);
        let shapes: Vec<String> = n
            .outputs
            .iter()
            .map(|o| format!("{}{:?}", o.dtype, o.shape))
            .collect();
        let mut reasons: Vec<String> = n
            .refusals
            .iter()
            .map(|r| format!("{}: {}", r.backend, r.reason))
            .collect();
        if let Some(m) = &n.moved {
            reasons.push(format!(
                "{}: priced dearer, {:.3} ms instead of {:.3} ms for {} nodes with crossings",
                m.from,
                m.instead_of * 1e3,
                m.seconds * 1e3,
                m.nodes
            ));
        }
        t.add_row([
            name,
            n.op.clone(),
            n.backend.clone(),
            shapes.join(" "),
            reasons.join("; "),
        ]);
    }
    say!("{t}");
}

fn print_crossings(report: &Report) {
    if report.crossings.is_empty() {
        say!("\nnothing crosses between backends");
        return;
    }
    let mut t = table(&["\ncrossing", "\nfrom", "\nto", "\nbytes"]);
    for c in &report.crossings {
        t.add_row([
            c.value.clone(),
            c.from.clone(),
            c.to.clone(),
            bytes(c.bytes),
        ]);
    }
    say!("{t}");
}

/// A number of bytes as people read it.
pub fn bytes(n: usize) -> String {
    match n {
        0..1_000 => format!("{n} B"),
        1_000..1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

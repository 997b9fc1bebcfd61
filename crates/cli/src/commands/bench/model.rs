//! Timing a model.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::value_parser;
use comfy_table::{Table, presets};
use kilim::core::report::NodeTime;
use kilim::core::schedule::Trace;
use kilim::{Datum, Report, RunOptions, Session};
use serde::Serialize;

use super::against::{Against, Nodes, Timed};
use crate::Failure;
use crate::data::source::InputArgs;
use crate::mixed;
use crate::model;
use crate::out;
use crate::session::ModelArgs;

#[derive(clap::Args)]
pub struct Args {
    /// Runs whose median is taken.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    runs: u32,
    /// Runs that are not measured, before those that are.
    #[arg(long, default_value_t = 3, value_name = "N")]
    warmup: u32,
    /// Another form of the model, which runs in turns with it: what `kilim convert` wrote, for instance.
    #[arg(long, value_name = "OTHER")]
    against: Option<PathBuf>,
    /// Print everything as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
struct Figures {
    model: String,
    backends: Vec<String>,
    load_ms: f64,
    first_ms: f64,
    median_ms: f64,
    min_ms: f64,
    max_ms: f64,
    runs: u64,
    /// The median is that of every run of so many.
    median_of_every: u64,
    memory: Memory,
    nodes: Vec<NodeTime>,
    untimed: Vec<Untimed>,
    graph: Nodes,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Against>,
}

/// Bytes.
#[derive(Serialize)]
struct Memory {
    /// The most that the process held, the program itself included; where the system tells it.
    peak: Option<u64>,
    /// Weights in the form that backends read, and those of the graph that are kept beside them.
    weights: usize,
    /// What runs need beside weights, of all plans together.
    planned: usize,
}

impl Memory {
    fn of(report: &Report) -> Memory {
        let weights = report.backends.iter().map(|b| b.constant_bytes);
        Memory {
            peak: peak_memory(),
            weights: weights.sum::<usize>() + report.graph_bytes,
            planned: report.backends.iter().map(|b| b.planned_bytes).sum(),
        }
    }
}

/// The most bytes that the process held so far: `VmHWM`, which Linux counts in kB of 1,024 bytes.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let size: u64 = line.split_whitespace().next()?.parse().ok()?;
    size.checked_mul(1024)
}

/// A backend that does not time its nodes.
#[derive(Serialize)]
struct Untimed {
    backend: String,
    nodes: usize,
    /// The calls that ran them, or moved their results, by the host's clock.
    steps: Vec<StepTime>,
}

#[derive(Serialize)]
struct StepTime {
    name: String,
    seconds: f64,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let options = args.model.backends.options()?;
    let backends = options.backends.iter().map(ToString::to_string).collect();
    let start = Instant::now();
    let session = args.model.load_with(options.clone()).await?;
    let load_ms = ms(start);
    let ports = session.inputs().to_vec();
    let inputs = args.inputs.read(&ports)?;
    let mut model = Timed::new(session, inputs);
    let first_ms = model.run(false).await?;
    let other_ports;
    let mut other = None;
    if let Some(file) = &args.against {
        let session = args.model.load_other(file, options).await?;
        other_ports = session.inputs().to_vec();
        let inputs = args.inputs.read(&other_ports)?;
        other = Some((file, Timed::new(session, inputs)));
    }
    let (warmup, runs) = (u64::from(args.warmup), u64::from(args.runs));
    let bar = indicatif::ProgressBar::new(warmup + runs);
    for i in 0..warmup + runs {
        model.run(i >= warmup).await?;
        if let Some((_, other)) = &mut other {
            other.run(i >= warmup).await?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let summary = model.summary()?;
    let against = other.map(|(file, other)| Against::of(file, &summary, other));
    let against = against.transpose()?;
    let Timed {
        mut session,
        inputs,
        ..
    } = model;
    let (_, nodes) = session.profile(&inputs, &RunOptions::default()).await?;
    let figures = Figures {
        model: args.model.file.display().to_string(),
        backends,
        load_ms,
        first_ms,
        median_ms: summary.median,
        min_ms: summary.least,
        max_ms: summary.most,
        runs: summary.runs,
        median_of_every: summary.stride,
        memory: Memory::of(&session.report()),
        graph: Nodes::of(&session.report()),
        against,
        untimed: untimed(&mut session, &inputs, &nodes).await?,
        nodes,
    };
    args.model.backends.keep_cache()?;
    if args.json {
        out::json(&figures)?;
    } else {
        print(&figures);
        mixed::print(&session.report());
        model::print_tuning(&session.report());
    }
    Ok(())
}

/// The backends whose nodes have no times, with the times of the steps of one more run.
async fn untimed(
    session: &mut Session,
    inputs: &[(&str, Datum)],
    timed: &[NodeTime],
) -> Result<Vec<Untimed>, Failure> {
    let mut untimed: Vec<Untimed> = Vec::new();
    let backends: Vec<String> = session
        .backends()
        .iter()
        .map(|b| b.describe().id.to_string())
        .collect();
    for node in session.report().nodes {
        let id = node.backend;
        if !backends.contains(&id) || timed.iter().any(|t| t.backend == id) {
            continue;
        }
        match untimed.iter_mut().find(|u| u.backend == id) {
            Some(known) => known.nodes += 1,
            None => untimed.push(Untimed {
                backend: id,
                nodes: 1,
                steps: Vec::new(),
            }),
        }
    }
    if untimed.is_empty() {
        return Ok(untimed);
    }
    let trace = Arc::new(Trace::new());
    let options = RunOptions {
        trace: Some(trace.clone()),
        ..RunOptions::default()
    };
    session.run_data(inputs, &options).await?;
    for event in trace.events() {
        let of = untimed.iter_mut().find(|u| u.backend == event.backend);
        let Some(of) = of else { continue };
        let seconds = event.end - event.start;
        // In a Loop a step runs more than once.
        match of.steps.iter_mut().find(|step| step.name == event.name) {
            Some(step) => step.seconds += seconds,
            None => of.steps.push(StepTime {
                name: event.name,
                seconds,
            }),
        }
    }
    Ok(untimed)
}

pub fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn print(f: &Figures) {
    say!("backends   {}", f.backends.join(", "));
    say!("load       {:.2} ms", f.load_ms);
    say!("first run  {:.2} ms", f.first_ms);
    let of = match f.median_of_every {
        1 => f.runs.to_string(),
        stride => format!("every {stride}th of {}", f.runs),
    };
    say!(
        "steady     {:.3} ms median of {of} (min {:.3}, max {:.3})",
        f.median_ms,
        f.min_ms,
        f.max_ms
    );
    if let Some(against) = &f.against {
        against.print(&f.graph);
    }
    let mb = |bytes: f64| bytes / 1e6;
    if let Some(peak) = f.memory.peak {
        say!(
            "memory     {:.1} MB at most (weights {:.1}, planned beside them {:.1})",
            mb(peak as f64),
            mb(f.memory.weights as f64),
            mb(f.memory.planned as f64)
        );
    }
    if !f.nodes.is_empty() {
        print_times(&f.nodes);
    }
    for untimed in &f.untimed {
        print_untimed(untimed);
    }
}

fn print_untimed(untimed: &Untimed) {
    let Untimed {
        backend,
        nodes,
        steps,
    } = untimed;
    say!("\n`{backend}` does not time its {nodes} nodes; the calls that ran them took:");
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_header(["\ncall", "\nms"]);
    for step in steps {
        table.add_row([step.name.clone(), format!("{:.3}", step.seconds * 1e3)]);
    }
    say!("{table}");
}

/// The nodes that took longest.
pub fn print_times(nodes: &[NodeTime]) {
    let total: f64 = nodes.iter().map(|n| n.seconds).sum();
    let mut nodes: Vec<&NodeTime> = nodes.iter().collect();
    nodes.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "\nnode",
        "\noperator",
        "\nbackend",
        "\nms",
        "\nshare",
    ]);
    for n in nodes.iter().take(20) {
        table.add_row([
            n.name.clone(),
            n.op.clone(),
            n.backend.clone(),
            format!("{:.3}", n.seconds * 1e3),
            format!("{:.1} %", 100.0 * n.seconds / total.max(f64::MIN_POSITIVE)),
        ]);
    }
    say!("{table}");
}

//! `kilim bench`.

use std::time::Instant;

use clap::value_parser;
use comfy_table::{Table, presets};
use kilim::RunOptions;
use kilim::core::report::NodeTime;
use serde::Serialize;

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
    /// Runs before them.
    #[arg(long, default_value_t = 3, value_name = "N")]
    warmup: u32,
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
    runs: usize,
    nodes: Vec<NodeTime>,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let options = args.model.backends.options()?;
    let backends = options.backends.iter().map(ToString::to_string).collect();
    let start = Instant::now();
    let mut session = args.model.load_with(options).await?;
    let load_ms = ms(start);
    let ports = session.inputs().to_vec();
    let inputs = args.inputs.read(&ports)?;
    let start = Instant::now();
    session.run_data(&inputs, &RunOptions::default()).await?;
    let first_ms = ms(start);
    let (warmup, runs) = (u64::from(args.warmup), u64::from(args.runs));
    let bar = indicatif::ProgressBar::new(warmup + runs);
    let mut times = Vec::new();
    for i in 0..warmup + runs {
        let start = Instant::now();
        session.run_data(&inputs, &RunOptions::default()).await?;
        if i >= warmup {
            times.push(ms(start));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    times.sort_by(f64::total_cmp);
    let (_, nodes) = session.profile(&inputs).await?;
    let figures = Figures {
        model: args.model.file.display().to_string(),
        backends,
        load_ms,
        first_ms,
        median_ms: times[times.len() / 2],
        min_ms: times[0],
        max_ms: times[times.len() - 1],
        runs: times.len(),
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

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn print(f: &Figures) {
    say!("backends   {}", f.backends.join(", "));
    say!("load       {:.2} ms", f.load_ms);
    say!("first run  {:.2} ms", f.first_ms);
    say!(
        "steady     {:.3} ms median of {} (min {:.3}, max {:.3})",
        f.median_ms,
        f.runs,
        f.min_ms,
        f.max_ms
    );
    print_times(&f.nodes);
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

//! `kilim run`.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::value_parser;
use kilim::core::schedule::Trace;
use kilim::core::session::RunHandle;
use kilim::{Datum, Fact, Keep, RunOptions, Session, Tensor};

use crate::commands::bench;
use crate::data::npy;
use crate::data::source::{InputArgs, parts};
use crate::mixed;
use crate::model::{self, not_negative};
use crate::session::ModelArgs;
use crate::{Failure, timeline};

pub const EXAMPLES: &str = "\
Examples:
  kilim run model.onnx                                  inputs are made up
  kilim run model.onnx -i image=cat.jpg --top 5
  kilim run model.onnx -i ids=ids.npy -i mask=random --dim batch=1 --save out.npz
  kilim run model.tflite --backends cpu --config cpu:timers=on
  kilim run model.onnx --tune --cache kilim.cache       the second time nothing is measured";

#[derive(clap::Args)]
pub struct Args {
    /// Print the K largest values of each output.
    #[arg(long, value_name = "K")]
    top: Option<usize>,
    /// Write the outputs to a .npz file: tensors by their names, those of a sequence as NAME.0,
    /// NAME.1 …, maps as NAME.keys and NAME.values.
    #[arg(long, value_name = "FILE", value_parser = npz)]
    save: Option<PathBuf>,
    /// Compute these outputs alone: names, in which `*` stands for any text. Nodes that only others need do not run.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    outputs: Option<Vec<String>>,
    /// Give up after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = not_negative)]
    timeout: Option<f64>,
    /// Run it so many times on the same inputs, as many at once as the schedule allows, and print
    /// the last outputs.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    runs: u32,
    /// Write what ran when to a file for chrome://tracing or Perfetto.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    model: ModelArgs,
}

/// The name of a `.npz` file.
fn npz(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match file.extension() {
        Some(e) if e.eq_ignore_ascii_case("npz") => Ok(file),
        _ => Err("outputs are saved as .npz".to_string()),
    }
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let mut session = args.model.load().await?;
    let ports = session.inputs().to_vec();
    let inputs = args.inputs.read(&ports)?;
    let bar = model::spinner("running".to_string());
    let start = Instant::now();
    let trace = args.trace.as_ref().map(|_| Arc::new(Trace::new()));
    let options = RunOptions {
        timeout: args.timeout,
        trace: trace.clone(),
        outputs: args.outputs.map(Keep::new),
        ..RunOptions::default()
    };
    let result = match args.runs {
        1 => session.run_data(&inputs, &options).await,
        n => run_many(&mut session, &inputs, &options, n),
    };
    let elapsed = start.elapsed();
    bar.finish_and_clear();
    if let (Some(file), Some(trace)) = (&args.trace, &trace) {
        timeline::write(file, &trace.events())?;
    }
    let outputs = result?;
    let mut tensors = Vec::new();
    for (name, datum) in &outputs {
        match datum {
            Datum::Tensor(_) | Datum::Device(_) => {}
            Datum::Absent => say!("{name}: nothing"),
            Datum::Sequence(list) => say!("{name}: a sequence of {}", list.len()),
            Datum::Map(map) => say!("{name}: a map of {}", map.keys.len()),
            Datum::MapSequence(list) => say!("{name}: a sequence of {} maps", list.len()),
        }
        for (name, tensor) in parts(name, datum) {
            say!("{name}: {}", Fact::of(&tensor));
            match args.top {
                Some(k) if tensor.texts().is_err() => print_top(&tensor, k)?,
                _ => say!("  {}", summary(&tensor)?),
            }
            tensors.push((name, tensor));
        }
    }
    let report = session.report();
    mixed::print(&report);
    model::print_tuning(&report);
    args.model.backends.keep_cache()?;
    let times = session.times();
    if !times.is_empty() {
        bench::print_times(&times);
    }
    say!("{:.2} ms", elapsed.as_secs_f64() * 1e3);
    if let Some(file) = &args.save {
        npy::write_all(file, &tensors)?;
        say!("saved to {}", file.display());
    }
    Ok(())
}

/// Runs that wait for their turn at the same time: enough to keep every schedule busy.
const WAITING: usize = 64;

/// Runs the model so many times, as many at once as the schedule allows, and gives the outputs of the
/// last.
fn run_many(
    session: &mut Session,
    inputs: &[(&str, Datum)],
    options: &RunOptions,
    count: u32,
) -> kilim::Result<Vec<(String, Datum)>> {
    let mut handles = VecDeque::with_capacity(WAITING);
    for _ in 0..count {
        if handles.len() == WAITING {
            wait_for_first(&mut handles)?;
        }
        handles.push_back(session.run_async(inputs, options)?);
    }
    let mut last = Vec::new();
    while !handles.is_empty() {
        last = wait_for_first(&mut handles)?;
    }
    Ok(last)
}

fn wait_for_first(handles: &mut VecDeque<RunHandle>) -> kilim::Result<Vec<(String, Datum)>> {
    handles.pop_front().map_or(Ok(Vec::new()), RunHandle::wait)
}

fn print_top(tensor: &Tensor, k: usize) -> Result<(), Failure> {
    let values = tensor.to_f64s()?;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[b].total_cmp(&values[a]).then(a.cmp(&b)));
    for &i in order.iter().take(k) {
        say!("  {i:>6}  {:.6}", values[i]);
    }
    Ok(())
}

/// The first elements, in brackets.
fn beginning<T>(elements: &[T], show: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = elements.iter().take(8).map(show).collect();
    let dots = if elements.len() > 8 { ", …" } else { "" };
    format!("[{}{dots}]", shown.join(", "))
}

fn summary(tensor: &Tensor) -> Result<String, Failure> {
    if let Ok(texts) = tensor.texts() {
        return Ok(beginning(texts, |t| format!("{t:?}")));
    }
    let values = tensor.to_f64s()?;
    let mut text = beginning(&values, |v| format!("{v:.6}"));
    if !values.is_empty() {
        let (mut low, mut high, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for &v in &values {
            low = low.min(v);
            high = high.max(v);
            sum += v;
        }
        let mean = sum / values.len() as f64;
        text += &format!("  min {low:.6}, mean {mean:.6}, max {high:.6}");
        let odd = values.iter().filter(|v| !v.is_finite()).count();
        if odd > 0 {
            text += &format!(", {odd} not finite");
        }
    }
    Ok(text)
}

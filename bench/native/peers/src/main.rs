//! One process of another runtime: prints `{"load": …, "first": …, "median": …}` in milliseconds.
//!
//!     bench-peers rten|tract MODEL.onnx THREADS RUNS INPUTS
//!
//! INPUTS is what inputs.py has printed. Three runs after the first are not timed.

mod input;
mod rten_engine;
mod tract_engine;

use anyhow::{Context, Result, bail};
use input::Input;
use std::time::Instant;

/// Runs a model once.
pub type Run = Box<dyn FnMut() -> Result<()>>;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [engine, model, threads, runs, inputs] = words.as_slice() else {
        bail!("usage: bench-peers rten|tract MODEL.onnx THREADS RUNS INPUTS")
    };
    let (threads, runs): (usize, usize) = (threads.parse()?, runs.parse()?);
    let inputs = Input::read_all(inputs)?;
    let begun = Instant::now();
    let mut run = match engine.as_str() {
        "rten" => rten_engine::load(model, threads, inputs)?,
        "tract" => tract_engine::load(model, threads, inputs)?,
        other => bail!("there is no engine {other}"),
    };
    let load = milliseconds(begun);
    let mut times = Vec::new();
    for _ in 0..4 + runs {
        let begun = Instant::now();
        run()?;
        times.push(milliseconds(begun));
    }
    let first = times[0];
    let steady = times.get_mut(4..).context("no runs")?;
    steady.sort_by(f64::total_cmp);
    let [low, high] = [(steady.len().max(1) - 1) / 2, steady.len() / 2];
    let middle = |i: usize| steady.get(i).context("nothing was timed");
    let median = (middle(low)? + middle(high)?) / 2.0;
    println!(r#"{{"load": {load}, "first": {first}, "median": {median}}}"#);
    Ok(())
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

//! A second model beside the one that is timed, in turns with it.

use std::path::Path;
use std::time::Instant;

use kilim::{Datum, Report, RunOptions, Session};
use serde::Serialize;

use super::model::ms;
use crate::Failure;
use crate::times::{Summary, Times};

/// A model whose runs are timed.
pub struct Timed<'a> {
    pub session: Session,
    pub inputs: Vec<(&'a str, Datum)>,
    times: Times,
}

impl<'a> Timed<'a> {
    pub fn new(session: Session, inputs: Vec<(&'a str, Datum)>) -> Timed<'a> {
        Timed {
            session,
            inputs,
            times: Times::default(),
        }
    }

    /// Runs once; the time counts where the run is `measured`.
    pub async fn run(&mut self, measured: bool) -> Result<f64, Failure> {
        let start = Instant::now();
        let options = RunOptions::default();
        self.session.run_data(&self.inputs, &options).await?;
        let time = ms(start);
        if measured {
            self.times.add(time);
        }
        Ok(time)
    }

    pub fn summary(&mut self) -> Result<Summary, Failure> {
        let summary = std::mem::take(&mut self.times).summary();
        summary.ok_or_else(|| Failure::Usage("nothing was timed".to_string()))
    }
}

/// What a session runs when all passes are done.
#[derive(Serialize)]
pub struct Nodes {
    pub nodes: usize,
    /// Nodes that only put elements into another order.
    pub transposes: usize,
}

impl Nodes {
    pub fn of(report: &Report) -> Nodes {
        // What was computed while planning does not run.
        let run = report.nodes.iter().filter(|node| node.backend != "plan");
        let transposes = run.clone().filter(|node| node.op == "Transpose");
        Nodes {
            transposes: transposes.count(),
            nodes: run.count(),
        }
    }
}

/// The model that was timed in turns with the first.
#[derive(Serialize)]
pub struct Against {
    pub model: String,
    pub median_ms: f64,
    /// The first model's median divided by this one's.
    pub ratio: f64,
    #[serde(flatten)]
    pub nodes: Nodes,
}

impl Against {
    pub fn of(file: &Path, first: &Summary, mut other: Timed) -> Result<Against, Failure> {
        let median_ms = other.summary()?.median;
        Ok(Against {
            model: file.display().to_string(),
            median_ms,
            ratio: first.median / median_ms,
            nodes: Nodes::of(&other.session.report()),
        })
    }

    pub fn print(&self, own: &Nodes) {
        let Against {
            model,
            median_ms,
            ratio,
            nodes,
        } = self;
        say!("against    {median_ms:.3} ms median of {model}: {ratio:.3} times as long");
        say!(
            "nodes      {} ({} Transpose), against {} ({} Transpose)",
            own.nodes,
            own.transposes,
            nodes.nodes,
            nodes.transposes
        );
    }
}

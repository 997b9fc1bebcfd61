//! Mixed precision from the command line.

use std::path::Path;

use kilim::core::session::MixedPrecision;
use kilim::{LoadOptions, Port, Report, Runtime, Session, Tensor};

use crate::data::source::InputArgs;
use crate::{Failure, model};

/// Half precision within a tolerance.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Mixed precision")]
pub struct MixedArgs {
    /// Let nodes compute in float16 where a backend is faster in it, as long as no output moves by more
    /// than this, relative to its largest magnitude, on any of the samples.
    #[arg(long, value_name = "TOLERANCE", requires = "samples", value_parser = model::not_negative)]
    mixed_precision: Option<f64>,
    /// Inputs to measure that with, separated by commas and as for `--input`, or `random`; may be given
    /// several times.
    #[arg(
        long = "sample",
        value_name = "NAME=SOURCE,…",
        requires = "mixed_precision"
    )]
    samples: Vec<String>,
}

impl MixedArgs {
    /// Loads a model; the samples are read when its inputs are known.
    pub async fn load(&self, path: &Path, mut options: LoadOptions) -> Result<Session, Failure> {
        let Some(tolerance) = self.mixed_precision else {
            return model::load(path, options).await;
        };
        let runtime = Runtime::shared();
        let mut graph = runtime.parse(path, &options).await?;
        graph.fix_dims(&std::mem::take(&mut options.dims))?;
        let ports = Port::all(&graph, &graph.inputs);
        options.mixed_precision = Some(MixedPrecision {
            tolerance,
            samples: self.read(&ports)?,
        });
        let bar = model::spinner(format!("measuring the precision of {}", path.display()));
        let session = runtime.session(graph, options).await;
        bar.finish_and_clear();
        Ok(session?)
    }

    /// A tensor for each of `ports` in each sample.
    fn read(&self, ports: &[Port]) -> Result<Vec<Vec<(String, Tensor)>>, Failure> {
        let samples = self.samples.iter().enumerate().map(|(i, sample)| {
            let given: Vec<String> = match sample.as_str() {
                "random" => Vec::new(),
                list => list.split(',').map(str::to_string).collect(),
            };
            // Other numbers than those of the runs, and each sample its own.
            let seed = 0x5a3e_0000 + 1000 * i as u64;
            let values = InputArgs::new(given, seed).read(ports)?.into_iter();
            let tensors = values.map(|(name, datum)| Ok((name.to_string(), datum.into_tensor()?)));
            tensors.collect()
        });
        samples.collect()
    }
}

/// What computes in half precision, and why the rest does not.
pub fn print(report: &Report) {
    for chosen in &report.precisions {
        say!(
            "{} `{}` computes in {}",
            chosen.op,
            chosen.node,
            chosen.dtype
        );
    }
    let Some(found) = &report.precision else {
        return;
    };
    say!(
        "mixed precision: {} of {} nodes that would be faster compute in float16; outputs move by {:.1e}, \
         allowed are {:.1e}",
        found.nodes.len(),
        found.considered,
        found.error,
        found.tolerance
    );
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for node in &found.single {
        match reasons
            .iter_mut()
            .find(|(reason, _)| *reason == node.reason)
        {
            Some((_, count)) => *count += 1,
            None => reasons.push((&node.reason, 1)),
        }
    }
    for (reason, count) in reasons {
        say!("  {count} in float32: {reason}");
    }
}

#[cfg(test)]
mod tests {
    use kilim::{DType, Fact, Graph};

    use super::*;

    #[test]
    fn each_random_sample_is_another_one() {
        let mut graph = Graph::new("two");
        let _ = graph.add_input("a", Fact::fixed(DType::F32, &[64]));
        let _ = graph.add_input("b", Fact::fixed(DType::F32, &[64]));
        let ports = Port::all(&graph, &graph.inputs);
        let args = MixedArgs {
            mixed_precision: Some(1e-3),
            samples: vec!["random".to_string(); 3],
        };
        let Ok(mut samples) = args.read(&ports) else {
            panic!("the samples are made up");
        };
        // What a run is given that is told nothing.
        let Ok(run) = InputArgs::new(Vec::new(), 1).read(&ports) else {
            panic!("the inputs are made up");
        };
        let run = run.into_iter();
        samples.push(
            run.map(|(name, datum)| (name.to_string(), datum.into_tensor().unwrap()))
                .collect(),
        );
        let bytes = samples
            .iter()
            .flatten()
            .map(|(_, tensor)| tensor.read().unwrap());
        let mut all: Vec<&[u8]> = bytes.collect();
        assert_eq!(all.len(), 8);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 8, "two tensors are the same");
    }
}

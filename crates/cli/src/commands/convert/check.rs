//! What was written beside the model: how far outputs are apart, and which nodes are to blame.

use std::path::Path;

use comfy_table::{Table, presets};
use kilim::compare::Comparison;
use kilim::{ErrorCode, Graph, LoadOptions, RunOptions, Runtime};
use kilim_convert::quantise::{Scheme, probe};

use super::of;
use super::samples::Samples;
use crate::{Failure, model};

/// Nodes that are named.
const WORST: usize = 5;

/// How far an output, or what a node gives, is from that of the model.
pub struct Distance {
    pub name: String,
    /// The largest difference on any sample, relative to the largest magnitude.
    pub error: f64,
}

/// Widens each distance by what another sample shows.
fn widen(distances: &mut Vec<Distance>, i: usize, name: &str, error: f64) {
    match distances.get_mut(i) {
        Some(known) => known.error = known.error.max(error),
        None => distances.push(Distance {
            name: name.to_string(),
            error,
        }),
    }
}

/// The distances of all outputs of a file from those of the graph that it was made of.
pub async fn outputs(
    file: &Path,
    graph: Graph,
    samples: &Samples,
    options: &LoadOptions,
) -> Result<Vec<Distance>, Failure> {
    let mut original = Runtime::shared().session(graph, options.clone()).await?;
    let mut written = model::load(file, options.clone()).await?;
    let mut distances = Vec::new();
    for sample in samples.all() {
        let inputs = of(sample);
        let wanted = original.run_data(&inputs, &RunOptions::default()).await?;
        let got = written.run_data(&inputs, &RunOptions::default()).await?;
        for (i, ((name, want), (_, got))) in wanted.iter().zip(&got).enumerate() {
            let verdict = Comparison::Relative(0.0).data_verdict(got, want, None);
            let verdict = verdict.map_err(|e| e.with_input(name))?;
            widen(&mut distances, i, name, verdict.error);
        }
    }
    Ok(distances)
}

/// The distances of what nodes with smaller weights give, each on the inputs that it has in the model; the farthest first.
pub async fn nodes(
    graph: &Graph,
    scheme: &Scheme,
    samples: &Samples,
    options: &LoadOptions,
) -> Result<Vec<Distance>, Failure> {
    let probe = probe(graph, scheme)?;
    let mut distances = Vec::new();
    if probe.nodes.is_empty() {
        return Ok(distances);
    }
    let runtime = Runtime::shared();
    let mut session = match runtime.session(probe.graph, options.clone()).await {
        Err(e) if e.code() == ErrorCode::Limit => {
            say!("the nodes are not compared: {}", e.sentence());
            return Ok(distances);
        }
        session => session?,
    };
    for sample in samples.all() {
        let made = session
            .run_data(&of(sample), &RunOptions::default())
            .await?;
        for (i, (pair, node)) in made.chunks_exact(2).zip(&probe.nodes).enumerate() {
            let [(_, want), (_, got)] = pair else {
                continue;
            };
            let verdict = Comparison::Relative(0.0).data_verdict(got, want, None)?;
            widen(&mut distances, i, node, verdict.error);
        }
    }
    distances.sort_by(|a, b| b.error.total_cmp(&a.error));
    Ok(distances)
}

pub fn print_outputs(outputs: &[Distance], samples: &Samples) {
    let on = match (samples.are_given(), samples.all().len()) {
        (true, n) => format!("{n} samples"),
        (false, _) => "the given inputs, random where none are given".to_string(),
    };
    say!("compared with the model on {on}:");
    for output in outputs {
        let how = match output.error {
            0.0 => "the same".to_string(),
            error => format!("{error:.2e} apart, relative to its largest magnitude"),
        };
        say!("  output {}: {how}", output.name);
    }
}

pub fn print_nodes(nodes: &[Distance]) {
    if nodes.is_empty() {
        return;
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header([
        "\nnodes that lose most",
        "\nerror on the model's own inputs",
    ]);
    for node in nodes.iter().take(WORST) {
        table.add_row([node.name.clone(), format!("{:.2e}", node.error)]);
    }
    say!("{table}");
}

//! Runs that use up their inputs.

use super::{RunOptions, Session, Watch};
use crate::datum::Datum;
use crate::error::Result;
use crate::graph::Node;

impl Session {
    /// Runs the model on inputs that it may use up. Inputs may come in any order; outputs come in the model's, those that the
    /// options keep as [`Datum::Device`].
    ///
    /// A tensor that only the run holds, and that the model writes on ([`Session::written_on`]), becomes the output: on a
    /// backend in host memory nothing of it is copied. A tensor that has other holders stays as it is, and the output is a copy.
    /// Where the run fails, or is aborted or dropped, what it was given is gone; clones of it are as they were.
    ///
    /// # Errors
    /// Those of [`Session::run_data`].
    pub async fn run_owned(
        &mut self,
        inputs: Vec<(&str, Datum)>,
        options: &RunOptions,
    ) -> Result<Vec<(String, Datum)>> {
        let watched = self.run_watched(inputs, options, Watch::default()).await;
        watched.map(|(outputs, _)| outputs)
    }

    /// Pairs of an output and an input by their names: the output is this input, with a part of it written anew. Caches that have
    /// room for what is to come are such.
    pub fn written_on(&self) -> Vec<(&str, &str)> {
        let graph = self.graph();
        let outputs = self.ports.outputs.iter().zip(&graph.outputs);
        let pair = outputs.filter_map(|(port, v)| {
            let place = |node: &&Node| node.outputs.iter().position(|output| output == v);
            let node = graph.nodes.iter().find(|node| place(node).is_some())?;
            let on = node.input(node.op.writes_on(place(&node)?)?)?;
            let at = graph.inputs.iter().position(|input| *input == on)?;
            Some((port.name.as_str(), self.ports.inputs.get(at)?.name.as_str()))
        });
        pair.collect()
    }
}

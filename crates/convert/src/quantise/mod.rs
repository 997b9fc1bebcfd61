//! Smaller weights: in half precision, or as integers with scales.
//!
//! What is made smaller are the weights of products and convolutions, and tables whose rows are gathered. A graph is brought to the operators
//! of ONNX first ([`lower`](crate::lower())).

mod half;
mod int4;
mod int8;
mod ranges;
mod weights;

use std::collections::HashMap;

use kilim_core::error::Result;
use kilim_core::graph::{Graph, ValueId};
use kilim_formats::build::GraphBuilder;

use crate::rebuild::{Given, rebuild};

pub use half::half_precision;
pub use ranges::{Ranges, measured};

/// Weights with fewer elements stay as they are: nothing is gained.
pub const FEWEST: usize = 1 << 10;

/// How weights are made smaller.
#[derive(Clone, Debug)]
pub enum Scheme {
    /// `float16`, cast where they are read.
    Half,
    /// `int8` with a scale for each column or channel. Products are of integers, with the left factor quantised when the model runs;
    /// convolutions and tables are computed with in single precision.
    Dynamic8,
    /// `int8` with a scale for each column or channel, and data as `uint8` by the ranges that it was seen to have: QuantizeLinear and
    /// DequantizeLinear around products and convolutions.
    Static8(Ranges),
    /// Right factors of products as 4 bits with a scale for each 32 neighbours (`com.microsoft::MatMulNBits`).
    Block4,
}

/// A graph with smaller weights.
pub struct Quantised {
    pub graph: Graph,
    /// The nodes whose weights are smaller.
    pub nodes: Vec<String>,
}

/// Makes the weights of a graph smaller. Those in the bodies of control flow stay as they are.
///
/// # Errors
/// What reading the weights says; `Unsupported` for a graph that cannot be built anew.
pub fn quantise(graph: &Graph, scheme: &Scheme) -> Result<Quantised> {
    let mut work = Work::new(graph, scheme);
    let mut nodes = Vec::new();
    let rebuilt = rebuild(graph, &mut |b, given| {
        if given.in_body {
            return Ok(None);
        }
        let made = work.smaller(b, given)?;
        if made.is_some() {
            nodes.push(given.node.name.clone());
            return Ok(made);
        }
        work.on_quantised_data(b, given)
    })?;
    Ok(Quantised {
        graph: rebuilt.graph,
        nodes,
    })
}

/// A graph that gives, for each node whose weights are made smaller, what it gives and what it gives with the smaller ones, both of the same
/// inputs: two outputs a node, in the order of `nodes`.
pub struct Probe {
    pub graph: Graph,
    pub nodes: Vec<String>,
}

/// The [`Probe`] of what [`quantise`] does.
///
/// # Errors
/// What [`quantise`] says.
pub fn probe(graph: &Graph, scheme: &Scheme) -> Result<Probe> {
    let mut work = Work::new(graph, scheme);
    let mut pairs = Vec::new();
    let mut nodes = Vec::new();
    let mut rebuilt = rebuild(graph, &mut |b, given| {
        if given.in_body {
            return Ok(None);
        }
        if let Some(made) = work.smaller(b, given)? {
            let name = format!("{}/quantised", given.node.name);
            let smaller = b.name(made[0], &name);
            pairs.push((given.node.outputs[0], smaller));
            nodes.push(given.node.name.clone());
        }
        Ok(None)
    })?;
    let values = &rebuilt.values;
    let outputs = pairs
        .iter()
        .filter_map(|&(own, smaller)| Some([values[own.0]?, smaller]));
    rebuilt.graph.outputs = outputs.flatten().collect();
    rebuilt.graph.variables.clear();
    Ok(Probe {
        graph: rebuilt.graph,
        nodes,
    })
}

/// What is known while weights are made smaller.
struct Work<'a> {
    scheme: &'a Scheme,
    /// The data that is quantised, by its value in the old graph.
    data: Vec<bool>,
    /// What was made of weights, by the constant.
    made: HashMap<ValueId, Vec<ValueId>>,
    /// Data that was quantised and dequantised.
    dequantised: HashMap<ValueId, ValueId>,
}

impl<'a> Work<'a> {
    fn new(graph: &Graph, scheme: &'a Scheme) -> Work<'a> {
        let data = match scheme {
            Scheme::Static8(_) => ranges::data(graph),
            _ => Vec::new(),
        };
        Work {
            scheme,
            data,
            made: HashMap::new(),
            dequantised: HashMap::new(),
        }
    }

    /// The outputs of a node with smaller weights; `None` where it has none that can be made smaller.
    fn smaller(&mut self, b: &mut GraphBuilder, given: &Given) -> Result<Option<Vec<ValueId>>> {
        match self.scheme {
            Scheme::Half => half::smaller(self, b, given),
            Scheme::Dynamic8 => int8::dynamic(self, b, given),
            Scheme::Static8(ranges) => int8::fixed(self, b, given, ranges),
            Scheme::Block4 => int4::smaller(self, b, given),
        }
    }

    /// A node without weights whose data is quantised for another node reads the same, so that nobody needs it in single precision.
    fn on_quantised_data(
        &mut self,
        b: &mut GraphBuilder,
        given: &Given,
    ) -> Result<Option<Vec<ValueId>>> {
        let Scheme::Static8(ranges) = self.scheme else {
            return Ok(None);
        };
        if given.node.op.bodies().is_some() {
            return Ok(None);
        }
        let mut inputs = given.inputs.to_vec();
        let mut changed = false;
        for (i, old) in given.node.inputs.iter().enumerate() {
            let Some(old) = old.filter(|v| self.data[v.0]) else {
                continue;
            };
            let (Some(new), Some(range)) = (inputs[i], ranges.of(&given.graph.value(old).name))
            else {
                continue;
            };
            inputs[i] = Some(self.dequantised(b, new, range)?.data);
            changed = true;
        }
        if !changed {
            return Ok(None);
        }
        let (op, outputs) = (given.node.op.clone(), given.node.outputs.len());
        b.apply_shared(op, &inputs, outputs).map(Some)
    }
}

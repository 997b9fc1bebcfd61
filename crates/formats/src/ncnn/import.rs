//! From a network to a graph.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::normalize_axis;
use kilim_core::tensor::Tensor;
use kilim_core::{Dim, Limits};

use super::layer::Layer;
use super::network::{LayerInfo, Network};
use super::weights::Weights;
use super::{inputs, invalid, ops};
use crate::ModelFile;
use crate::build::{GraphBuilder, Refusals, stands_for_builder};
use crate::source::NODES_PER_CHECK;

/// Whether width and height that a file gives to an input are those of the graph. They are a hint in ncnn, which runs a network on
/// pictures of any size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    Open,
    Fixed,
}

/// Brings a network into a graph. Sizes of pictures stay open where outputs depend on them, and all layers allow it.
///
/// # Errors
/// Those of [`crate::Importer::load`].
pub fn graph(network: &Network, source: &ModelFile, limits: &Limits) -> Result<Graph> {
    let import = |sizes| Import::new(network, source, limits).whole(sizes);
    if !inputs::give_sizes(network)? {
        return import(Sizes::Open);
    }
    let open = import(Sizes::Open).ok().filter(|graph| {
        let mut outputs = graph.outputs.iter().map(|&v| graph.value(v));
        outputs.any(|value| value.fact.concrete().is_none())
    });
    match open {
        Some(open) => Ok(open),
        None => import(Sizes::Fixed),
    }
}

/// What layers are brought into.
pub struct Import<'a> {
    network: &'a Network,
    source: &'a ModelFile<'a>,
    builder: GraphBuilder,
    weights: Weights<'a>,
    /// The value of each blob that was written so far.
    values: Vec<Option<ValueId>>,
}

impl<'a> Import<'a> {
    fn new(network: &'a Network, source: &'a ModelFile<'a>, limits: &'a Limits) -> Import<'a> {
        Import {
            network,
            source,
            builder: GraphBuilder::new("ncnn", false, &source.interrupt),
            weights: Weights::of(source, limits),
            values: vec![None; network.blobs.len()],
        }
    }

    fn whole(mut self, sizes: Sizes) -> Result<Graph> {
        let given = inputs::facts(self.network, sizes)?;
        let outputs = self.outputs();
        let mut refused = Refusals::default();
        for (i, info) in self.network.layers.iter().enumerate() {
            if i % NODES_PER_CHECK == 0 {
                self.source.interrupt.check()?;
            }
            if inputs::is_input(info) {
                for (&top, fact) in info
                    .tops
                    .iter()
                    .filter_map(|top| Some((top, given.get(top)?)))
                {
                    let name = &self.network.blobs[top];
                    self.values[top] = Some(self.builder.add_input(name, fact.clone())?);
                }
                continue;
            }
            let around = self.builder.enter(&info.name);
            let made = self.layer(info, &outputs);
            self.builder.leave(around);
            if refused.settle(made, &info.kind, &info.name)?.is_none() {
                self.weights.lose();
            }
        }
        refused.check()?;
        self.weights.check()?;
        for (blob, _) in outputs.iter().enumerate().filter(|(_, is)| **is) {
            self.output(blob)?;
        }
        self.builder.finish()
    }

    /// Which blobs are outputs: those that no layer reads, or only a Noop, with which some files end.
    fn outputs(&self) -> Vec<bool> {
        let layers = &self.network.layers;
        let mut outputs = vec![true; self.network.blobs.len()];
        let (ends, others): (Vec<_>, Vec<_>) =
            layers.iter().partition(|layer| layer.kind == "Noop");
        others
            .iter()
            .flat_map(|l| &l.bottoms)
            .for_each(|&b| outputs[b] = false);
        ends.iter()
            .filter(|l| !l.bottoms.is_empty())
            .flat_map(|l| &l.tops)
            .for_each(|&t| outputs[t] = false);
        outputs
    }

    /// Makes a blob an output of the graph, without the dimension in front.
    fn output(&mut self, blob: usize) -> Result<()> {
        let Some(value) = self.values[blob] else {
            return Ok(());
        };
        let name = self.network.blobs[blob].clone();
        let around = self.builder.enter(&name);
        let result = self
            .builder
            .squeeze(value, &[0])
            .map(|value| self.builder.name(value, &name));
        self.builder.leave(around);
        self.builder.add_output(&name, result?)
    }

    /// Maps a layer. Nothing comes of one that reads what a refused layer should have written.
    fn layer(&mut self, info: &LayerInfo, outputs: &[bool]) -> Result<()> {
        let map = ops::find(&info.kind)
            .ok_or_else(|| ops::refusal(&info.kind))?
            .map;
        let inputs: Option<Vec<_>> = info.bottoms.iter().map(|&b| self.values[b]).collect();
        let Some(inputs) = inputs else {
            return Ok(());
        };
        let layer = Layer {
            params: &info.params,
            inputs,
            outputs: info.tops.len(),
        };
        let made = map(self, &layer)?;
        if made.len() < info.tops.len() {
            return Err(unsupported("outputs beside the first"));
        }
        for (&top, value) in info.tops.iter().zip(made) {
            let passed_on = layer.inputs.contains(&value);
            let value = match passed_on || outputs[top] {
                true => value,
                false => self.builder.name(value, &self.network.blobs[top]),
            };
            self.values[top] = Some(value);
        }
        Ok(())
    }

    /// The rank of a blob: 1 to 4.
    pub fn blob_rank(&self, x: ValueId) -> Result<usize> {
        Ok(self.rank(x)?.saturating_sub(1))
    }

    /// The axis of `x` that the file calls `axis`: it counts from the outermost dimension of the blob, or from behind.
    ///
    /// # Errors
    /// `InvalidValue` where the blob has no such axis.
    pub fn axis(&self, x: ValueId, axis: i64) -> Result<i64> {
        Ok(normalize_axis(axis, self.blob_rank(x)?)? as i64 + 1)
    }

    /// What is known of the dimension `axis` of `x`.
    pub fn length(&self, x: ValueId, axis: i64) -> Dim {
        let dims = self.known_shape(x).map(|shape| &shape.0[..]);
        let place = |dims: &[Dim]| normalize_axis(axis, dims.len()).ok();
        let length = dims.and_then(|dims| dims.get(place(dims)?));
        length.cloned().unwrap_or(Dim::Unknown)
    }

    /// Weights without a tag, a constant of the layer.
    pub fn plain(&mut self, what: &str, shape: &[usize]) -> Result<ValueId> {
        let tensor = self.weights.plain(shape)?;
        Ok(self.node_constant(what, tensor))
    }

    /// Weights with a tag, widened where they are halves.
    pub fn tagged(&mut self, what: &str, shape: &[usize]) -> Result<ValueId> {
        let tensor = self.weights.tagged(shape)?;
        if tensor.dtype() == DType::I8 {
            return Err(invalid("weights are integers, but the layer has no scales"));
        }
        let value = self.node_constant(what, tensor);
        self.cast(value, DType::F32)
    }

    /// Weights with a tag, as they are stored.
    pub fn stored(&mut self, shape: &[usize]) -> Result<Tensor> {
        self.weights.tagged(shape)
    }
}

stands_for_builder!(Import);

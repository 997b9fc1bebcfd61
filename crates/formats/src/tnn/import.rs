//! From a network to a graph.

use std::collections::HashMap;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::{Dim, Fact, Limits, Shape};

use super::bytes::Bytes;
use super::layer::Layer;
use super::model::Model;
use super::network::{LayerInfo, Network};
use super::{invalid, ops};
use crate::ModelFile;
use crate::build::{GraphBuilder, Refusals, shortened, stands_for_builder};
use crate::source::NODES_PER_CHECK;

/// Brings a network into a graph.
///
/// # Errors
/// Those of [`crate::Importer::load`].
pub fn graph(network: &Network, source: &ModelFile, limits: &Limits) -> Result<Graph> {
    let import = Import {
        network,
        source,
        builder: GraphBuilder::new("tnn", false, &source.interrupt),
        model: Model::of(network, source, limits)?,
        scales: HashMap::new(),
        values: HashMap::new(),
    };
    import.whole()
}

/// What layers are brought into.
pub struct Import<'a> {
    network: &'a Network,
    source: &'a ModelFile<'a>,
    builder: GraphBuilder,
    pub(super) model: Model,
    /// The scales of blobs whose numbers were rounded to 8 bits.
    scales: HashMap<&'a str, Vec<f32>>,
    /// The value of each blob that was written so far; `None` where a refused layer should have written it.
    values: HashMap<&'a str, Option<ValueId>>,
}

impl<'a> Import<'a> {
    fn whole(mut self) -> Result<Graph> {
        let network = self.network;
        for input in &network.inputs {
            let dims = input.dims.iter().map(|&n| Dim::Known(n)).collect();
            let fact = Fact::new(input.dtype, Shape(dims));
            let value = self.builder.add_input(&input.name, fact)?;
            self.write(&input.name, Some(value))?;
        }
        let mut refused = Refusals::default();
        for (i, info) in network.layers.iter().enumerate() {
            if i % NODES_PER_CHECK == 0 {
                self.source.interrupt.check()?;
            }
            let around = self.builder.enter(&info.name);
            let made = self.layer(info);
            self.builder.leave(around);
            let made = refused.settle(made, &info.kind, &info.name)?.flatten();
            for (i, blob) in info.outputs.iter().enumerate() {
                let value = made.as_ref().and_then(|made| made.get(i).copied());
                self.write(blob, value)?;
            }
        }
        refused.check()?;
        self.model.check(self.source.structure)?;
        for name in &network.outputs {
            let value = self.values.get(&**name).copied().flatten();
            let value = value.ok_or_else(|| {
                let message = "no layer writes an output of the network";
                Error::new(ErrorCode::InvalidGraph, message).with_input(name)
            })?;
            let value = match self.builder.graph().value(value).name == shortened(name) {
                true => value,
                false => {
                    let around = self.builder.enter(name);
                    let value = self.builder.name(value, name);
                    self.builder.leave(around);
                    value
                }
            };
            self.builder.add_output(name, value)?;
        }
        self.builder.finish()
    }

    fn write(&mut self, blob: &'a str, value: Option<ValueId>) -> Result<()> {
        match self.values.insert(blob, value) {
            None => Ok(()),
            Some(_) => {
                let message = "two layers write the same blob";
                Err(Error::new(ErrorCode::InvalidGraph, message).with_input(blob))
            }
        }
    }

    /// The value of a blob that a layer reads; `None` where a refused layer should have written it.
    fn read(&mut self, blob: &str) -> Result<Option<ValueId>> {
        if let Some(&value) = self.values.get(blob) {
            return Ok(value);
        }
        let Some(tensor) = self.model.constant(blob).cloned() else {
            if self.model.is_missing() {
                self.model.miss();
                return Err(unsupported(
                    "a blob that stands in the file of the weights alone",
                ));
            }
            let message = "no layer before writes a blob that one reads";
            return Err(Error::new(ErrorCode::InvalidGraph, message).with_input(blob));
        };
        let constant = self.builder.add_constant(blob, tensor);
        Ok(Some(self.widened(constant)?))
    }

    /// Maps a layer. Nothing comes of one that reads what a refused layer should have written.
    fn layer(&mut self, info: &'a LayerInfo) -> Result<Option<Vec<ValueId>>> {
        let (map, bytes) = ops::find(&info.kind).ok_or_else(|| ops::refusal(&info.kind))?;
        let inputs = info.inputs.iter().map(|blob| self.read(blob));
        let inputs: Option<Vec<_>> = inputs.collect::<Result<_>>()?;
        let Some(mut inputs) = inputs else {
            return Ok(None);
        };
        let scale = match bytes {
            Bytes::Never => None,
            _ => self.rounded(info, &mut inputs)?,
        };
        let layer = Layer {
            name: &info.name,
            inputs,
            outputs: info.outputs.len(),
            words: &info.words,
            scale,
        };
        let mut made = map(self, &layer)?;
        if layer.scale.is_some() {
            self.rounded_outputs(info, bytes, &mut made)?;
        }
        if made.len() < info.outputs.len() {
            return Err(unsupported("outputs beside the first"));
        }
        for (value, blob) in made.iter_mut().zip(&info.outputs) {
            // What a layer passes on keeps its name.
            if !layer.inputs.contains(value) {
                *value = self.builder.name(*value, blob);
            }
        }
        Ok(Some(made))
    }

    /// Rounds those inputs of a layer in 8 bits that a layer in floats wrote, and gives the scale of the first. Nothing happens where the
    /// weights are not there.
    fn rounded(&mut self, info: &'a LayerInfo, inputs: &mut [ValueId]) -> Result<Option<f32>> {
        for (blob, value) in info.inputs.iter().zip(inputs) {
            if !self.scales.contains_key(&**blob) {
                let Some(scales) = self.blob_scale(blob)? else {
                    return Ok(None);
                };
                *value = self.in_bytes(*value, &scales)?;
                self.values.insert(blob, Some(*value));
                self.scales.insert(blob, scales);
            }
        }
        let first = info
            .inputs
            .first()
            .and_then(|blob| self.scales.get(&**blob));
        match first.map(Vec::as_slice) {
            Some(&[one]) => Ok(Some(one)),
            Some(_) => Err(unsupported("blobs with a scale for each channel")),
            None => Err(invalid("input 0 is missing")),
        }
    }

    /// Rounds what a layer in 8 bits gives.
    fn rounded_outputs(
        &mut self,
        info: &'a LayerInfo,
        bytes: Bytes,
        made: &mut [ValueId],
    ) -> Result<()> {
        for (blob, value) in info.outputs.iter().zip(made) {
            let scales = self.blob_scale(blob)?;
            let scales = scales.ok_or_else(|| invalid("a scale is missing"))?;
            if bytes == Bytes::Rounded {
                *value = self.in_bytes(*value, &scales)?;
            } else if self.scales.get(&*info.inputs[0]) != Some(&scales) {
                return Err(unsupported("integers that get another scale as they are"));
            }
            self.scales.insert(blob, scales);
        }
        Ok(())
    }

    /// The dimensions of `x`, if all are known.
    ///
    /// # Errors
    /// `Unsupported` where one is open.
    pub fn dims(&self, x: ValueId) -> Result<Vec<usize>> {
        self.shape(x)
            .ok_or_else(|| unsupported("sizes that are computed when the network runs"))
    }

    /// The number of channels of `x`: dimension 1.
    ///
    /// # Errors
    /// `Unsupported` where it is open, `InvalidModel` where there is no such dimension.
    pub fn channels(&self, x: ValueId) -> Result<usize> {
        if self.rank(x)? < 2 {
            return Err(invalid("a blob without channels"));
        }
        let channels = self.known_shape(x).and_then(|shape| shape.0[1].known());
        channels.ok_or_else(|| unsupported("a number of channels that is computed"))
    }

    /// The elements of an integer list that must be known when the network is read.
    ///
    /// # Errors
    /// `Unsupported` where another layer computes it.
    pub fn known_ints(&self, x: ValueId) -> Result<Vec<i64>> {
        match self.constant(x) {
            Some(tensor) => tensor.to_i64s(),
            None => Err(unsupported("a list that another layer computes")),
        }
    }

    /// Integers as an `int64` list, which shapes are.
    pub fn as_sizes(&mut self, x: ValueId) -> Result<ValueId> {
        match self.constant(x) {
            Some(tensor) => {
                let sizes = tensor.to_i64s()?;
                self.i64s(&sizes)
            }
            None => {
                let list = self.cast(x, DType::I64)?;
                match self.rank(list)? {
                    1 => Ok(list),
                    _ => self.reshape(list, &[-1]),
                }
            }
        }
    }
}

stands_for_builder!(Import);

//! From a network to a graph.

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::tensor::{Tensor, byte_count};
use kilim_core::{Dim, Fact, Shape};

use super::network::{Network, NodeInfo, TensorInfo, element_type};
use super::node::Node;
use super::{invalid, ops};
use crate::ModelFile;
use crate::beside::zeros;
use crate::build::{GraphBuilder, Refusals, shortened, stands_for_builder};
use crate::source::NODES_PER_CHECK;

/// The names of the dimensions of an input whose size the file does not give.
const OPEN: [&str; 4] = ["n", "c", "h", "w"];

/// Brings a network into a graph.
///
/// # Errors
/// Those of [`crate::Importer::load`].
pub fn graph(network: &Network, source: &ModelFile) -> Result<Graph> {
    let import = Import {
        network,
        source,
        builder: GraphBuilder::new("tengine", false, &source.interrupt),
        values: vec![None; network.tensors.len()],
        written: written(network),
    };
    import.whole()
}

/// What nodes are brought into.
pub struct Import<'a> {
    network: &'a Network<'a>,
    source: &'a ModelFile<'a>,
    builder: GraphBuilder,
    /// The value of each tensor that was written so far.
    values: Vec<Option<ValueId>>,
    /// Whether any node writes a tensor.
    written: Vec<bool>,
}

fn written(network: &Network) -> Vec<bool> {
    let mut written = vec![false; network.tensors.len()];
    let outputs = network.nodes.iter().flat_map(|node| &node.outputs);
    outputs.for_each(|&tensor| written[tensor] = true);
    written
}

impl Import<'_> {
    fn whole(mut self) -> Result<Graph> {
        let network = self.network;
        let mut refused = Refusals::default();
        for (i, info) in network.nodes.iter().enumerate() {
            if i % NODES_PER_CHECK == 0 {
                self.source.interrupt.check()?;
            }
            let around = self.builder.enter(&info.name);
            let made = self.node(info);
            self.builder.leave(around);
            refused.settle(made, &ops::name(info.operator), &info.name)?;
        }
        refused.check()?;
        for &node in &network.outputs {
            for &tensor in &network.nodes[node].outputs {
                self.output(tensor)?;
            }
        }
        self.builder.finish()
    }

    fn output(&mut self, tensor: usize) -> Result<()> {
        let name = self.network.tensors[tensor].name.clone();
        let value = self.values[tensor].ok_or_else(|| {
            let message = "no node writes an output of the network";
            Error::new(ErrorCode::InvalidGraph, message).with_input(&name)
        })?;
        let value = match self.builder.graph().value(value).name == shortened(&name) {
            true => value,
            false => {
                let around = self.builder.enter(&name);
                let value = self.builder.name(value, &name);
                self.builder.leave(around);
                value
            }
        };
        self.builder.add_output(&name, value)
    }

    /// Maps a node. Nothing comes of one that reads what a refused node should have written.
    fn node(&mut self, info: &NodeInfo) -> Result<()> {
        let tensors = &self.network.tensors;
        match info.operator {
            ops::INPUT => {
                for &tensor in &info.outputs {
                    self.input(tensor)?;
                }
                return Ok(());
            }
            // Constants are read where they are used.
            ops::CONSTANT => return Ok(()),
            _ => {}
        }
        let map = ops::find(info.operator).ok_or_else(|| ops::refusal(info.operator))?;
        if let Some(&tensor) = info.outputs.iter().find(|&&t| tensors[t].is_quantised) {
            return Err(unsupported("numbers of 8 bits").with_input(&tensors[tensor].name));
        }
        let mut inputs = Vec::new();
        for &tensor in &info.inputs {
            match self.read(tensor)? {
                Some(value) => inputs.push(value),
                None => return Ok(()),
            }
        }
        let node = Node {
            inputs,
            outputs: info.outputs.len(),
            params: info.params,
        };
        let made = map(self, &node)?;
        if made.len() < info.outputs.len() {
            return Err(unsupported("outputs beside the first"));
        }
        for (value, &tensor) in made.into_iter().zip(&info.outputs) {
            if self.values[tensor].is_some() {
                let message = "two nodes write the same tensor";
                return Err(Error::new(ErrorCode::InvalidGraph, message)
                    .with_input(&self.network.tensors[tensor].name));
            }
            let value = match node.inputs.contains(&value) {
                true => value,
                false => self.builder.name(value, &self.network.tensors[tensor].name),
            };
            self.values[tensor] = Some(value);
        }
        Ok(())
    }

    /// An input of the network. Where the file does not give its size, it is a picture with the channels of the first convolution.
    fn input(&mut self, tensor: usize) -> Result<()> {
        let info = &self.network.tensors[tensor];
        let dtype = element_type(info.element)?;
        if info.is_quantised || !matches!(dtype, DType::F32 | DType::I32) {
            return Err(unsupported("inputs of another element type than float32"));
        }
        let dims = match info.dims.is_empty() {
            true => {
                let mut dims = OPEN.map(|name| Dim::Symbol(name.into()));
                dims[0] = Dim::Known(1);
                if let Some(channels) = ops::channels(self.network, tensor) {
                    dims[1] = Dim::Known(channels);
                }
                dims.to_vec()
            }
            false => {
                let dims = info
                    .dims
                    .iter()
                    .map(|&n| usize::try_from(n).ok().filter(|&n| n > 0));
                let dims: Option<Vec<usize>> = dims.collect();
                let dims =
                    dims.ok_or_else(|| invalid("an input has no size").with_input(&info.name))?;
                dims.into_iter().map(Dim::Known).collect()
            }
        };
        let name = info.name.clone();
        let value = self
            .builder
            .add_input(&name, Fact::new(dtype, Shape(dims)))?;
        self.values[tensor] = Some(value);
        Ok(())
    }

    /// The value of a tensor that a node reads; `None` where a refused node should have written it.
    fn read(&mut self, tensor: usize) -> Result<Option<ValueId>> {
        if let Some(value) = self.values[tensor] {
            return Ok(Some(value));
        }
        let info = &self.network.tensors[tensor];
        if !info.is_constant {
            return match self.written[tensor] {
                true => Ok(None),
                false => {
                    let message = "no node writes a tensor that one reads";
                    Err(Error::new(ErrorCode::InvalidGraph, message).with_input(&info.name))
                }
            };
        }
        let tensor_of = self
            .constant_of(info)
            .map_err(|error| error.with_input(&info.name))?;
        let value = self.builder.add_constant(&info.name, tensor_of);
        let value = match self.dtype(value) {
            Some(DType::F16) => self.cast(value, DType::F32)?,
            _ => value,
        };
        self.values[tensor] = Some(value);
        Ok(Some(value))
    }

    fn constant_of(&self, info: &TensorInfo) -> Result<Tensor> {
        let dtype = element_type(info.element)?;
        if info.is_quantised || matches!(dtype, DType::I8 | DType::U8) {
            return Err(unsupported("numbers of 8 bits"));
        }
        let dims = info.dims.iter().map(|&n| usize::try_from(n).ok());
        let dims: Option<Vec<usize>> = dims.collect();
        let dims = dims.ok_or_else(|| invalid("a dimension is negative"))?;
        let len = byte_count(dtype, &dims)?;
        let bytes = match info.data {
            // Tengine itself takes zeros for numbers that are not there (`load_graph_tensors` in `tm2_serializer.c`).
            None => zeros(len)?,
            Some((_, size)) if size < len => {
                return Err(invalid("a constant has fewer bytes than its shape needs")
                    .with_expected(len)
                    .with_got(size));
            }
            Some((offset, _)) => self.source.part(offset as u64, len)?,
        };
        bytes.bytes_as(dtype, &dims)
    }

    /// The dimensions of `x`, if all are known.
    ///
    /// # Errors
    /// `Unsupported` where one is open.
    pub fn dims(&self, x: ValueId) -> Result<Vec<usize>> {
        self.shape(x)
            .ok_or_else(|| unsupported("sizes that the file does not give"))
    }

    /// What is known of dimension `axis` of `x`.
    pub fn length(&self, x: ValueId, axis: usize) -> Option<usize> {
        self.known_shape(x)
            .and_then(|shape| shape.0.get(axis)?.known())
    }

    /// The number of channels of `x`: dimension 1.
    ///
    /// # Errors
    /// `Unsupported` where it is open.
    pub fn channels(&self, x: ValueId) -> Result<usize> {
        let channels = self.length(x, 1);
        channels.ok_or_else(|| unsupported("a number of channels that is open"))
    }
}

stands_for_builder!(Import);

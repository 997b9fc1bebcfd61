//! What the layers of encoder and decoder have in common (`whisper_build_graph_*` in `src/whisper.cpp`).

use std::sync::Arc;

use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Attention, Fact, LayerNorm, UnaryKind};
use kilim_core::{DType, Interrupt, Limits};

use super::front::Sizes;
use super::tensors::OfFile;
use crate::build::GraphBuilder;
use crate::language::Weights;

/// What is added to a variance before its root is taken.
const EPSILON: f32 = 1e-5;

/// The graph while it grows.
pub struct Network<'a> {
    pub b: GraphBuilder,
    pub weights: Weights<'a>,
    pub sizes: &'a Sizes,
    interrupt: &'a Interrupt,
    limits: &'a Limits,
}

/// A dimension of any length.
pub fn symbol(name: &str) -> Dim {
    Dim::Symbol(Arc::from(name))
}

/// `float32` of these dimensions, behind a batch.
pub fn floats(dims: [Dim; 2]) -> Fact {
    let dims = [symbol("batch_size")].into_iter().chain(dims);
    Fact::new(DType::F32, Shape(dims.collect()))
}

impl<'a> Network<'a> {
    pub fn new(
        sizes: &'a Sizes,
        tensors: &'a OfFile<'a>,
        interrupt: &'a Interrupt,
        limits: &'a Limits,
    ) -> Network<'a> {
        Network {
            b: GraphBuilder::new("whisper", false, interrupt),
            weights: Weights::new(tensors),
            sizes,
            interrupt,
            limits,
        }
    }

    /// The graph of all halves that were added.
    ///
    /// # Errors
    /// `Unsupported` for tensors that no half knows.
    pub fn finish(self) -> Result<Graph> {
        self.weights.check_all_used(&[])?;
        self.b.finish()
    }

    /// What may stop the import.
    pub fn interrupt(&self) -> &'a Interrupt {
        self.interrupt
    }

    /// Called before each layer: whether to go on.
    ///
    /// # Errors
    /// `Aborted` where somebody asked for that, `Limit` for too many nodes.
    pub fn go_on(&mut self) -> Result<()> {
        self.interrupt.check()?;
        self.limits.check_nodes(self.b.graph().nodes.len())
    }

    /// `x · wᵀ` with a bias where the file has one; `name` is that of the tensors without `.weight` and `.bias`.
    pub fn product(&mut self, x: ValueId, name: &str, rows: usize) -> Result<ValueId> {
        self.weights.biased_product(&mut self.b, x, name, rows)
    }

    /// A constant of this shape, as `float32`.
    pub fn constant(&mut self, name: &str, shape: &[usize]) -> Result<ValueId> {
        let tensor = self.weights.plain(name, shape)?;
        let value = self.b.add_constant(name, tensor);
        self.b.cast(value, DType::F32)
    }

    /// `x` with mean 0 and variance 1 in each row, scaled and shifted.
    pub fn norm(&mut self, x: ValueId, name: &str) -> Result<ValueId> {
        let width = [self.sizes.width];
        let weight = self.constant(&format!("{name}.weight"), &width)?;
        let bias = self.constant(&format!("{name}.bias"), &width)?;
        let norm = LayerNorm {
            axis: -1,
            epsilon: EPSILON,
        };
        self.b.op(norm, &[x, weight, bias])
    }

    /// The product of a name in heads: `[batch, heads, places, size]` of `[batch, places, width]`.
    pub fn in_heads(&mut self, x: ValueId, name: &str, heads: usize) -> Result<ValueId> {
        let width = self.sizes.width;
        in_heads(&mut self.b, &mut self.weights, x, name, [heads, width])
    }

    /// What these queries of so many heads see of keys and values, multiplied by the matrix `out` of the attention `name`:
    /// `[batch, places, width]`. `inputs` are those of the operator.
    pub fn attend(
        &mut self,
        causal: bool,
        inputs: &[Option<ValueId>],
        heads: usize,
        name: &str,
    ) -> Result<ValueId> {
        let width = self.sizes.width;
        let op = Attention {
            scale: 1.0 / ((width / heads) as f32).sqrt(),
            causal,
            ..Attention::default()
        };
        let y = self.b.step(op, inputs)?;
        let y = self.b.transpose(y, &[0, 2, 1, 3])?;
        let y = self.b.reshape(y, &[0, 0, -1])?;
        self.product(y, &format!("{name}.out"), width)
    }

    /// `x + second(gelu(first(norm(x))))`, the half of a layer behind its attention.
    pub fn hidden(&mut self, x: ValueId, layer: &str) -> Result<ValueId> {
        let around = self.b.enter(&format!("{layer}.mlp"));
        let [first, second] = [0, 2].map(|i| format!("{layer}.mlp.{i}"));
        let rows = self.weights.rows(&format!("{first}.weight"))?;
        let y = self.norm(x, &format!("{layer}.mlp_ln"))?;
        let y = self.product(y, &first, rows)?;
        let y = self.b.unary(UnaryKind::Gelu { tanh: false }, y)?;
        let y = self.product(y, &second, self.sizes.width)?;
        let x = self.b.add(x, y)?;
        self.b.leave(around);
        Ok(x)
    }
}

/// The product of a name in heads, `[batch, heads, places, size]` of `[batch, places, width]`, with the nodes in any graph.
pub fn in_heads(
    b: &mut GraphBuilder,
    weights: &mut Weights,
    x: ValueId,
    name: &str,
    [heads, width]: [usize; 2],
) -> Result<ValueId> {
    let y = weights.biased_product(b, x, name, width)?;
    let y = b.reshape(y, &[0, 0, heads as i64, -1])?;
    b.transpose(y, &[0, 2, 1, 3])
}

//! The graph of an encoder of words, BERT for instance (`src/models/bert.cpp`).

use std::sync::Arc;

use kilim_core::DType;
use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Attention, Fact, LayerNorm, ReduceKind, UnaryKind};

use super::OfFile;
use super::header::Header;
use super::invalid;
use crate::ModelFile;
use crate::build::GraphBuilder;
use crate::language::Weights;

/// The parts of attention, in the order of queries, keys and values.
const PARTS: [&str; 3] = ["attn_q", "attn_k", "attn_v"];

/// What hides a place from attention, added to its scores.
const HIDDEN: f64 = f32::MIN as f64;

/// How the vectors of words become one of the text (`enum llama_pooling_type`).
const MEAN: usize = 1;
const FIRST: usize = 2;

struct Encoder<'a> {
    b: GraphBuilder,
    weights: Weights<'a>,
    width: usize,
    heads: usize,
    hidden: usize,
    epsilon: f32,
    /// What is added to the scores of each place, `[batch, 1, 1, words]`.
    bias: ValueId,
}

/// The graph of a file: inputs `input_ids` and `attention_mask`, both `int64` `[batch, words]`; outputs `last_hidden_state`
/// `[batch, words, width]`, and `sentence_embedding` `[batch, width]` where the file says how vectors become one. All words are of the
/// first kind (`token_type_ids` 0).
///
/// # Errors
/// `InvalidModel` where tensors and metadata do not fit, `Unsupported` for what Kilim does not have.
pub fn graph(name: &str, header: &Header, source: &ModelFile) -> Result<Graph> {
    let metadata = &header.metadata;
    let count = |what: &str| metadata.needed(&format!("{name}.{what}"));
    let (layers, width) = (count("block_count")?, count("embedding_length")?);
    let (heads, hidden) = (
        count("attention.head_count")?,
        count("feed_forward_length")?,
    );
    if !width.is_multiple_of(heads) {
        return Err(invalid("heads that are no whole part of the width").with_got(heads));
    }
    let epsilon = metadata.float(&format!("{name}.attention.layer_norm_epsilon"))?;
    let epsilon = epsilon.ok_or_else(|| invalid("the epsilon of the norms is missing"))?;
    let mut b = GraphBuilder::new(name, false, &source.interrupt);
    let symbol = |name: &str| Dim::Symbol(Arc::from(name));
    let shape = Shape(vec![symbol("batch_size"), symbol("sequence_length")]);
    let ids = b.add_input("input_ids", Fact::new(DType::I64, shape.clone()))?;
    let mask = b.add_input("attention_mask", Fact::new(DType::I64, shape))?;
    let around = b.enter("attention_mask");
    let mask = b.cast(mask, DType::F32)?;
    let (one, least) = (b.number(1.0, mask)?, b.number(HIDDEN, mask)?);
    let missing = b.sub(one, mask)?;
    let bias = b.mul(missing, least)?;
    let bias = b.unsqueeze(bias, &[1, 2])?;
    b.leave(around);
    let tensors = OfFile { header, source };
    let mut encoder = Encoder {
        b,
        weights: Weights::new(&tensors),
        width,
        heads,
        hidden,
        epsilon: epsilon as f32,
        bias,
    };
    let mut x = encoder.embedding(ids)?;
    for layer in 0..layers {
        source.interrupt.check()?;
        x = encoder.layer(layer, x)?;
    }
    let pooling = metadata.count(&format!("{name}.pooling_type"))?;
    encoder.finish(x, mask, pooling)
}

impl Encoder<'_> {
    /// Vectors of words, of their places and of their kind, together.
    fn embedding(&mut self, ids: ValueId) -> Result<ValueId> {
        let around = self.b.enter("token_embd");
        let (b, weights, width) = (&mut self.b, &mut self.weights, self.width);
        let words = weights.gather(b, ids, "token_embd.weight", width)?;
        let length = b.dim(ids, 1)?;
        let places = b.iota(length)?;
        let places = weights.gather(b, places, "position_embd.weight", width)?;
        let mut x = b.add(words, places)?;
        if weights.has("token_types.weight") {
            let first = b.i64s(&[0])?;
            let kind = weights.gather(b, first, "token_types.weight", width)?;
            x = b.add(x, kind)?;
        }
        let x = self.norm(x, "token_embd_norm")?;
        self.b.leave(around);
        Ok(x)
    }

    /// Attention, then two products, each normalised together with what it was made of.
    fn layer(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let name = |what: &str| format!("blk.{layer}.{what}");
        let around = self.b.enter(&name("attn"));
        let y = self.attention(x, &name)?;
        let x = self.b.add(x, y)?;
        let x = self.norm(x, &name("attn_output_norm"))?;
        self.b.leave(around);
        let around = self.b.enter(&name("ffn"));
        let y = self.product(x, &name("ffn_up"), self.hidden)?;
        let y = self.b.unary(UnaryKind::Gelu { tanh: false }, y)?;
        let y = self.product(y, &name("ffn_down"), self.width)?;
        let x = self.b.add(x, y)?;
        let x = self.norm(x, &name("layer_output_norm"))?;
        self.b.leave(around);
        Ok(x)
    }

    fn attention(&mut self, x: ValueId, name: &dyn Fn(&str) -> String) -> Result<ValueId> {
        let mut parts = [x; 3];
        for (part, what) in parts.iter_mut().zip(PARTS) {
            let y = self.product(x, &name(what), self.width)?;
            let y = self.b.reshape(y, &[0, 0, self.heads as i64, -1])?;
            *part = self.b.transpose(y, &[0, 2, 1, 3])?;
        }
        let size = (self.width / self.heads) as f32;
        let op = Attention {
            scale: 1.0 / size.sqrt(),
            ..Attention::default()
        };
        let [query, key, value] = parts;
        let y = self.b.op(op, &[query, key, value, self.bias])?;
        let y = self.b.transpose(y, &[0, 2, 1, 3])?;
        let y = self.b.reshape(y, &[0, 0, -1])?;
        self.product(y, &name("attn_output"), self.width)
    }

    fn product(&mut self, x: ValueId, name: &str, rows: usize) -> Result<ValueId> {
        self.weights.biased_product(&mut self.b, x, name, rows)
    }

    fn norm(&mut self, x: ValueId, name: &str) -> Result<ValueId> {
        let part = |what: &str| format!("{name}.{what}");
        let weight = self
            .weights
            .vector(&mut self.b, &part("weight"), self.width)?;
        let bias = self
            .weights
            .vector(&mut self.b, &part("bias"), self.width)?;
        let epsilon = self.epsilon;
        self.b
            .op(LayerNorm { axis: -1, epsilon }, &[x, weight, bias])
    }

    /// The graph with its outputs; `mask` is 1 for each word, 0 for padding.
    fn finish(mut self, x: ValueId, mask: ValueId, pooling: Option<usize>) -> Result<Graph> {
        self.weights.check_all_used(&[])?;
        let b = &mut self.b;
        let around = b.enter("last_hidden_state");
        let x = b.name(x, "last_hidden_state");
        b.leave(around);
        b.add_output("last_hidden_state", x)?;
        let around = b.enter("sentence_embedding");
        let pooled = match pooling {
            Some(MEAN) => {
                let mask = b.unsqueeze(mask, &[2])?;
                let masked = b.mul(x, mask)?;
                let sum = b.reduce(ReduceKind::Sum, masked, &[1], false)?;
                let count = b.reduce(ReduceKind::Sum, mask, &[1], false)?;
                Some(b.div(sum, count)?)
            }
            Some(FIRST) => {
                let first = b.slice(x, 1, 0, 1)?;
                Some(b.squeeze(first, &[1])?)
            }
            _ => None,
        };
        if let Some(pooled) = pooled {
            let pooled = b.name(pooled, "sentence_embedding");
            b.add_output("sentence_embedding", pooled)?;
        }
        b.leave(around);
        self.b.finish()
    }
}

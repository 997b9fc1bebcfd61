//! A decoder's graph.

use std::sync::Arc;

use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{BinaryKind, Fact, ReduceKind, RmsNorm, UnaryKind};
use kilim_core::{DType, Interrupt, Limits};

use super::angles::Tables;
use super::architecture::Gate;
use super::sizes::Sizes;
use super::weights::{Tensors, Weights};
use crate::build::GraphBuilder;
use crate::source::NODES_PER_CHECK;

/// Factors that slow the turning of each pair down; a file of longrope has two sets, for short texts and for long ones.
const FACTORS: [&str; 2] = ["rope_freqs.weight", "rope_factors_short.weight"];
const LONG_FACTORS: &str = "rope_factors_long.weight";

/// A decoder while its layers are added.
pub struct Decoder<'a> {
    pub b: GraphBuilder,
    pub weights: Weights<'a>,
    pub sizes: Sizes,
    pub text: Text,
    /// What layers give besides what the next one takes: caches by their names.
    pub given: Vec<(String, ValueId)>,
}

/// What all layers are told of the text.
pub struct Text {
    /// How many words the caches of each sequence hold, `[batch]`.
    pub before: ValueId,
    /// Words so far of the longest sequence, `[1]`.
    pub total: ValueId,
    /// Cosines and sines of the new words, `[batch, words, pairs]`.
    pub angles: [ValueId; 2],
    /// Cosines and sines of the new words in layers with windows.
    pub angles_of_windows: [ValueId; 2],
}

fn symbol(name: &str) -> Dim {
    Dim::Symbol(Arc::from(name))
}

/// The graph of a decoder: inputs `input_ids` `[batch, words]` and `attention_mask` `[batch, words so far]`, both `int64`, and for each
/// layer what came before, `past_key_values.N.key` and `.value`, `[batch, heads, places, size]`; outputs `logits`
/// `[batch, words, vocabulary]` and `present.N.key` and `.value`.
///
/// # Errors
/// `Unsupported` for what Kilim does not have, `InvalidModel` where tensors and sizes do not fit, `Limit` for too many nodes.
pub fn graph(
    sizes: Sizes,
    tensors: &dyn Tensors,
    interrupt: &Interrupt,
    limits: &Limits,
) -> Result<Graph> {
    let mut b = GraphBuilder::new(&sizes.name, false, interrupt);
    let mut weights = Weights::new(tensors);
    let (batch, words) = (symbol("batch_size"), symbol("sequence_length"));
    let row = |second: Dim| Fact::new(DType::I64, Shape(vec![batch.clone(), second]));
    let ids = b.add_input("input_ids", row(words))?;
    let mask = b.add_input("attention_mask", row(symbol("total_sequence_length")))?;
    let around = b.enter("text");
    let text = text(&mut b, &weights, &sizes, ids, mask)?;
    b.leave(around);
    let around = b.enter("token_embd");
    let mut x = weights.gather(&mut b, ids, "token_embd.weight", sizes.width)?;
    if sizes.architecture.scaled_embedding {
        let factor = b.number((sizes.width as f64).sqrt(), x)?;
        x = b.mul(x, factor)?;
    }
    b.leave(around);
    let mut decoder = Decoder {
        b,
        weights,
        sizes,
        text,
        given: Vec::new(),
    };
    for layer in 0..decoder.sizes.layers {
        if layer % (NODES_PER_CHECK / 64) == 0 {
            interrupt.check()?;
            limits.check_nodes(decoder.b.graph().nodes.len())?;
        }
        x = decoder.layer(layer, x)?;
    }
    let logits = decoder.head(x)?;
    decoder.weights.check_all_used(&[LONG_FACTORS])?;
    let Decoder { mut b, given, .. } = decoder;
    b.add_output("logits", logits)?;
    for (name, value) in given {
        b.add_output(&name, value)?;
    }
    b.finish()
}

/// The places of the new words, and by which angles they turn.
fn text(
    b: &mut GraphBuilder,
    weights: &Weights,
    sizes: &Sizes,
    ids: ValueId,
    mask: ValueId,
) -> Result<Text> {
    let lengths = b.reduce(ReduceKind::Sum, mask, &[1], false)?;
    let (total, new, zero) = (b.dim(mask, 1)?, b.dim(ids, 1)?, b.i64(0)?);
    // A first prompt may be longer than its sequence, being padded.
    let before = b.sub(lengths, new)?;
    let before = b.binary(BinaryKind::Max, before, zero)?;
    let steps = b.iota(new)?;
    let (steps, starts) = (b.unsqueeze(steps, &[0])?, b.unsqueeze(before, &[1])?);
    let places = b.add(steps, starts)?;
    let mut factors = sizes.factors.clone();
    for name in FACTORS.into_iter().filter(|name| weights.has(name)) {
        let tensor = weights.plain(name, &[sizes.turned / 2])?;
        factors = Some(tensor.as_slice::<f32>()?.to_vec());
    }
    let mut angles = |name, window| {
        let frequencies = sizes.frequencies(window, factors.as_deref());
        Tables::new(b, name, sizes.context, &frequencies, sizes.stretch)?.at(b, places)
    };
    let whole = angles("angles", false)?;
    let differ = sizes.base_of_windows != sizes.base || sizes.slower != 1.0;
    let windows = match differ && (0..sizes.layers).any(|i| sizes.window_of(i).is_some()) {
        true => angles("angles of windows", true)?,
        false => whole,
    };
    Ok(Text {
        before,
        total,
        angles: whole,
        angles_of_windows: windows,
    })
}

impl Decoder<'_> {
    /// The name of a tensor of a layer.
    pub fn tensor(&self, layer: usize, what: &str) -> String {
        format!("blk.{layer}.{what}")
    }

    /// A layer: attention or a convolution, then the gated product, each normalised before and added to what it was made of.
    fn layer(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let around = self.b.enter(&self.tensor(layer, "attn"));
        let normed = self.norm(x, &self.tensor(layer, "attn_norm"))?;
        let y = match self.convolves(layer) {
            true => self.convolution(layer, normed)?,
            false => self.attention(layer, normed)?,
        };
        let y = self.norm_where_there(y, &self.tensor(layer, "post_attention_norm"))?;
        let x = self.b.add(x, y)?;
        self.b.leave(around);
        let around = self.b.enter(&self.tensor(layer, "ffn"));
        let normed = self.norm(x, &self.tensor(layer, "ffn_norm"))?;
        let y = self.gated(layer, normed)?;
        let y = self.norm_where_there(y, &self.tensor(layer, "post_ffw_norm"))?;
        let x = self.b.add(x, y)?;
        self.b.leave(around);
        Ok(x)
    }

    /// The scores of all words, with the rows of the embedding where the file has no others.
    fn head(&mut self, x: ValueId) -> Result<ValueId> {
        let around = self.b.enter("output");
        let norms = ["output_norm", self.sizes.architecture.last_norm];
        let norm = norms
            .into_iter()
            .find(|name| self.weights.has(&format!("{name}.weight")));
        let x = self.norm(x, norm.unwrap_or(norms[0]))?;
        let name = match self.weights.has("output.weight") {
            true => "output.weight",
            false => "token_embd.weight",
        };
        let words = self.weights.rows(name)?;
        let mut y = self.weights.product(&mut self.b, x, name, words, None)?;
        if let Some(cap) = self.sizes.logit_cap {
            let cap = self.b.number(f64::from(cap), y)?;
            y = self.b.div(y, cap)?;
            y = self.b.unary(UnaryKind::Tanh, y)?;
            y = self.b.mul(y, cap)?;
        }
        let y = self.b.name(y, "logits");
        self.b.leave(around);
        Ok(y)
    }

    /// `x · wᵀ` with a bias where the file has one; `name` is that of the tensors without `.weight` and `.bias`.
    pub fn product(&mut self, x: ValueId, name: &str, rows: usize) -> Result<ValueId> {
        self.weights.biased_product(&mut self.b, x, name, rows)
    }

    /// Rows of `x` divided by their root mean square.
    pub fn norm(&mut self, x: ValueId, name: &str) -> Result<ValueId> {
        let size = self
            .b
            .known_shape(x)
            .and_then(|shape| shape.0.last()?.known());
        let weight = format!("{name}.weight");
        let weight = self
            .weights
            .vector(&mut self.b, &weight, size.unwrap_or(self.sizes.width))?;
        let epsilon = self.sizes.epsilon;
        self.b.op(RmsNorm { axis: -1, epsilon }, &[x, weight])
    }

    /// The norm of `x`, or `x` where the file has no weights for it.
    pub fn norm_where_there(&mut self, x: ValueId, name: &str) -> Result<ValueId> {
        match self.weights.has(&format!("{name}.weight")) {
            true => self.norm(x, name),
            false => Ok(x),
        }
    }

    /// `down(gate(x) · up(x))`; the gate stands in front of the rest in one tensor where it has none of its own.
    fn gated(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let [gate, up, down] = ["ffn_gate", "ffn_up", "ffn_down"].map(|w| self.tensor(layer, w));
        let hidden = self.sizes.hidden[layer];
        let [gate, up] = match self.weights.has(&format!("{gate}.weight")) {
            true => [
                self.product(x, &gate, hidden)?,
                self.product(x, &up, hidden)?,
            ],
            false => {
                let both = self.product(x, &up, hidden.saturating_mul(2))?;
                self.b.halves(both, -1)?
            }
        };
        let gate = match self.sizes.architecture.gate {
            Gate::Silu => self.b.unary(UnaryKind::Swish { alpha: 1.0 }, gate)?,
            Gate::Gelu => self.b.unary(UnaryKind::Gelu { tanh: true }, gate)?,
        };
        let inner = self.b.mul(gate, up)?;
        self.product(inner, &down, self.sizes.width)
    }
}

//! The half that writes: layers that look back on the words, and at what the encoder made.

use std::sync::Arc;

use kilim_core::DType;
use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{BinaryKind, Fact, If, ReduceKind, TensorScatter};

use super::network::{Network, floats, in_heads, symbol};
use crate::build::GraphBuilder;

/// The parts of a cache.
const PARTS: [&str; 2] = ["key", "value"];

/// What all layers are told of the text.
struct Text {
    /// How many words the caches hold, `[batch]`.
    before: ValueId,
    /// Words so far, `[1]`.
    total: ValueId,
    /// Keys and values of what the encoder made, those of each layer together.
    heard: Vec<ValueId>,
    /// Caches as they go out, by their names.
    given: Vec<(String, ValueId)>,
}

impl Network<'_> {
    /// Adds the decoder: inputs `input_ids` `[batch, words]` and `attention_mask` `[batch, words so far]`, both `int64`,
    /// `encoder_hidden_states` `[batch, places, width]`, `use_cache_branch` `[1]`, true behind the first step of a text, and for each layer
    /// `past_key_values.N.decoder.key` and its like, `[batch, heads, places, size]`; outputs `logits` `[batch, words, vocabulary]`, and
    /// `present.N.decoder.key` and its like. Keys and values of what the encoder made (`present.N.encoder.key`) are computed in the first step.
    ///
    /// # Errors
    /// `InvalidModel` where tensors and sizes do not fit, `Unsupported` for what Kilim does not have, `Limit` for too many nodes.
    pub fn decoder(&mut self) -> Result<()> {
        let (width, context) = (self.sizes.width, self.sizes.context);
        let row = |words: &str| {
            let dims = [symbol("batch_size"), symbol(words)];
            Fact::new(DType::I64, Shape(dims.to_vec()))
        };
        let ids = self.b.add_input("input_ids", row("sequence_length"))?;
        let mask = row("total_sequence_length");
        let mask = self.b.add_input("attention_mask", mask)?;
        let heard = self.heard()?;
        let around = self.b.enter("decoder.text");
        let lengths = self.b.reduce(ReduceKind::Sum, mask, &[1], false)?;
        let (total, new) = (self.b.dim(mask, 1)?, self.b.dim(ids, 1)?);
        let before = self.b.sub(lengths, new)?;
        let steps = self.b.iota(new)?;
        let (steps, starts) = (
            self.b.unsqueeze(steps, &[0])?,
            self.b.unsqueeze(before, &[1])?,
        );
        let places = self.b.add(steps, starts)?;
        let words = "decoder.token_embedding.weight";
        let x = self.weights.gather(&mut self.b, ids, words, width)?;
        let at = "decoder.positional_embedding";
        // The table says how many words there may be, as the sizes do.
        self.weights.plain(at, &[context, width])?;
        let at = self.weights.gather(&mut self.b, places, at, width)?;
        let mut x = self.b.add(x, at)?;
        self.b.leave(around);
        let mut text = Text {
            before,
            total,
            heard,
            given: Vec::new(),
        };
        for layer in 0..self.sizes.decoder_layers {
            self.go_on()?;
            x = self.writing(x, layer, &mut text)?;
        }
        let around = self.b.enter("decoder.ln");
        let x = self.norm(x, "decoder.ln")?;
        let logits = self
            .weights
            .product(&mut self.b, x, words, self.sizes.words, None)?;
        let logits = self.b.name(logits, "logits");
        self.b.leave(around);
        self.b.add_output("logits", logits)?;
        for (name, value) in text.given {
            self.b.add_output(&name, value)?;
        }
        Ok(())
    }

    /// A cache as it comes.
    fn cache(&mut self, layer: usize, what: &str, places: &str) -> Result<ValueId> {
        let heads = self.sizes.decoder_heads;
        let size = self.sizes.width / heads;
        let dims = [
            symbol("batch_size"),
            Dim::Known(heads),
            symbol(places),
            Dim::Known(size),
        ];
        let fact = Fact::new(DType::F32, Shape(dims.to_vec()));
        let name = format!("past_key_values.{layer}.{what}");
        self.b.add_input(&name, fact)
    }

    /// Keys and values of what the encoder made, a pair for each layer: computed where there are no caches yet, else those of the caches.
    fn heard(&mut self) -> Result<Vec<ValueId>> {
        let (width, heads) = (self.sizes.width, self.sizes.decoder_heads);
        let source = floats([symbol("encoder_sequence_length"), Dim::Known(width)]);
        let source = self.b.add_input("encoder_hidden_states", source)?;
        let known = Fact::fixed(DType::Bool, &[1]);
        let known = self.b.add_input("use_cache_branch", known)?;
        let mut taken = vec![source];
        for layer in 0..self.sizes.decoder_layers {
            self.go_on()?;
            for part in PARTS {
                // A number of layers that the file does not have adds nothing to the graph.
                let name = format!("decoder.blocks.{layer}.cross_attn.{part}.weight");
                self.weights.rows(&name)?;
                let what = format!("encoder.{part}");
                taken.push(self.cache(layer, &what, "encoder_sequence_length_out")?);
            }
        }
        let facts: Vec<Fact> = taken.iter().map(|&v| self.b.fact(v)).collect();
        let body = |name: &str, interrupt: &kilim_core::Interrupt| -> Result<_> {
            let mut b = GraphBuilder::new(name, false, interrupt);
            let given = facts.iter().enumerate();
            let given = given.map(|(i, fact)| b.add_input(&format!("taken {i}"), fact.clone()));
            let given = given.collect::<Result<Vec<_>>>()?;
            Ok((b, given))
        };
        let (mut b, given) = body("kept", self.interrupt())?;
        let mut kept = Vec::new();
        for (i, &cache) in given[1..].iter().enumerate() {
            kept.push(b.name(cache, &format!("kept {i}")));
        }
        let then_body = finished(b, kept)?;
        let (mut b, given) = body("heard", self.interrupt())?;
        let mut made = Vec::new();
        for layer in 0..self.sizes.decoder_layers {
            for part in PARTS {
                let name = format!("decoder.blocks.{layer}.cross_attn.{part}");
                let around = b.enter(&name);
                let weights = &mut self.weights;
                made.push(in_heads(&mut b, weights, given[0], &name, [heads, width])?);
                b.leave(around);
            }
        }
        let else_body = finished(b, made)?;
        let around = self.b.enter("decoder.heard");
        let op = If {
            then_body,
            else_body,
        };
        let inputs: Vec<_> = [known].into_iter().chain(taken).map(Some).collect();
        let heard = self.b.apply(op, &inputs, inputs.len() - 2)?;
        self.b.leave(around);
        Ok(heard)
    }

    fn writing(&mut self, x: ValueId, layer: usize, text: &mut Text) -> Result<ValueId> {
        let name = format!("decoder.blocks.{layer}");
        let heads = self.sizes.decoder_heads;
        let around = self.b.enter(&format!("{name}.attn"));
        let y = self.norm(x, &format!("{name}.attn_ln"))?;
        let query = self.in_heads(y, &format!("{name}.attn.query"), heads)?;
        let mut inputs = vec![Some(query)];
        for part in PARTS {
            let new = self.in_heads(y, &format!("{name}.attn.{part}"), heads)?;
            let what = format!("decoder.{part}");
            let past = self.cache(layer, &what, "past_decoder_sequence_length")?;
            let room = self.b.dim(past, 2)?;
            let room = self.b.binary(BinaryKind::Max, text.total, room)?;
            let op = TensorScatter {
                axis: 2,
                circular: false,
            };
            let cache = self.b.op(op, &[past, new, text.before, room])?;
            inputs.push(Some(self.give(layer, &what, cache, text)));
        }
        inputs.extend([None, Some(text.before)]);
        let y = self.attend(true, &inputs, heads, &format!("{name}.attn"))?;
        let x = self.b.add(x, y)?;
        self.b.leave(around);
        let around = self.b.enter(&format!("{name}.cross_attn"));
        let y = self.norm(x, &format!("{name}.cross_attn_ln"))?;
        let query = self.in_heads(y, &format!("{name}.cross_attn.query"), heads)?;
        let mut inputs = vec![Some(query)];
        for (i, part) in PARTS.into_iter().enumerate() {
            let cache = text.heard[2 * layer + i];
            inputs.push(Some(self.give(
                layer,
                &format!("encoder.{part}"),
                cache,
                text,
            )));
        }
        let y = self.attend(false, &inputs, heads, &format!("{name}.cross_attn"))?;
        let x = self.b.add(x, y)?;
        self.b.leave(around);
        self.hidden(x, &name)
    }

    /// Makes a cache an output.
    fn give(&mut self, layer: usize, what: &str, cache: ValueId, text: &mut Text) -> ValueId {
        let name = format!("present.{layer}.{what}");
        let cache = self.b.name(cache, &name);
        text.given.push((name, cache));
        cache
    }
}

fn finished(mut b: GraphBuilder, outputs: Vec<ValueId>) -> Result<Arc<Graph>> {
    b.graph().outputs = outputs;
    Ok(Arc::new(b.finish()?))
}

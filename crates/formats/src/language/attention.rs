//! The attention of a layer, and its caches.

use std::sync::Arc;

use kilim_core::DType;
use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Align, Angles, Attention, BinaryKind, Fact, RotaryEmbedding, Split, TensorScatter, UnpackQkv,
};

use super::architecture::Pairs;
use super::decoder::Decoder;
use super::invalid;

/// The parts of attention, in the order of queries, keys and values.
const PARTS: [&str; 3] = ["attn_q", "attn_k", "attn_v"];

impl Decoder<'_> {
    /// Attention of `x` `[batch, words, width]` to itself and to the caches of the layer.
    pub fn attention(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let heads = self.heads(layer)?;
        let [query, key, value] = match self.unpacks_at_once(layer) {
            true => self.unpacked_at_once(layer, heads, x)?,
            false => self.spelled_out(layer, heads, x)?,
        };
        let left = self.sizes.window_of(layer).map(|window| window as i64 - 1);
        let op = Attention {
            scale: self.sizes.score_factor(layer),
            softcap: self.sizes.score_cap,
            causal: true,
            left: left.unwrap_or(-1),
            align: Align::Start,
            ..Attention::default()
        };
        let before = Some(self.text.before);
        let y = self
            .b
            .step(op, &[Some(query), Some(key), Some(value), None, before])?;
        let y = self.b.transpose(y, &[0, 2, 1, 3])?;
        let y = self.b.reshape(y, &[0, 0, -1])?;
        self.product(y, &self.tensor(layer, "attn_output"), self.sizes.width)
    }

    /// The heads of queries, keys and values, and the numbers of each.
    fn heads(&self, layer: usize) -> Result<[(usize, usize); 3]> {
        let s = &self.sizes;
        let (queries, keys) = (s.heads[layer], s.key_heads[layer]);
        if keys == 0 || queries == 0 || !queries.is_multiple_of(keys) {
            let e = invalid("heads of queries that do not share those of keys");
            return Err(e
                .with_expected(format!("a multiple of {keys}"))
                .with_got(queries));
        }
        Ok([
            (queries, s.key_size),
            (keys, s.key_size),
            (keys, s.value_size),
        ])
    }

    /// Whether one operator does all there is to do in front of the attention.
    fn unpacks_at_once(&self, layer: usize) -> bool {
        let normed = ["attn_q_norm.weight", "attn_k_norm.weight"];
        let normed = normed
            .iter()
            .any(|name| self.weights.has(&self.tensor(layer, name)));
        self.sizes.turns(layer) && !normed && self.sizes.key_size == self.sizes.value_size
    }

    /// Queries, and the caches of keys and values with the new ones, of one product.
    fn unpacked_at_once(
        &mut self,
        layer: usize,
        heads: [(usize, usize); 3],
        x: ValueId,
    ) -> Result<[ValueId; 3]> {
        let widths = heads.map(|(heads, size)| heads.saturating_mul(size));
        let all = self.queries_keys_values(layer, x, widths)?;
        let [cosines, sines] = self.angles(layer);
        let [(queries, _), (keys, size), _] = heads;
        let key = self.cache(layer, "key", keys, size)?;
        let value = self.cache(layer, "value", keys, size)?;
        let room = self.room(key)?;
        let op = UnpackQkv {
            query_heads: queries,
            key_heads: keys,
            interleaved: self.sizes.architecture.pairs == Pairs::Neighbours,
        };
        let inputs = [all, cosines, sines, key, value, self.text.before, room];
        let made = self.b.apply(op, &inputs.map(Some), 3)?;
        let key = self.give(layer, "key", made[1]);
        let value = self.give(layer, "value", made[2]);
        Ok([made[0], key, value])
    }

    /// Queries `[batch, heads, words, size]`, and the caches of keys and values with the new ones, step by step.
    fn spelled_out(
        &mut self,
        layer: usize,
        heads: [(usize, usize); 3],
        x: ValueId,
    ) -> Result<[ValueId; 3]> {
        let widths = heads.map(|(heads, size)| heads.saturating_mul(size));
        let all = self.queries_keys_values(layer, x, widths)?;
        let lengths = self.b.i64s(&widths.map(|n| n as i64))?;
        let mut parts = self
            .b
            .apply(Split { axis: 2 }, &[Some(all), Some(lengths)], 3)?;
        for (part, (heads, size)) in parts.iter_mut().zip(heads) {
            *part = self.b.reshape(*part, &[0, 0, heads as i64, size as i64])?;
        }
        for (part, norm) in parts.iter_mut().zip(["attn_q_norm", "attn_k_norm"]) {
            *part = self.norm_where_there(*part, &self.tensor(layer, norm))?;
            if self.sizes.turns(layer) {
                *part = self.turned(layer, *part)?;
            }
        }
        for part in &mut parts {
            *part = self.b.transpose(*part, &[0, 2, 1, 3])?;
        }
        let mut caches = [parts[0]; 2];
        for (i, what) in ["key", "value"].into_iter().enumerate() {
            let (heads, size) = heads[1 + i];
            let past = self.cache(layer, what, heads, size)?;
            let room = self.room(past)?;
            let op = TensorScatter {
                axis: 2,
                circular: false,
            };
            let filled = self
                .b
                .op(op, &[past, parts[1 + i], self.text.before, room])?;
            caches[i] = self.give(layer, what, filled);
        }
        Ok([parts[0], caches[0], caches[1]])
    }

    /// Queries, keys and values behind each other, `[batch, words, all widths]`: of one product where their weights are of one type.
    fn queries_keys_values(
        &mut self,
        layer: usize,
        x: ValueId,
        widths: [usize; 3],
    ) -> Result<ValueId> {
        let whole = self.tensor(layer, "attn_qkv");
        if self.weights.has(&format!("{whole}.weight")) {
            let all = widths.iter().fold(0, |n: usize, &w| n.saturating_add(w));
            return self.product(x, &whole, all);
        }
        let names = PARTS.map(|part| self.tensor(layer, part));
        let weights = names.each_ref().map(|name| format!("{name}.weight"));
        if !self.weights.stack(&weights) {
            let mut parts = [x; 3];
            for (i, part) in parts.iter_mut().enumerate() {
                *part = self.product(x, &names[i], widths[i])?;
            }
            return self.b.concat(&parts, 2);
        }
        let biases = names.each_ref().map(|name| format!("{name}.bias"));
        let biases: [_; 3] = std::array::from_fn(|i| (biases[i].as_str(), widths[i]));
        let bias = self.weights.vectors(&mut self.b, &biases)?;
        let weights: [_; 3] = std::array::from_fn(|i| (weights[i].as_str(), widths[i]));
        self.weights.stacked_product(&mut self.b, x, &weights, bias)
    }

    /// Cosines and sines of the new words in a layer, `[batch or 1, words, pairs]`.
    fn angles(&self, layer: usize) -> [ValueId; 2] {
        match self.sizes.window_of(layer) {
            Some(_) => self.text.angles_of_windows,
            None => self.text.angles,
        }
    }

    /// Heads `[batch, words, heads, size]`, turned by the angles of their places.
    fn turned(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let [cosines, sines] = self.angles(layer);
        let (cosines, sines) = (
            self.b.unsqueeze(cosines, &[2])?,
            self.b.unsqueeze(sines, &[2])?,
        );
        let op = RotaryEmbedding {
            interleaved: self.sizes.architecture.pairs == Pairs::Neighbours,
            angles: Angles::OfPairs,
            partial: self.sizes.turned < self.sizes.key_size,
        };
        self.b.op(op, &[x, cosines, sines])
    }

    /// The layer's cache of keys or values as it comes, `[batch, heads, places, size]`. One with room keeps its places.
    fn cache(&mut self, layer: usize, what: &str, heads: usize, size: usize) -> Result<ValueId> {
        let symbol = |name: &str| Dim::Symbol(Arc::from(name));
        let places = symbol("past_sequence_length");
        let (heads, size) = (Dim::Known(heads), Dim::Known(size));
        let shape = Shape(vec![symbol("batch_size"), heads, places, size]);
        let name = format!("past_key_values.{layer}.{what}");
        self.b.add_input(&name, Fact::new(DType::F32, shape))
    }

    /// The places that a cache has with the new words, `[1]`.
    fn room(&mut self, past: ValueId) -> Result<ValueId> {
        let room = self.b.dim(past, 2)?;
        self.b.binary(BinaryKind::Max, self.text.total, room)
    }

    /// Makes a cache an output.
    fn give(&mut self, layer: usize, what: &str, cache: ValueId) -> ValueId {
        let name = format!("present.{layer}.{what}");
        let cache = self.b.name(cache, &name);
        self.given.push((name, cache));
        cache
    }
}

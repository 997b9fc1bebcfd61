//! The attention of a layer, and its caches.

use std::sync::Arc;

use kilim_core::DType;
use kilim_core::dim::{Dim, Shape};
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    Align, Angles, Attention, BinaryKind, Fact, RotaryEmbedding, Split, TensorScatter,
};

use super::architecture::Pairs;
use super::decoder::Decoder;
use super::invalid;

/// The parts of attention, in the order of queries, keys and values.
const PARTS: [&str; 3] = ["attn_q", "attn_k", "attn_v"];

impl Decoder<'_> {
    /// Attention of `x` `[batch, words, width]` to itself and to the caches of the layer.
    pub fn attention(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let [mut query, mut key, value] = self.queries_keys_values(layer, x)?;
        for (x, norm) in [(&mut query, "attn_q_norm"), (&mut key, "attn_k_norm")] {
            *x = self.norm_where_there(*x, &self.tensor(layer, norm))?;
            if self.sizes.turns(layer) {
                *x = self.turned(layer, *x)?;
            }
        }
        let query = self.b.transpose(query, &[0, 2, 1, 3])?;
        let key = self.appended(layer, "key", key, self.sizes.key_size)?;
        let value = self.appended(layer, "value", value, self.sizes.value_size)?;
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

    /// Queries, keys and values `[batch, words, heads, size]`, of one product or of three.
    fn queries_keys_values(&mut self, layer: usize, x: ValueId) -> Result<[ValueId; 3]> {
        let s = &self.sizes;
        let (queries, keys) = (s.heads[layer], s.key_heads[layer]);
        if keys == 0 || !queries.is_multiple_of(keys) {
            let e = invalid("heads of queries that do not share those of keys");
            return Err(e
                .with_expected(format!("a multiple of {keys}"))
                .with_got(queries));
        }
        let heads = [queries, keys, keys];
        let sizes = [s.key_size, s.key_size, s.value_size];
        let widths: [usize; 3] = std::array::from_fn(|i| heads[i].saturating_mul(sizes[i]));
        let whole = self.tensor(layer, "attn_qkv");
        let mut parts = match self.weights.has(&format!("{whole}.weight")) {
            true => {
                let all = widths.iter().fold(0, |n: usize, &w| n.saturating_add(w));
                let all = self.product(x, &whole, all)?;
                let lengths = self.b.i64s(&widths.map(|n| n as i64))?;
                let parts = self
                    .b
                    .apply(Split { axis: 2 }, &[Some(all), Some(lengths)], 3)?;
                [parts[0], parts[1], parts[2]]
            }
            false => {
                let mut parts = [x; 3];
                for (i, part) in parts.iter_mut().enumerate() {
                    *part = self.product(x, &self.tensor(layer, PARTS[i]), widths[i])?;
                }
                parts
            }
        };
        for (i, part) in parts.iter_mut().enumerate() {
            let shape = [0, 0, heads[i] as i64, sizes[i] as i64];
            *part = self.b.reshape(*part, &shape)?;
        }
        Ok(parts)
    }

    /// Heads `[batch, words, heads, size]`, turned by the angles of their places.
    fn turned(&mut self, layer: usize, x: ValueId) -> Result<ValueId> {
        let [cosines, sines] = match self.sizes.window_of(layer) {
            Some(_) => self.text.angles_of_windows,
            None => self.text.angles,
        };
        let op = RotaryEmbedding {
            interleaved: self.sizes.architecture.pairs == Pairs::Neighbours,
            angles: Angles::OfPairs,
            partial: self.sizes.turned < self.sizes.key_size,
        };
        self.b.op(op, &[x, cosines, sines])
    }

    /// The layer's cache of keys or values with new ones `[batch, words, heads, size]` behind those that it holds:
    /// `[batch, heads, places, size]`. A cache with room keeps its places.
    fn appended(&mut self, layer: usize, what: &str, new: ValueId, size: usize) -> Result<ValueId> {
        let b = &mut self.b;
        let new = b.transpose(new, &[0, 2, 1, 3])?;
        let symbol = |name: &str| Dim::Symbol(Arc::from(name));
        let shape = Shape(vec![
            symbol("batch_size"),
            Dim::Known(self.sizes.key_heads[layer]),
            symbol("past_sequence_length"),
            Dim::Known(size),
        ]);
        let taken = format!("past_key_values.{layer}.{what}");
        let past = b.add_input(&taken, Fact::new(DType::F32, shape))?;
        let room = b.dim(past, 2)?;
        let room = b.binary(BinaryKind::Max, self.text.total, room)?;
        let op = TensorScatter {
            axis: 2,
            circular: false,
        };
        let filled = b.op(op, &[past, new, self.text.before, room])?;
        let name = format!("present.{layer}.{what}");
        let filled = b.name(filled, &name);
        self.given.push((name, filled));
        Ok(filled)
    }
}

//! Caches of integers: keys and values are multiples of steps, one for all of them or one for each number of a head.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};

use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

/// What the caches of GroupQueryAttention count in.
///
/// Attention reads the integers as they are: the steps of the keys go to the queries, and those of the values to the result.
pub struct Steps {
    /// The steps of keys and of values, `[1]` or `[1, key heads, 1, size]`.
    of_cache: [ValueId; 2],
    /// Steps of the keys for the heads of the queries: `[1]` or `[1, query heads, 1, size]`.
    pub of_queries: ValueId,
    /// Steps of the values for the heads of the result: `[1]` or `[1, query heads, 1, size]`.
    pub of_values: ValueId,
    /// Two in a byte, each with 8 added to it, the first in the low bits.
    packed: bool,
}

impl Steps {
    /// The steps of a node, if its caches are of integers.
    pub fn of(b: &mut NodeBuilder, query_heads: usize, key_heads: usize) -> Result<Option<Steps>> {
        let kinds = [
            b.text_or("k_quant_type", "NONE")?,
            b.text_or("v_quant_type", "NONE")?,
        ];
        let bits = b.int_or("kv_cache_bit_width", 0)?;
        if kinds == ["NONE", "NONE"] {
            return match (bits, b.has_input(12) || b.has_input(13)) {
                (0, false) => Ok(None),
                _ => Err(invalid(
                    "a quantised cache without `k_quant_type` and `v_quant_type`",
                )),
            };
        }
        let packed = match bits {
            8 => false,
            4 => true,
            bits => return Err(unknown("kv_cache_bit_width", &bits.to_string())),
        };
        let stored = if packed { DType::U8 } else { DType::I8 };
        for i in [3, 4] {
            if let Some(past) = b.optional(i)?
                && b.dtype(past).is_some_and(|dtype| dtype != stored)
            {
                return Err(unsupported(format!("a quantised cache of {bits} bits"))
                    .with_input(i)
                    .with_expected(stored));
            }
        }
        let heads = [query_heads, key_heads].map(|n| n as i64);
        let mut of_cache = Vec::new();
        let mut of_heads = Vec::new();
        for (i, kind) in kinds.into_iter().enumerate() {
            let scale = b.input(12 + i)?;
            let query = b.input(0)?;
            let scale = b.cast_like(scale, query)?;
            let [cache, repeated] = match kind {
                "PER_TENSOR" => [b.reshape(scale, &[1])?; 2],
                "PER_CHANNEL" => per_channel(b, scale, heads)?,
                "NONE" => return Err(unsupported("one of two caches quantised")),
                other => return Err(unknown(["k_quant_type", "v_quant_type"][i], other)),
            };
            of_cache.push(cache);
            of_heads.push(repeated);
        }
        Ok(Some(Steps {
            of_cache: [of_cache[0], of_cache[1]],
            of_queries: of_heads[0],
            of_values: of_heads[1],
            packed,
        }))
    }

    /// New keys or values (`which` is 1 for these), `[batch, heads, sequence, size]`, as the cache holds them.
    pub fn counted(&self, b: &mut NodeBuilder, x: ValueId, which: usize) -> Result<ValueId> {
        let x = b.div(x, self.of_cache[which])?;
        let x = b.unary(UnaryKind::Round, x)?;
        let (min, max) = if self.packed {
            (-8.0, 7.0)
        } else {
            (-128.0, 127.0)
        };
        let x = b.unary(UnaryKind::Clip { min, max }, x)?;
        if !self.packed {
            return b.cast(x, DType::I8);
        }
        let eight = b.number(8.0, x)?;
        let x = b.add(x, eight)?;
        let pairs = b.reshape(x, &[0, 0, 0, -1, 2])?;
        let [low, high] = b.halves(pairs, -1)?;
        let sixteen = b.number(16.0, x)?;
        let high = b.mul(high, sixteen)?;
        let bytes = b.add(low, high)?;
        let bytes = b.squeeze(bytes, &[-1])?;
        b.cast(bytes, DType::U8)
    }

    /// A cache as attention reads it: `int8`.
    pub fn read(&self, b: &mut NodeBuilder, cache: ValueId) -> Result<ValueId> {
        if !self.packed {
            return Ok(cache);
        }
        let bytes = b.cast(cache, DType::I32)?;
        let sixteen = b.number(16.0, bytes)?;
        let high = b.div(bytes, sixteen)?;
        let above = b.mul(high, sixteen)?;
        let low = b.sub(bytes, above)?;
        let (low, high) = (b.unsqueeze(low, &[-1])?, b.unsqueeze(high, &[-1])?);
        let pairs = b.concat(&[low, high], -1)?;
        let steps = b.reshape(pairs, &[0, 0, 0, -1])?;
        let eight = b.number(8.0, steps)?;
        let steps = b.binary(BinaryKind::Sub, steps, eight)?;
        b.cast(steps, DType::I8)
    }
}

/// Steps of each number of the heads of keys: for these, and repeated for all query heads that share one.
fn per_channel(
    b: &mut NodeBuilder,
    scale: ValueId,
    [query_heads, key_heads]: [i64; 2],
) -> Result<[ValueId; 2]> {
    let apart = b.reshape(scale, &[key_heads, 1, -1])?;
    let shape = b.i64s(&[1, query_heads / key_heads, 1])?;
    let repeated = b.expand(apart, shape)?;
    Ok([
        b.reshape(apart, &[1, key_heads, 1, -1])?,
        b.reshape(repeated, &[1, query_heads, 1, -1])?,
    ])
}

//! The attention of `com.microsoft`, as language models have it, written out.

use kilim_core::dim::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, Gather, Pad, PadMode, RmsNorm, Slice, Split, TensorScatter, UnaryKind,
};

use super::OpTable;
use super::attention::{Heads, Rules, check_groups, softmax, split_heads};
use super::microsoft::DOMAIN;
use super::rotary::rotated;
use crate::onnx::builder::{NodeBuilder, number, unknown};
use crate::onnx::proto::invalid;

pub fn register(table: &mut OpTable) {
    table.add_in(DOMAIN, "MultiHeadAttention", multi_head_attention);
    table.add_in(DOMAIN, "GroupQueryAttention", group_query_attention);
}

/// What attention gives, and the shares of the keys in it, `[batch, heads, queries, keys]`.
pub struct Attended {
    pub y: ValueId,
    shares: ValueId,
}

/// `softmax(query · keyᵀ · scale + biases) · value` as `[batch, sequence, heads * size]`; the three are
/// `[batch, heads, sequence, size]`. A sink is a score that takes a share of the attention and gives nothing; it
/// broadcasts to `[batch, heads, queries, 1]`.
pub fn attend(
    b: &mut NodeBuilder,
    [query, key, value]: [ValueId; 3],
    rules: &Rules,
    bias: Option<ValueId>,
    sink: Option<ValueId>,
) -> Result<Attended> {
    let heads = Heads::new(b, query, key, value)?;
    let scale = b.float("scale")?.filter(|s| *s != 0.0);
    let mut scores = heads.scores(b, query, scale)?;
    let cap = b.float_or("softcap", 0.0)?;
    if cap > 0.0 {
        let cap = b.number(cap.into(), scores)?;
        let x = b.div(scores, cap)?;
        let x = b.unary(UnaryKind::Tanh, x)?;
        scores = b.mul(x, cap)?;
    }
    if let Some(bias) = bias {
        scores = b.add(scores, bias)?;
    }
    if let Some(bias) = rules.bias(b, query, key)? {
        scores = b.add(scores, bias.value)?;
    }
    let shares = match sink {
        None => softmax(b, scores)?,
        Some(sink) => {
            let one = b.i64s(&[1])?;
            let rows = [b.dim(scores, 0)?, b.dim(scores, 1)?, b.dim(scores, 2)?, one];
            let rows = b.vector(&rows)?;
            let sink = b.cast_like(sink, scores)?;
            let column = b.expand(sink, rows)?;
            let beside = b.concat(&[scores, column], 3)?;
            let shares = softmax(b, beside)?;
            b.slice(shares, 3, 0, -1)?
        }
    };
    let y = heads.weighted(b, shares)?;
    let y = b.transpose(y, &[0, 2, 1, 3])?;
    Ok(Attended {
        y: b.reshape(y, &[0, 0, -1])?,
        shares,
    })
}

/// `N` tensors `[batch, sequence, heads * size]` from `[batch, sequence, heads, N, size]`.
fn side_by_side<const N: usize>(b: &mut NodeBuilder, packed: ValueId) -> Result<[ValueId; N]> {
    let parts = b.apply(Split { axis: 3 }, &[Some(packed)], N)?;
    let mut apart = [packed; N];
    for (apart, part) in apart.iter_mut().zip(parts) {
        *apart = b.reshape(part, &[0, 0, -1])?;
    }
    Ok(apart)
}

/// Inputs: query, key, value, bias of all three, mask of keys `[batch, keys]`, bias of the scores,
/// cached key and value. All three, or key and value, may stand side by side in one tensor.
fn multi_head_attention(b: &mut NodeBuilder) -> Result<()> {
    let n = b.count("num_heads", None)?;
    let query = b.input(0)?;
    let mut parts = match (b.rank(query)?, b.optional(1)?, b.optional(2)?) {
        (3, Some(key), Some(value)) => [query, key, value],
        (3, Some(packed), None) => {
            let [key, value] = side_by_side(b, packed)?;
            [query, key, value]
        }
        (5, None, None) => side_by_side(b, query)?,
        _ => return Err(unsupported("queries, keys and values of these shapes")),
    };
    if let Some(bias) = b.optional(3)? {
        let mut sizes = Vec::with_capacity(3);
        for &part in &parts {
            sizes.push(b.dim(part, -1)?);
        }
        let sizes = b.vector(&sizes)?;
        let own = b.apply(Split { axis: 0 }, &[Some(bias), Some(sizes)], 3)?;
        for (part, own) in parts.iter_mut().zip(own) {
            *part = b.add(*part, own)?;
        }
    }
    let query = split_heads(b, parts[0], n)?;
    let mut present = [parts[1], parts[2]];
    for (i, part) in present.iter_mut().enumerate() {
        match b.rank(*part)? {
            3 => *part = split_heads(b, *part, n)?,
            4 => {}
            _ => return Err(unsupported("packed keys and values")),
        }
        if let Some(past) = b.optional(6 + i)? {
            *part = b.concat(&[past, *part], 2)?;
        }
        b.bind(1 + i, *part)?;
    }
    let causal = b.flag("unidirectional")?;
    let offset = match b.optional(6)? {
        Some(past) if causal => Some(b.dim(past, 2)?),
        _ => None,
    };
    let rules = Rules {
        mask: None,
        offset,
        lengths: None,
        left: -1,
        right: -1,
        causal,
    };
    let mut bias = b.optional(5)?;
    if let Some(mask) = b.optional(4)? {
        if b.rank(mask)? != 2 {
            return Err(unsupported("a mask that is not one number for each key"));
        }
        let filter = b.float_or("mask_filter_value", -10000.0)?;
        let kept = b.cast(mask, DType::Bool)?;
        let kept = b.unsqueeze(kept, &[1, 2])?;
        let zero = b.number(0.0, query)?;
        let filter = b.number(filter.into(), query)?;
        let filter = b.choose(kept, zero, filter)?;
        bias = Some(match bias {
            Some(bias) => b.add(bias, filter)?,
            None => filter,
        });
    }
    let y = attend(b, [query, present[0], present[1]], &rules, bias, None)?.y;
    b.bind(0, y)
}

/// Inputs: query (or all three packed), key, value, cached key and value, lengths less one, total
/// length, cosines, sines, positions, bias of the scores, sinks of the heads, two scales of a quantised cache,
/// weights by which queries and keys are normalised.
fn group_query_attention(b: &mut NodeBuilder) -> Result<()> {
    let query_heads = b.count("num_heads", None)?;
    let key_heads = b.count("kv_num_heads", None)?;
    check_groups(query_heads, key_heads)?;
    // The window counts the query itself.
    let left = match b.int_or("local_window_size", -1)? {
        0 => return Err(unsupported("a window of no keys")),
        window => (window - 1).max(-1),
    };
    let causal = b.int_or("causal", 1)? != 0;
    if !causal && left >= 0 {
        return Err(unsupported("a window on both sides"));
    }
    quantised_cache(b)?;
    let sink = match (b.optional(11)?, b.int_or("smooth_softmax", 0)?) {
        (Some(sinks), _) => Some(b.reshape(sinks, &[1, query_heads as i64, 1, 1])?),
        (None, 1) => Some(b.tensor_value(number(0.0, DType::F32)?)),
        (None, _) => None,
    };
    let query = b.input(0)?;
    // The layout `[batch, sequence, heads, size]`.
    let mut split = match (b.optional(1)?, b.optional(2)?) {
        (Some(key), Some(value)) => [
            b.reshape(query, &[0, 0, query_heads as i64, -1])?,
            b.reshape(key, &[0, 0, key_heads as i64, -1])?,
            b.reshape(value, &[0, 0, key_heads as i64, -1])?,
        ],
        _ => unpacked(b, query, query_heads, key_heads)?,
    };
    let epsilon = b.float_or("qk_norm_epsilon", 1e-6)?;
    for (i, x) in split[..2].iter_mut().enumerate() {
        if let Some(weight) = b.optional(14 + i)? {
            *x = b.op(RmsNorm { axis: -1, epsilon }, &[*x, weight])?;
        }
    }
    let past = b.optional(3)?;
    let cache = past.map(|past| Cache::new(b, past, query)).transpose()?;
    let before = cache.as_ref().map(|cache| cache.before);
    let interleaved = b.flag("rotary_interleaved")?;
    if b.flag("do_rotary")? {
        let angles = angles(b, query, before)?;
        let half = b.fact(angles[0]).shape.and_then(|s| s.0.last()?.known());
        let size = b.fact(split[0]).shape.and_then(|s| s.0.last()?.known());
        let part = match (half, size) {
            (Some(half), Some(size)) if 2 * half >= size => None,
            _ => {
                let half = b.dim(angles[0], -1)?;
                Some(b.add(half, half)?)
            }
        };
        for x in &mut split[..2] {
            *x = rotated(b, *x, angles, 2, part, interleaved)?;
        }
    }
    for x in &mut split {
        *x = b.transpose(*x, &[0, 2, 1, 3])?;
    }
    for i in [0, 1] {
        let mut present = split[1 + i];
        if let (Some(past), Some(cache)) = (b.optional(3 + i)?, &cache) {
            [present, split[1 + i]] = cache.appended(b, past, present, 1 + i)?;
        }
        b.bind(1 + i, present)?;
    }
    // What is causal never sees the padding behind a sequence.
    let lengths = match causal {
        true => None,
        false => Some(lengths(b)?),
    };
    let rules = Rules {
        mask: None,
        offset: before,
        lengths,
        left,
        right: -1,
        causal,
    };
    let bias = match (b.optional(10)?, &cache) {
        (Some(bias), Some(cache)) if !cache.grows => {
            // As far as the cache has room.
            let (keys, known) = (b.dim(split[1], 2)?, b.dim(bias, 3)?);
            let missing = b.sub(keys, known)?;
            Some(lengthened(b, bias, 3, missing)?)
        }
        (bias, _) => bias,
    };
    let attended = attend(b, split, &rules, bias, sink)?;
    b.bind(0, attended.y)?;
    let shown = match b.int_or("qk_output", 0)? {
        0 => return b.only_outputs(3),
        2 => attended.shares,
        _ => return Err(unsupported("scores before the softmax as an output")),
    };
    // Not as far as a cache has room.
    let total = b.input(6)?;
    let total = b.reshape(total, &[1])?;
    let total = b.cast(total, DType::I64)?;
    let (start, axis) = (b.i64s(&[0])?, b.i64s(&[3])?);
    let shown = b.op(Slice, &[shown, start, total, axis])?;
    b.bind(3, shown)
}

/// Refuses caches of integers, and those that forget.
fn quantised_cache(b: &mut NodeBuilder) -> Result<()> {
    for name in ["k_quant_type", "v_quant_type"] {
        match b.text_or(name, "NONE")? {
            "NONE" => {}
            other => return Err(unknown(name, other)),
        }
    }
    for name in ["kv_cache_bit_width", "sliding_window_cache"] {
        b.fixed(name, 0)?;
    }
    if b.has_input(12) || b.has_input(13) {
        return Err(unsupported("a quantised cache"));
    }
    Ok(())
}

/// Query, key and value `[batch, sequence, heads, size]` that stand in one tensor, one after the other.
fn unpacked(
    b: &mut NodeBuilder,
    packed: ValueId,
    query_heads: usize,
    key_heads: usize,
) -> Result<[ValueId; 3]> {
    let all = key_heads
        .checked_mul(2)
        .and_then(|n| n.checked_add(query_heads));
    let all = all.ok_or_else(|| invalid("too many heads"))?;
    let apart = b.reshape(packed, &[0, 0, all as i64, -1])?;
    let sizes = b.i64s(&[query_heads as i64, key_heads as i64, key_heads as i64])?;
    let parts = b.apply(Split { axis: 2 }, &[Some(apart), Some(sizes)], 3)?;
    Ok([parts[0], parts[1], parts[2]])
}

/// How many keys each sequence has, with the new ones, `[batch]`; input 5 says it less one.
fn lengths(b: &mut NodeBuilder) -> Result<ValueId> {
    let lengths = b.input(5)?;
    let lengths = b.cast(lengths, DType::I64)?;
    let lengths = b.reshape(lengths, &[-1])?;
    let one = b.i64(1)?;
    b.add(lengths, one)
}

/// Keys and values from before, `[batch, heads, keys, size]`, as long as the longest sequence with its new keys, or longer.
struct Cache {
    /// How many keys each sequence has already, `[batch]` or `[1]`.
    before: ValueId,
    /// The length of the longest sequence with the new keys, `[1]`.
    total: ValueId,
    /// There is one sequence, and a cache that grows with it.
    grows: bool,
}

impl Cache {
    fn new(b: &mut NodeBuilder, past: ValueId, query: ValueId) -> Result<Cache> {
        let total = b.input(6)?;
        let total = b.cast(total, DType::I64)?;
        let total = b.reshape(total, &[1])?;
        let dims = b.fact(past).shape.map(|s| s.0).unwrap_or_default();
        let dim = |i: usize| dims.get(i).and_then(Dim::known);
        let new = b.dim(query, 1)?;
        // A cache of fixed size has room for more than it holds, unless the model says otherwise.
        let grows = dim(0) == Some(1)
            && match (dim(2), b.constant(total), b.constant(new)) {
                (None, ..) => true,
                (Some(past), Some(total), Some(new)) => {
                    total.to_i64s()?.first()
                        == new.to_i64s()?.first().map(|new| new + past as i64).as_ref()
                }
                _ => false,
            };
        let before = if grows {
            b.dim(past, 2)?
        } else {
            // A first prompt may be longer than its sequence, being padded.
            let lengths = lengths(b)?;
            let before = b.sub(lengths, new)?;
            let zero = b.i64(0)?;
            b.binary(BinaryKind::Max, before, zero)?
        };
        Ok(Cache {
            before,
            total,
            grows,
        })
    }

    /// `past` with the new keys behind those of each sequence: as output `output`, and as attention reads it.
    fn appended(
        &self,
        b: &mut NodeBuilder,
        past: ValueId,
        new: ValueId,
        output: usize,
    ) -> Result<[ValueId; 2]> {
        let same = b.i64s(&[0])?;
        if self.grows {
            let all = b.concat(&[past, new], 2)?;
            // As many elements, unless the cache has room: that is an error.
            let shape = b.vector(&[same, same, self.total, same])?;
            let checked = b.reshape_to(all, shape)?;
            let read = if b.has_output(output) { all } else { checked };
            return Ok([checked, read]);
        }
        let room = b.dim(past, 2)?;
        let missing = b.sub(self.total, room)?;
        let missing = b.binary(BinaryKind::Max, missing, same)?;
        let longer = lengthened(b, past, 2, missing)?;
        let op = TensorScatter {
            axis: 2,
            circular: false,
        };
        let filled = b.op(op, &[longer, new, self.before])?;
        Ok([filled, filled])
    }
}

/// `x` of four dimensions with zeros behind its end along `axis`, as many as `missing` says, `[1]`.
fn lengthened(b: &mut NodeBuilder, x: ValueId, axis: usize, missing: ValueId) -> Result<ValueId> {
    let before = b.i64s(&vec![0; 4 + axis])?;
    let behind = b.i64s(&vec![0; 3 - axis])?;
    let pads = b.vector(&[before, missing, behind])?;
    let mode = PadMode::Constant;
    b.op(Pad { mode }, &[x, pads])
}

/// Cosines and sines of the positions of the queries, `[batch or 1, sequence, half]`.
fn angles(b: &mut NodeBuilder, query: ValueId, before: Option<ValueId>) -> Result<[ValueId; 2]> {
    let tables = [b.input(7)?, b.input(8)?];
    let positions = match b.optional(9)? {
        Some(positions) => positions,
        None => {
            let length = b.dim(query, 1)?;
            let steps = b.iota(length)?;
            let steps = b.unsqueeze(steps, &[0])?;
            match before {
                Some(before) => {
                    let before = b.unsqueeze(before, &[1])?;
                    b.add(steps, before)?
                }
                None => steps,
            }
        }
    };
    let gather = Gather { axis: 0 };
    let cos = b.op(gather.clone(), &[tables[0], positions])?;
    let sin = b.op(gather, &[tables[1], positions])?;
    Ok([cos, sin])
}

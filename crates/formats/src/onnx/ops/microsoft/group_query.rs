//! GroupQueryAttention, as language models have it.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{RmsNorm, Slice, Split, UnpackQkv};

use super::attention::{attending, finish};
use super::cache::{Cache, WindowCache, lengthened, lengths};
use super::steps::Steps;
use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::attention::{Attending, Place, Rules, check_groups, merged};
use crate::onnx::ops::rotary::{Part, looked_up, rotated};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[("GroupQueryAttention", group_query_attention)]);

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
    let query = b.input(0)?;
    let steps = Steps::of(b, query_heads, key_heads)?;
    let sinks = sinks(b, query, query_heads)?;
    let past = match b.optional(3)? {
        None => Past::Nothing,
        Some(past) if b.flag("sliding_window_cache")? => {
            let Ok(window) = usize::try_from(left + 1) else {
                return Err(invalid("a cache of windows without `local_window_size`"));
            };
            Past::Windows(WindowCache::new(b, past, query, window)?)
        }
        Some(past) => Past::Whole(Cache::new(b, past, query)?),
    };
    let heads = Heads {
        query_heads,
        key_heads,
        query,
        interleaved: b.flag("rotary_interleaved")?,
        turns: b.flag("do_rotary")?,
        steps,
    };
    let laid_out = match &past {
        Past::Whole(cache) if heads.unpack_at_once(b, cache) => heads.unpacked_at_once(b, cache)?,
        _ => heads.spelled_out(b, &past)?,
    };
    // What is causal never sees the padding behind a sequence.
    let lengths = match causal {
        true => None,
        false => Some(lengths(b)?),
    };
    let place = match &past {
        Past::Nothing => Place::Start,
        Past::Whole(cache) if cache.grows => Place::End,
        Past::Whole(cache) => Place::Behind(cache.before),
        Past::Windows(cache) => Place::Behind(cache.held),
    };
    let rules = Rules {
        place,
        lengths,
        left,
        causal,
        ..Rules::default()
    };
    let bias = match (b.optional(10)?, &past) {
        (Some(_), Past::Windows(_)) => return Err(unsupported("a bias beside a cache of windows")),
        (Some(bias), Past::Whole(cache)) if !cache.grows => {
            // As far as the cache has room.
            let (keys, known) = (b.dim(laid_out[1], 2)?, b.dim(bias, 3)?);
            let missing = b.sub(keys, known)?;
            Some(lengthened(b, bias, 3, missing)?)
        }
        (bias, _) => bias,
    };
    let attending = Attending {
        sinks,
        ..attending(laid_out, rules, bias)
    };
    if let Some(steps) = &heads.steps {
        b.fixed("qk_output", 0)?;
        b.only_outputs(3)?;
        let y = attending.node(b)?;
        let y = b.mul(y, steps.of_values)?;
        let y = merged(b, y)?;
        return b.bind(0, y);
    }
    match b.int_or("qk_output", 0)? {
        0 => {
            b.only_outputs(3)?;
            finish(b, &attending)
        }
        2 if !matches!(past, Past::Windows(_)) => show(b, &attending),
        2 => Err(unsupported("shares of keys beside a cache of windows")),
        _ => Err(unsupported("scores before the softmax as an output")),
    }
}

/// The score `[heads]` of each head that takes a share of the attention, in the type of the query.
fn sinks(b: &mut NodeBuilder, query: ValueId, heads: usize) -> Result<Option<ValueId>> {
    let sinks = match (b.optional(11)?, b.int_or("smooth_softmax", 0)?) {
        (Some(sinks), _) => b.reshape(sinks, &[heads as i64])?,
        (None, 1) => {
            let (zero, count) = (b.number(0.0, query)?, b.i64s(&[heads as i64])?);
            b.expand(zero, count)?
        }
        (None, _) => return Ok(None),
    };
    b.cast_like(sinks, query).map(Some)
}

/// Output 0, and output 3: the probabilities of the keys, not as far as a cache has room.
fn show(b: &mut NodeBuilder, attending: &Attending) -> Result<()> {
    let written = attending.written_out(b, None)?;
    let y = merged(b, written.y)?;
    b.bind(0, y)?;
    let total = b.input(6)?;
    let total = b.reshape(total, &[1])?;
    let total = b.cast(total, DType::I64)?;
    let (start, axis) = (b.i64s(&[0])?, b.i64s(&[3])?);
    let shown = b.op(Slice, &[written.probabilities, start, total, axis])?;
    b.bind(3, shown)
}

/// The keys and values of what came before.
enum Past {
    Nothing,
    /// All of them.
    Whole(Cache),
    Windows(WindowCache),
}

/// How queries, keys and values come.
struct Heads {
    query_heads: usize,
    key_heads: usize,
    /// The queries, or all three.
    query: ValueId,
    interleaved: bool,
    /// Whether queries and keys turn by the angles of their positions.
    turns: bool,
    /// What the caches count in, where they hold integers.
    steps: Option<Steps>,
}

impl Heads {
    /// Whether one operator does all there is to do: `float32` that stands packed, turns, and has a cache with room.
    fn unpack_at_once(&self, b: &NodeBuilder, cache: &Cache) -> bool {
        let plain = self.steps.is_none() && [1, 2, 14, 15].iter().all(|&i| !b.has_input(i));
        plain
            && self.turns
            && !cache.grows
            && b.has_input(4)
            && b.dtype(self.query) == Some(DType::F32)
    }

    /// Query, and the caches of keys and values as far as they have room, which are outputs 1 and 2.
    fn unpacked_at_once(&self, b: &mut NodeBuilder, cache: &Cache) -> Result<[ValueId; 3]> {
        let [cosines, sines] = angles(b, self.query, Some(cache.before))?;
        let (keys, values) = (b.input(3)?, b.input(4)?);
        let room = cache.room(b, keys)?;
        let op = UnpackQkv {
            query_heads: self.query_heads,
            key_heads: self.key_heads,
            interleaved: self.interleaved,
        };
        let inputs = [self.query, cosines, sines, keys, values, cache.before, room];
        let parts = b.apply(op, &inputs.map(Some), 3)?;
        for i in [1, 2] {
            b.bind(i, parts[i])?;
        }
        Ok([parts[0], parts[1], parts[2]])
    }

    /// Query, key and value `[batch, heads, keys, size]` as attention reads them; outputs 1 and 2 are the caches.
    fn spelled_out(&self, b: &mut NodeBuilder, past: &Past) -> Result<[ValueId; 3]> {
        let mut split = self.normalised(b)?;
        if self.turns {
            let before = match past {
                Past::Nothing => None,
                Past::Whole(cache) => Some(cache.before),
                Past::Windows(cache) => Some(cache.before),
            };
            let angles = angles(b, self.query, before)?;
            for x in &mut split[..2] {
                *x = rotated(b, *x, angles, 2, Part::Angles, self.interleaved)?;
            }
        }
        for x in &mut split {
            *x = b.transpose(*x, &[0, 2, 1, 3])?;
        }
        if let Some(steps) = &self.steps {
            split[0] = b.mul(split[0], steps.of_queries)?;
        }
        for i in [0, 1] {
            let new = match &self.steps {
                Some(steps) => steps.counted(b, split[1 + i], i)?,
                None => split[1 + i],
            };
            let [present, read] = match (b.optional(3 + i)?, past) {
                (Some(given), Past::Whole(cache)) => cache.appended(b, given, new, 1 + i)?,
                (Some(given), Past::Windows(cache)) => cache.appended(b, given, new)?,
                _ => [new, new],
            };
            split[1 + i] = match &self.steps {
                Some(steps) => steps.read(b, read)?,
                None => read,
            };
            b.bind(1 + i, present)?;
        }
        Ok(split)
    }

    /// Query, key and value `[batch, sequence, heads, size]`, normalised where there are weights for it.
    fn normalised(&self, b: &mut NodeBuilder) -> Result<[ValueId; 3]> {
        let (query, key_heads) = (self.query, self.key_heads as i64);
        let mut split = match (b.optional(1)?, b.optional(2)?) {
            (Some(key), Some(value)) => [
                b.reshape(query, &[0, 0, self.query_heads as i64, -1])?,
                b.reshape(key, &[0, 0, key_heads, -1])?,
                b.reshape(value, &[0, 0, key_heads, -1])?,
            ],
            _ => self.unpacked(b)?,
        };
        let epsilon = b.float_or("qk_norm_epsilon", 1e-6)?;
        for (i, x) in split[..2].iter_mut().enumerate() {
            if let Some(weight) = b.optional(14 + i)? {
                *x = b.op(RmsNorm { axis: -1, epsilon }, &[*x, weight])?;
            }
        }
        Ok(split)
    }

    /// Query, key and value `[batch, sequence, heads, size]` that stand in one tensor, one after the other.
    fn unpacked(&self, b: &mut NodeBuilder) -> Result<[ValueId; 3]> {
        let [queries, keys] = [self.query_heads, self.key_heads];
        let all = keys.checked_mul(2).and_then(|n| n.checked_add(queries));
        let all = all.ok_or_else(|| invalid("too many heads"))?;
        let apart = b.reshape(self.query, &[0, 0, all as i64, -1])?;
        let sizes = b.i64s(&[queries, keys, keys].map(|n| n as i64))?;
        let parts = b.apply(Split { axis: 2 }, &[Some(apart), Some(sizes)], 3)?;
        Ok([parts[0], parts[1], parts[2]])
    }
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
    looked_up(b, tables, positions)
}

//! The keys and values of what came before a call.

use kilim_core::dim::Dim;
use kilim_core::dtype::DType;
use kilim_core::error::{Result, shape_error};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, ConstantOfShape, GatherNd, Pad, PadMode, ReduceKind, TensorScatter,
};
use kilim_core::tensor::Tensor;

use crate::onnx::builder::NodeBuilder;

/// The cache `[batch, heads, room, size]` with the new keys of each sequence from its place in `before` (`[batch]`) on; where there
/// is a `room`, `[1]`, with zeros up to it.
pub fn filled(
    b: &mut NodeBuilder,
    cache: ValueId,
    new: ValueId,
    before: ValueId,
    room: Option<ValueId>,
) -> Result<ValueId> {
    let op = TensorScatter {
        axis: 2,
        circular: false,
    };
    let mut inputs = vec![cache, new, before];
    inputs.extend(room);
    b.op(op, &inputs)
}

/// What GroupQueryAttention knows of its cache: keys and values `[batch, heads, keys, size]`, as long as the longest sequence with its
/// new keys, or longer.
pub struct Cache {
    /// How many keys each sequence has already, `[batch]` or `[1]`.
    pub before: ValueId,
    /// The length of the longest sequence with the new keys, `[1]`.
    total: ValueId,
    /// There is one sequence, and a cache that grows with it.
    pub grows: bool,
}

impl Cache {
    pub fn new(b: &mut NodeBuilder, past: ValueId, query: ValueId) -> Result<Cache> {
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

    /// The places, `[1]`, that `past` has with the new keys. While it has room for them, they do not depend on the total length.
    pub fn room(&self, b: &mut NodeBuilder, past: ValueId) -> Result<ValueId> {
        let room = b.dim(past, 2)?;
        b.binary(BinaryKind::Max, self.total, room)
    }

    /// `past` with the new keys behind those of each sequence: as output `output`, and as attention reads it.
    pub fn appended(
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
        let room = self.room(b, past)?;
        let filled = filled(b, past, new, self.before, Some(room))?;
        Ok([filled, filled])
    }
}

/// What GroupQueryAttention knows of a cache that holds a window of each sequence: of `tokens` tokens it has the last
/// `kept(tokens)`, in order from its start. Where it is full, as many go at once as it has places beyond the window.
pub struct WindowCache {
    /// How many tokens each sequence had before, `[batch]`.
    pub before: ValueId,
    /// How many of them the cache has.
    pub held: ValueId,
    /// The places of the cache, `[1]`.
    places: ValueId,
    /// Places of the cache and new tokens together, `[1]`.
    all: ValueId,
    /// The place in the cache with the new tokens from which on tokens are kept, `[batch]`.
    first: ValueId,
}

impl WindowCache {
    /// The cache `past` of windows of `window` tokens.
    ///
    /// # Errors
    /// `Shape` where it is known to have fewer places than a window has tokens.
    pub fn new(
        b: &mut NodeBuilder,
        past: ValueId,
        query: ValueId,
        window: usize,
    ) -> Result<WindowCache> {
        let known = b.fact(past).shape.and_then(|s| s.0.get(2)?.known());
        if let Some(known) = known.filter(|&known| known < window) {
            let e = shape_error("a cache has fewer places than its window");
            return Err(e.with_input(3).with_expected(window).with_got(known));
        }
        let places = b.dim(past, 2)?;
        let (new, tokens, zero, one) = (b.dim(query, 1)?, lengths(b)?, b.i64(0)?, b.i64(1)?);
        // A first prompt may be longer than its sequence, being padded.
        let before = b.sub(tokens, new)?;
        let before = b.binary(BinaryKind::Max, before, zero)?;
        let window = b.i64s(&[window as i64])?;
        let spare = b.sub(places, window)?;
        // A cache whose places are known at run time alone, and are fewer than the window, has no such vector.
        let value = Tensor::from_slice(&[1], &[1i64])?;
        let spare = b.op(ConstantOfShape { value }, &[spare])?;
        let spare = b.reduce(ReduceKind::Sum, spare, &[0], true)?;
        let at_once = b.add(spare, one)?;
        let kept = |b: &mut NodeBuilder, tokens: ValueId| {
            let beyond = b.sub(tokens, places)?;
            let beyond = b.binary(BinaryKind::Max, beyond, zero)?;
            let beyond = b.add(beyond, spare)?;
            let times = b.div(beyond, at_once)?;
            let gone = b.mul(times, at_once)?;
            b.sub(tokens, gone)
        };
        let (held, kept) = (kept(b, before)?, kept(b, tokens)?);
        let added = b.sub(tokens, before)?;
        let first = b.add(held, added)?;
        Ok(WindowCache {
            before,
            held,
            places,
            all: b.add(places, new)?,
            first: b.sub(first, kept)?,
        })
    }

    /// `past` with the new keys behind those that it holds: as an output, which has as many places, and as attention reads it.
    pub fn appended(
        &self,
        b: &mut NodeBuilder,
        past: ValueId,
        new: ValueId,
    ) -> Result<[ValueId; 2]> {
        let filled = filled(b, past, new, self.held, Some(self.all))?;
        let (places, one) = (b.iota(self.places)?, b.i64(1)?);
        let first = b.unsqueeze(self.first, &[1])?;
        let kept = b.add(first, places)?;
        // Places behind what is kept are anything.
        let last = b.sub(self.all, one)?;
        let kept = b.binary(BinaryKind::Min, kept, last)?;
        let kept = b.unsqueeze(kept, &[1, 3])?;
        let (same, heads) = (b.i64s(&[1])?, b.dim(new, 1)?);
        let shape = b.vector(&[same, heads, same, same])?;
        let kept = b.expand(kept, shape)?;
        let present = b.op(GatherNd { batch_dims: 2 }, &[filled, kept])?;
        Ok([present, filled])
    }
}

/// `x` of four dimensions with zeros behind its end along `axis`, as many as `missing` says, `[1]`.
pub fn lengthened(
    b: &mut NodeBuilder,
    x: ValueId,
    axis: usize,
    missing: ValueId,
) -> Result<ValueId> {
    let before = b.i64s(&vec![0; 4 + axis])?;
    let behind = b.i64s(&vec![0; 3 - axis])?;
    let pads = b.vector(&[before, missing, behind])?;
    let mode = PadMode::Constant;
    b.op(Pad { mode }, &[x, pads])
}

/// How many keys each sequence has, with the new ones, `[batch]`; input 5 says it less one.
pub fn lengths(b: &mut NodeBuilder) -> Result<ValueId> {
    let lengths = b.input(5)?;
    let lengths = b.cast(lengths, DType::I64)?;
    let lengths = b.reshape(lengths, &[-1])?;
    let one = b.i64(1)?;
    b.add(lengths, one)
}

//! A buffer that tensors share, cut into one for each of them.

use std::ops::Range;
use std::sync::Arc;

use super::later::{Buffer, Later};
use super::{AlignedBytes, Data, Tensor};
use crate::error::Result;

/// Offsets are kept modulo this where several tensors stay together: elements of every type keep their alignment.
const LINE: usize = 64;

/// Puts tensors that see parts of one buffer into buffers of their own, so that the memory of each can go when the tensor goes.
///
/// The buffer is cut from its end: a part is copied, then the memory that it had is given back, so that no more than one part
/// is there twice. Parts that overlap stay together. A buffer that somebody else holds as well stays as it is, as does what is
/// computed late of a source that has other holders.
///
/// # Errors
/// `Limit` where memory for a part is short; the tensors are of no use then.
pub(crate) fn cut<'a>(tensors: impl Iterator<Item = &'a mut Tensor>) -> Result<()> {
    let mut tensors: Vec<&mut Tensor> = tensors.collect();
    for tensor in &mut tensors {
        tensor.unshare();
    }
    // A sorted list in place of a hash table, whose code pages would fetch for this alone.
    let mut addresses = Vec::new();
    for tensor in &mut tensors {
        tensor.each_part(&mut |buffer, _| addresses.push(address(buffer)));
    }
    let mut known = addresses.clone();
    known.sort_unstable();
    known.dedup();
    let places = addresses
        .iter()
        .map(|&at| known.partition_point(|&k| k < at));
    let places: Vec<usize> = places.collect();
    let mut shared: Vec<Shared> = known.iter().map(|_| Shared::default()).collect();
    let mut place = places.iter();
    for tensor in &mut tensors {
        tensor.each_part(&mut |buffer, part| {
            if let Some(&at) = place.next() {
                // A clone would be another holder.
                let bytes = std::mem::take(buffer);
                let known = &mut shared[at];
                known.bytes.get_or_insert(bytes);
                known.parts.push(part.clone());
            }
        });
    }
    let pieces = shared.into_iter().map(Shared::pieces);
    let pieces: Vec<Pieces> = pieces.collect::<Result<_>>()?;
    let mut place = places.iter();
    for tensor in &mut tensors {
        tensor.each_part(&mut |buffer, part| {
            let pieces = place.next().map(|&at| &pieces[at]);
            // Pieces lie in their order, and each part in one of them.
            if let Some(pieces) = pieces
                && let Some(last) =
                    (pieces.partition_point(|p| p.start <= part.start)).checked_sub(1)
            {
                let piece = &pieces[last];
                let offset = part.start - piece.start + piece.before;
                *buffer = piece.bytes.clone();
                *part = offset..offset + part.len();
            }
        });
        tensor.settle();
    }
    Ok(())
}

fn address(buffer: &Arc<AlignedBytes>) -> usize {
    Arc::as_ptr(buffer) as usize
}

/// Pieces of a buffer in their order.
type Pieces = Vec<Piece>;

/// Bytes of a buffer from `start` on, in a buffer of their own behind `before` others.
struct Piece {
    start: usize,
    before: usize,
    bytes: Arc<AlignedBytes>,
}

/// A buffer, and the parts of it that tensors see.
#[derive(Default)]
struct Shared {
    /// There is one, once a tensor has given it.
    bytes: Option<Arc<AlignedBytes>>,
    parts: Vec<Range<usize>>,
}

impl Shared {
    /// A buffer for each part, or for those that overlap.
    fn pieces(mut self) -> Result<Pieces> {
        self.parts
            .sort_unstable_by_key(|part| (part.start, part.end));
        self.parts.dedup();
        // Bytes without a gap, and those in front that stay with them.
        let mut runs: Vec<(Range<usize>, usize)> = Vec::new();
        for part in self.parts {
            match runs.last_mut() {
                Some((last, before)) if part.start < last.end => {
                    last.end = last.end.max(part.end);
                    // Elements of every type keep their alignment.
                    *before = last.start % LINE;
                }
                _ => runs.push((part, 0)),
            }
        }
        let whole = |bytes| {
            vec![Piece {
                start: 0,
                before: 0,
                bytes,
            }]
        };
        let mut bytes = match Arc::try_unwrap(self.bytes.unwrap_or_default()) {
            Ok(bytes) if runs.len() > 1 => bytes,
            Ok(bytes) => return Ok(whole(Arc::new(bytes))),
            Err(others) => return Ok(whole(others)),
        };
        let mut pieces = Vec::with_capacity(runs.len());
        while let Some((run, before)) = runs.pop() {
            let left = runs.last().map_or(0, |(run, _)| run.end);
            let bytes = bytes.split_off(run.start - before..run.end, left)?;
            pieces.push(Piece {
                start: run.start,
                before,
                bytes: Arc::new(bytes),
            });
        }
        pieces.reverse();
        Ok(pieces)
    }
}

impl Tensor {
    /// Makes what is computed late this tensor's own, but for bytes in memory.
    fn unshare(&mut self) {
        let Data::Bytes { buffer, .. } = &mut self.data else {
            return;
        };
        if buffer.made().is_some() {
            // What was computed needs no source.
            buffer.alone();
            return;
        }
        if let Buffer::Later(later) = buffer
            && Later::source(later).is_none()
            // What is read of a file is read once for all.
            && later.holds_its_source()
        {
            buffer.forget();
        }
        if let Buffer::Later(later) = buffer
            && let Some(source) = Later::source(later)
        {
            source.unshare();
        }
    }

    /// Shows the buffer in memory and the part of it that the elements are in, or are computed of.
    fn each_part(&mut self, each: &mut impl FnMut(&mut Arc<AlignedBytes>, &mut Range<usize>)) {
        let Data::Bytes {
            buffer,
            offset,
            len,
        } = &mut self.data
        else {
            return;
        };
        match buffer {
            Buffer::Made(bytes) => {
                let mut part = *offset..*offset + *len;
                each(bytes, &mut part);
                *offset = part.start;
            }
            Buffer::Later(later) => {
                if let Some(source) = Later::source(later) {
                    source.each_part(each);
                }
            }
        }
    }

    /// Reads bytes where they are that had to be copied where they were.
    fn settle(&mut self) {
        let Data::Bytes { buffer, .. } = &mut self.data else {
            return;
        };
        let Buffer::Later(later) = buffer else {
            return;
        };
        if let Some(source) = Later::source(later) {
            source.settle();
        }
        let direct = later.as_same().and_then(|source| {
            let direct = source.bytes_as(self.dtype, &self.shape).ok()?;
            direct.is_made().then_some(direct)
        });
        if let Some(direct) = direct {
            *self = direct;
        }
    }

    fn is_made(&self) -> bool {
        match &self.data {
            Data::Bytes { buffer, .. } => buffer.made().is_some(),
            Data::Texts(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::dtype::DType;

    fn file(len: usize) -> Result<Arc<AlignedBytes>> {
        let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        Ok(Arc::new(AlignedBytes::copy_of(&bytes)?))
    }

    fn in_memory(tensors: &[Tensor]) -> usize {
        let mut buffers = HashMap::new();
        for tensor in tensors {
            tensor.buffers(&mut |address, bytes| {
                buffers.insert(address, bytes);
            });
        }
        buffers.values().sum()
    }

    #[test]
    fn parts_of_a_buffer_get_buffers_of_their_own() -> Result<()> {
        let all = file(1000)?;
        let part = |dtype, len: usize, offset, bytes| {
            Tensor::view(dtype, &[len], all.clone(), offset, bytes)
        };
        let doubled = part(DType::U8, 50, 901, 50)?.later(DType::U8, &[50], |x, from, to| {
            x.copy_to(from, to)?;
            to.iter_mut().for_each(|b| *b = b.wrapping_mul(2));
            Ok(())
        })?;
        let mut tensors = vec![
            part(DType::F32, 25, 8, 100)?,
            // Not aligned.
            part(DType::F32, 25, 201, 100)?,
            part(DType::U8, 64, 401, 64)?,
            // Overlaps the one before, and is aligned.
            part(DType::F32, 8, 404, 32)?,
            part(DType::U8, 64, 401, 64)?,
            doubled.clone(),
            doubled.clone(),
        ];
        let want: Vec<Vec<u8>> = tensors
            .iter()
            .map(|t| t.unread().read().map(<[u8]>::to_vec))
            .collect::<Result<_>>()?;
        drop((all, doubled));
        cut(tensors.iter_mut())?;
        // 17 bytes stand in front of those that overlap.
        assert_eq!(in_memory(&tensors), 100 + 100 + 64 + 17 + 50);
        for (tensor, want) in tensors.iter().zip(&want) {
            assert_eq!(tensor.read()?, want);
        }
        for tensor in &tensors[..4] {
            assert!(tensor.is_made(), "{tensor:?} is read in place");
        }
        assert_eq!(tensors[1].as_slice::<f32>()?.len(), 25);
        Ok(())
    }

    #[test]
    fn what_is_read_of_a_file_is_shared() -> Result<()> {
        let read = Tensor::on_demand(8, |_, to| {
            to.fill(7);
            Ok(())
        })?;
        let mut tensors = [read.reshaped(&[2, 4])?, read];
        cut(tensors.iter_mut())?;
        assert!(std::ptr::eq(tensors[0].read()?, tensors[1].read()?));
        Ok(())
    }

    #[test]
    fn what_others_hold_and_what_is_whole_stays() -> Result<()> {
        let (all, own) = (file(256)?, file(64)?);
        let whole = Tensor::from_bytes(DType::U8, &[64], own)?;
        let mut tensors = [
            Tensor::view(DType::U8, &[64], all.clone(), 0, 64)?,
            Tensor::view(DType::U8, &[64], all.clone(), 64, 64)?,
            whole.clone(),
        ];
        cut(tensors.iter_mut())?;
        assert!(std::ptr::eq(tensors[1].read()?, &all.as_slice()[64..128]));
        assert!(std::ptr::eq(tensors[2].read()?, whole.read()?));
        Ok(())
    }
}

//! The bytes under a tensor, there or computed when they are read.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::{AlignedBytes, Tensor};
use crate::error::Result;
use crate::interrupt::Meter;

/// Computes of the source the bytes from the given one on.
type Recipe = dyn Fn(&Tensor, usize, &mut [u8]) -> Result<()> + Send + Sync;

pub(super) struct Later {
    len: usize,
    source: Tensor,
    recipe: Arc<Recipe>,
    made: OnceLock<AlignedBytes>,
}

impl Later {
    pub(super) fn new(
        len: usize,
        source: Tensor,
        recipe: impl Fn(&Tensor, usize, &mut [u8]) -> Result<()> + Send + Sync + 'static,
    ) -> Later {
        Later {
            len,
            source,
            recipe: Arc::new(recipe),
            made: OnceLock::new(),
        }
    }
}

/// Bytes that are copied together: whole elements of every type.
const LINE: usize = 64;

/// Bytes that tensors share.
#[derive(Clone)]
pub(super) enum Buffer {
    Made(Arc<AlignedBytes>),
    Later(Arc<Later>),
}

impl Buffer {
    pub(super) fn len(&self) -> usize {
        match self {
            Buffer::Made(bytes) => bytes.len(),
            Buffer::Later(later) => later.len,
        }
    }

    /// Shows what is in memory by address and size.
    pub(super) fn each(&self, each: &mut impl FnMut(usize, usize)) {
        match self {
            Buffer::Made(bytes) => each(Arc::as_ptr(bytes) as usize, bytes.len()),
            Buffer::Later(later) => {
                if let Some(bytes) = later.made.get() {
                    each(Arc::as_ptr(later) as usize, bytes.len());
                }
                later.source.buffers(each);
            }
        }
    }

    /// The bytes if they are there.
    pub(super) fn made(&self) -> Option<&AlignedBytes> {
        match self {
            Buffer::Made(bytes) => Some(bytes),
            Buffer::Later(later) => later.made.get(),
        }
    }

    /// The bytes; what is not there is computed in pieces of `meter`.
    pub(super) fn read(&self, meter: &Meter) -> Result<&AlignedBytes> {
        match self {
            Buffer::Made(bytes) => Ok(bytes),
            Buffer::Later(later) => match later.made.get() {
                Some(bytes) => Ok(bytes),
                None => {
                    let bytes = self.copy(meter, 0..later.len)?;
                    Ok(later.made.get_or_init(|| bytes))
                }
            },
        }
    }

    /// Copies the bytes from one on, or computes them.
    pub(super) fn copy_to(&self, from: usize, to: &mut [u8]) -> Result<()> {
        let bytes = match self {
            Buffer::Made(bytes) => bytes,
            Buffer::Later(later) => match later.made.get() {
                Some(bytes) => bytes,
                None => return (later.recipe)(&later.source, from, to),
            },
        };
        to.copy_from_slice(&bytes.as_slice()[from..][..to.len()]);
        Ok(())
    }

    /// A part in a buffer of its own, copied or computed in pieces of `meter`.
    pub(super) fn copy(&self, meter: &Meter, part: Range<usize>) -> Result<AlignedBytes> {
        let made = self.made();
        let mut copy = match made {
            Some(_) => AlignedBytes::with_capacity(part.len())?,
            None => AlignedBytes::zeroed(part.len())?,
        };
        let cost = if made.is_some() { 1 } else { LINE };
        meter.pieces(part.len().div_ceil(LINE), cost, |lines| {
            let piece = lines.start * LINE..part.len().min(lines.end * LINE);
            match made {
                Some(bytes) => {
                    let piece = part.start + piece.start..part.start + piece.end;
                    copy.extend_from_slice(&bytes.as_slice()[piece]);
                    Ok(())
                }
                None => {
                    let from = part.start + piece.start;
                    self.copy_to(from, &mut copy.as_mut_slice()[piece])
                }
            }
        })?;
        Ok(copy)
    }

    /// The bytes, where they are there and nobody else has them. What was computed is kept from then on: it may be
    /// changed, and computing it anew would lose that.
    pub(super) fn alone(&mut self) -> Option<&mut AlignedBytes> {
        if let Buffer::Later(later) = self {
            let bytes = Arc::get_mut(later)?.made.take()?;
            *self = Buffer::Made(Arc::new(bytes));
        }
        match self {
            Buffer::Made(bytes) => Arc::get_mut(bytes),
            Buffer::Later(_) => None,
        }
    }

    /// Reads anew, whatever others have read.
    pub(super) fn forget(&mut self) {
        if let Buffer::Later(later) = self {
            *later = Arc::new(Later {
                len: later.len,
                source: later.source.unread(),
                recipe: later.recipe.clone(),
                made: OnceLock::new(),
            });
        }
    }
}

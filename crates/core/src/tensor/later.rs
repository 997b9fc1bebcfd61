//! The bytes under a tensor, there or computed when they are read.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::widened::widen;
use super::{AlignedBytes, Tensor};
use crate::error::Result;
use crate::interrupt::Meter;

/// Computes of the source the bytes from the given one on.
type Compute = dyn Fn(&Tensor, usize, &mut [u8]) -> Result<()> + Send + Sync;

/// What the bytes are.
#[derive(Clone)]
enum Recipe {
    /// The source's, where the elements cannot be read as they lie.
    Same,
    /// The elements of a source in half precision, in `float32`.
    Widened,
    Computed(Arc<Compute>),
}

pub(super) struct Later {
    len: usize,
    source: Tensor,
    recipe: Recipe,
    made: OnceLock<AlignedBytes>,
}

impl Later {
    pub(super) fn new(
        len: usize,
        source: Tensor,
        recipe: impl Fn(&Tensor, usize, &mut [u8]) -> Result<()> + Send + Sync + 'static,
    ) -> Later {
        let recipe = Recipe::Computed(Arc::new(recipe));
        Later::by(recipe, len, source)
    }

    /// The bytes of `source`, where the elements cannot be read as they lie.
    pub(super) fn same(source: Tensor) -> Later {
        Later::by(Recipe::Same, source.byte_len(), source)
    }

    /// The elements of `source`, which is of `float16` or `bfloat16`, in `float32`.
    pub(super) fn widened(len: usize, source: Tensor) -> Later {
        Later::by(Recipe::Widened, len, source)
    }

    fn by(recipe: Recipe, len: usize, source: Tensor) -> Later {
        Later {
            len,
            source,
            recipe,
            made: OnceLock::new(),
        }
    }

    fn compute(&self, from: usize, to: &mut [u8]) -> Result<()> {
        match &self.recipe {
            Recipe::Same => self.source.copy_to(from, to),
            Recipe::Widened => widen(&self.source, from / size_of::<f32>(), to),
            Recipe::Computed(compute) => compute(&self.source, from, to),
        }
    }

    /// What the bytes will be computed of, where nobody else has it.
    pub(super) fn source(later: &mut Arc<Later>) -> Option<&mut Tensor> {
        Arc::get_mut(later).map(|later| &mut later.source)
    }

    /// Whether the source takes memory beside what is computed of it.
    pub(super) fn holds_its_source(&self) -> bool {
        let mut held = 0;
        self.source.buffers(&mut |_, bytes| held += bytes);
        held > 0
    }

    /// The source, where these are the elements of it in `float32`.
    pub(super) fn as_widened(&self) -> Option<&Tensor> {
        matches!(self.recipe, Recipe::Widened).then_some(&self.source)
    }

    /// The source, where its bytes are these.
    pub(super) fn as_same(&self) -> Option<&Tensor> {
        matches!(self.recipe, Recipe::Same).then_some(&self.source)
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
                None => return later.compute(from, to),
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

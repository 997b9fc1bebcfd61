//! What kernels need of the memory that they share.

use kilim_core::memory::out_of_memory;
use kilim_core::{Error, ErrorCode, Result};

/// Scratch memory that a kernel needs in a run, stated in elements. Sums and products that do not fit saturate, so
/// that they are found to be too large when the kernel is built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// Bytes for the kernel and for each of its threads; `usize::MAX` where they do not fit.
    once: usize,
    each: usize,
}

impl Scratch {
    /// No memory.
    pub const NONE: Scratch = Scratch { once: 0, each: 0 };

    /// Room for as many elements.
    pub const fn of<T>(elements: usize) -> Scratch {
        Scratch {
            once: elements.saturating_mul(size_of::<T>()),
            each: 0,
        }
    }

    /// Room for as many elements on each thread: [`Io::thread_scratch`](crate::Io::thread_scratch).
    pub const fn on_each_thread<T>(elements: usize) -> Scratch {
        Scratch {
            once: 0,
            each: elements.saturating_mul(size_of::<T>()),
        }
    }

    /// Room for both.
    #[must_use]
    pub const fn and(self, other: Scratch) -> Scratch {
        Scratch {
            once: self.once.saturating_add(other.once),
            each: self.each.saturating_add(other.each),
        }
    }

    /// The bytes that a run on so many threads needs.
    ///
    /// # Errors
    /// `Limit` where there is no memory of that size.
    pub fn bytes(self, threads: usize) -> Result<usize> {
        let each = self.each.checked_mul(threads);
        let bytes = each.and_then(|each| each.checked_add(self.once));
        match bytes.filter(|&bytes| bytes <= isize::MAX as usize) {
            Some(bytes) => Ok(bytes),
            None => Err(Error::new(
                ErrorCode::Limit,
                "the memory that a kernel computes in is more than this machine can address",
            )
            .with_expected(format!("at most {} bytes", isize::MAX))),
        }
    }
}

/// Places one behind another in scratch memory, each at a multiple of 64 bytes.
#[derive(Debug)]
pub struct Layout {
    bytes: usize,
}

impl Layout {
    /// A layout that begins behind the first `bytes`.
    pub fn behind(bytes: usize) -> Layout {
        Layout { bytes }
    }

    /// Where room for as many elements begins.
    ///
    /// # Errors
    /// `Limit` where there is no memory of that size.
    pub fn reserve<T>(&mut self, elements: usize) -> Result<usize> {
        let start = self.bytes.checked_next_multiple_of(64);
        let end = start.zip(elements.checked_mul(size_of::<T>()));
        let end = end.and_then(|(start, bytes)| start.checked_add(bytes));
        match (start, end.filter(|&end| end <= isize::MAX as usize)) {
            (Some(start), Some(end)) => {
                self.bytes = end;
                Ok(start)
            }
            _ => Err(out_of_memory(elements.saturating_mul(size_of::<T>()))),
        }
    }

    /// All that was placed.
    pub fn scratch(&self) -> Scratch {
        Scratch::of::<u8>(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_addressed_is_a_limit() {
        assert_eq!(Scratch::of::<f32>(3).bytes(4).unwrap(), 12);
        assert_eq!(Scratch::on_each_thread::<f64>(3).bytes(4).unwrap(), 96);
        let both = Scratch::of::<f32>(3).and(Scratch::on_each_thread::<f64>(3));
        assert_eq!(both.bytes(4).unwrap(), 108);
        let half = usize::MAX / 2 + 1;
        for wraps in [
            Scratch::of::<u64>(usize::MAX / 8 + 1),
            Scratch::of::<u8>(half),
            Scratch::on_each_thread::<u8>(usize::MAX / 4 + 1),
            Scratch::on_each_thread::<u64>(half),
        ] {
            assert_eq!(wraps.bytes(4).unwrap_err().code(), ErrorCode::Limit);
        }
    }

    #[test]
    fn reserved_rooms_are_aligned_and_apart() {
        let mut layout = Layout::behind(10);
        assert_eq!(layout.reserve::<f32>(17).unwrap(), 64);
        assert_eq!(layout.reserve::<u8>(1).unwrap(), 192);
        assert_eq!(layout.scratch().bytes(1).unwrap(), 193);
        assert!(layout.reserve::<f32>(usize::MAX / 4).is_err());
        assert!(layout.reserve::<u8>(isize::MAX as usize).is_err());
    }
}

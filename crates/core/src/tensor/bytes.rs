//! Bytes on the heap.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::error::Result;
use crate::fallible::out_of_memory;
use bytemuck::{Pod, Zeroable};

/// One cache line: SIMD kernels may count on such an alignment.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
struct Line([u8; LINE]);

const LINE: usize = 64;
const WORDS: usize = LINE / size_of::<u64>();

/// Bytes on the heap, aligned to 64.
///
/// They are aligned within memory of words: allocators keep what is freed of memory with a larger alignment apart, where
/// the next request of the same size does not fit, so that weights that come and go would take memory twice.
#[derive(Default)]
pub struct AlignedBytes {
    /// Whole lines behind the first `skipped` words.
    words: Vec<u64>,
    skipped: usize,
    len: usize,
}

/// Words before the first line of a vector's memory.
fn skipped(words: &Vec<u64>) -> usize {
    match words.capacity() {
        0 => 0,
        _ => words.as_ptr().align_offset(LINE),
    }
}

/// Words that lines for so many bytes take, wherever the first begins.
fn words_for(bytes: usize) -> usize {
    match bytes.div_ceil(LINE) {
        0 => 0,
        lines => lines.saturating_mul(WORDS).saturating_add(WORDS - 1),
    }
}

impl AlignedBytes {
    /// `len` zero bytes; `Limit` where the machine has no such memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        let words = bytemuck::allocation::try_zeroed_vec(words_for(len));
        let mut words = words.map_err(|()| out_of_memory(len))?;
        let skipped = skipped(&words);
        words.truncate(skipped + len.div_ceil(LINE) * WORDS);
        Ok(AlignedBytes {
            words,
            skipped,
            len,
        })
    }

    /// `Limit` where the machine has no such memory.
    pub fn copy_of(bytes: &[u8]) -> Result<Self> {
        let mut copy = AlignedBytes::with_capacity(bytes.len())?;
        copy.extend_from_slice(bytes);
        Ok(copy)
    }

    /// None yet, with room for `len` that [`AlignedBytes::extend_from_slice`] appends; `Limit` where the
    /// machine has no such memory.
    pub fn with_capacity(len: usize) -> Result<Self> {
        let mut words = Vec::new();
        words
            .try_reserve_exact(words_for(len))
            .map_err(|_| out_of_memory(len))?;
        Ok(AlignedBytes::within(words))
    }

    /// No bytes yet, in the memory of an empty vector.
    fn within(mut words: Vec<u64>) -> Self {
        let skipped = skipped(&words);
        words.resize(skipped, 0);
        AlignedBytes {
            words,
            skipped,
            len: 0,
        }
    }

    /// Bytes that there is memory for.
    pub fn room(&self) -> usize {
        (self.words.capacity() - self.skipped) / WORDS * LINE
    }

    /// Appends within the capacity that was reserved; beyond it, memory grows infallibly.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end > self.room() {
            let larger = Vec::with_capacity(words_for(end.max(self.len * 2)));
            let old = std::mem::replace(self, AlignedBytes::within(larger));
            self.extend_from_slice(old.as_slice());
        }
        let begun = (self.words.len() - self.skipped) * size_of::<u64>() - self.len;
        let (filling, bytes) = bytes.split_at(begun.min(bytes.len()));
        let from = self.skipped * size_of::<u64>() + self.len;
        let own: &mut [u8] = bytemuck::cast_slice_mut(&mut self.words);
        own[from..from + filling.len()].copy_from_slice(filling);
        let (whole, rest) = bytes.as_chunks::<8>();
        match bytemuck::try_cast_slice(whole) {
            Ok(words) => self.words.extend_from_slice(words),
            Err(_) => (self.words).extend(whole.iter().map(|word| u64::from_ne_bytes(*word))),
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.words.push(u64::from_ne_bytes(word));
        }
        let lines = end.div_ceil(LINE);
        self.words.resize(self.skipped + lines * WORDS, 0);
        self.len = end;
    }

    /// Makes the bytes `len`, in the memory that they have. Those that were there before stay as they were.
    ///
    /// # Panics
    /// Where there is no room for so many.
    pub fn resize(&mut self, len: usize) {
        assert!(len <= self.room(), "bytes have no room to grow");
        self.words
            .resize(self.skipped + len.div_ceil(LINE) * WORDS, 0);
        self.len = len;
    }

    /// The room behind the bytes, which [`AlignedBytes::with_capacity`] made, from the first address on that `T` may
    /// have.
    pub fn spare<T: Pod>(&mut self) -> &mut [MaybeUninit<T>] {
        let room = self.room() - self.len;
        let start = self.words.as_mut_ptr().cast::<MaybeUninit<u8>>();
        // SAFETY: the vector owns so many words, and what may be uninitialised has no invalid values. `len` is at most
        // the room of the lines that lie behind the skipped words.
        unsafe {
            let start = start.add(self.skipped * size_of::<u64>() + self.len);
            std::slice::from_raw_parts_mut(start, room).align_to_mut().1
        }
    }

    /// Makes the first `more` bytes behind the last part of these.
    ///
    /// # Safety
    /// They were written.
    ///
    /// # Panics
    /// Where there is no room for so many.
    pub unsafe fn assume_init(&mut self, more: usize) {
        let end = self.len + more;
        let lines = end.div_ceil(LINE);
        let rest = lines * LINE - self.len;
        self.spare::<u8>()[more..rest].fill(MaybeUninit::new(0));
        self.len = end;
        // SAFETY: the bytes are written, by the caller, and what was left of the last line is zero.
        unsafe { self.words.set_len(self.skipped + lines * WORDS) }
    }

    /// Copies a part, and keeps no more than `left` bytes: the memory of all others is given back. Those that are left may begin at
    /// any word.
    ///
    /// # Errors
    /// `Limit` where memory for the copy is short.
    pub(super) fn split_off(&mut self, part: Range<usize>, left: usize) -> Result<AlignedBytes> {
        let copy = AlignedBytes::copy_of(&self.as_slice()[part])?;
        self.len = left.min(self.len);
        self.words
            .truncate(self.skipped + self.len.div_ceil(LINE) * WORDS);
        self.words.shrink_to_fit();
        Ok(copy)
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self.len {
            0 => bytemuck::cast_slice::<Line, u8>(&[]),
            len => &bytemuck::cast_slice(&self.words[self.skipped..])[..len],
        }
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        match self.len {
            0 => bytemuck::cast_slice_mut::<Line, u8>(&mut []),
            len => &mut bytemuck::cast_slice_mut(&mut self.words[self.skipped..])[..len],
        }
    }
}

impl Clone for AlignedBytes {
    fn clone(&self) -> Self {
        let mut copy = AlignedBytes::default();
        copy.extend_from_slice(self.as_slice());
        copy
    }
}

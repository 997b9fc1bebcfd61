//! Bytes on the heap.

use std::mem::MaybeUninit;

use bytemuck::{Pod, Zeroable};

use crate::error::Result;
use crate::memory::out_of_memory;

/// One cache line; the unit of [`AlignedBytes`], so that SIMD kernels may count on alignment.
#[derive(Clone, Copy, Zeroable, Pod)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Bytes on the heap, aligned to 64.
#[derive(Clone, Default)]
pub struct AlignedBytes {
    lines: Vec<Line>,
    len: usize,
}

impl AlignedBytes {
    /// `len` zero bytes; `Limit` where the machine has no such memory.
    pub fn zeroed(len: usize) -> Result<Self> {
        let lines = bytemuck::allocation::try_zeroed_vec(len.div_ceil(64))
            .map_err(|()| out_of_memory(len))?;
        Ok(AlignedBytes { lines, len })
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
        let mut lines = Vec::new();
        lines
            .try_reserve_exact(len.div_ceil(64))
            .map_err(|_| out_of_memory(len))?;
        Ok(AlignedBytes { lines, len: 0 })
    }

    /// Appends within the capacity that was reserved; beyond it, memory grows infallibly.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let open = self.len.next_multiple_of(64) - self.len;
        let (filling, bytes) = bytes.split_at(open.min(bytes.len()));
        let end = self.len + filling.len();
        bytemuck::cast_slice_mut(&mut self.lines)[self.len..end].copy_from_slice(filling);
        let (whole, rest) = bytes.as_chunks::<64>();
        match bytemuck::try_cast_slice(whole) {
            Ok(lines) => self.lines.extend_from_slice(lines),
            Err(_) => self.lines.extend(whole.iter().map(|line| Line(*line))),
        }
        if !rest.is_empty() {
            let mut line = [0; 64];
            line[..rest.len()].copy_from_slice(rest);
            self.lines.push(Line(line));
        }
        self.len = end + bytes.len();
    }

    /// The room behind the bytes, which [`AlignedBytes::with_capacity`] made, from the first address on that `T` may
    /// have.
    pub fn spare<T: Pod>(&mut self) -> &mut [MaybeUninit<T>] {
        let room = self.lines.capacity() * 64 - self.len;
        let start = self.lines.as_mut_ptr().cast::<MaybeUninit<u8>>();
        // SAFETY: the vector owns so many lines, and what may be uninitialised has no invalid values.
        // `len` is at most 64 times the capacity.
        unsafe {
            let room = std::slice::from_raw_parts_mut(start.add(self.len), room);
            room.align_to_mut().1
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
        let lines = end.div_ceil(64);
        let rest = lines * 64 - self.len;
        self.spare::<u8>()[more..rest].fill(MaybeUninit::new(0));
        self.len = end;
        // SAFETY: the lines before the last are written, by the caller, and what was left of that is zero.
        unsafe { self.lines.set_len(lines) }
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
        &bytemuck::cast_slice(&self.lines)[..self.len]
    }

    /// The bytes, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.lines)[..self.len]
    }
}

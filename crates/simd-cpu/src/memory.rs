//! Memory that several threads write disjoint parts of.

/// A mutable slice whose parts are handed out by hand.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T = f32> {
    ptr: *mut T,
    len: usize,
}

// SAFETY: parts are only handed out by `part`, whose contract keeps them apart.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(crate) fn new(slice: &mut [T]) -> Shared<T> {
        Shared {
            ptr: slice.as_mut_ptr(),
            len: slice.len(),
        }
    }

    /// # Safety
    /// The slice that this was made of is still borrowed for it, and no two parts that are alive
    /// at the same time overlap.
    pub(crate) unsafe fn part<'a>(&self, first: usize, len: usize) -> &'a mut [T] {
        assert!(first <= self.len && len <= self.len - first);
        // SAFETY: inside of the slice, and exclusive by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(first), len) }
    }
}

/// The `i`th of `parts` nearly equal parts of `0..items`.
pub(crate) fn share(items: usize, parts: usize, i: usize) -> std::ops::Range<usize> {
    items * i / parts..items * (i + 1) / parts
}

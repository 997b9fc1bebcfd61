//! The module's heap. Tensors have one of their own: small objects that outlive them do not lie in
//! the gaps that they leave, so that neighbouring gaps become one again for the next tensor. What is
//! never touched costs nothing, but growing the memory does: it grows in steps.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;

use dlmalloc::Dlmalloc;

/// Blocks of so many bytes are tensors or as large as such.
const LARGE: usize = 64 << 10;

struct Heaps {
    small: UnsafeCell<Dlmalloc>,
    large: UnsafeCell<Dlmalloc>,
}

#[global_allocator]
static HEAPS: Heaps = Heaps {
    small: UnsafeCell::new(growing_by(1 << 20)),
    large: UnsafeCell::new(growing_by(16 << 20)),
};

/// `step` is a power of two.
const fn growing_by(step: usize) -> Dlmalloc {
    let mut heap = Dlmalloc::new();
    assert!(heap.set_granularity(step));
    heap
}

#[cfg(target_feature = "atomics")]
compile_error!("the heaps are not locked: they are for a module of one thread");

// SAFETY: the module has one thread (see above), and a heap calls nothing that allocates.
unsafe impl Sync for Heaps {}

impl Heaps {
    /// Where blocks of `size` bytes are.
    fn heap(&self, size: usize) -> *mut Dlmalloc {
        let heap = match size {
            LARGE.. => &self.large,
            _ => &self.small,
        };
        heap.get()
    }
}

// SAFETY: every block is given back to the heap that it is from, which its size tells; the heaps are
// used by one thread, one call at a time.
unsafe impl GlobalAlloc for Heaps {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for the whole.
        unsafe { (*self.heap(layout.size())).malloc(layout.size(), layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for the whole.
        unsafe { (*self.heap(layout.size())).calloc(layout.size(), layout.align()) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as for the whole; the caller says that the block has this layout.
        unsafe { (*self.heap(layout.size())).free(block, layout.size(), layout.align()) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let heap = self.heap(size);
        if heap == self.heap(layout.size()) {
            // SAFETY: as for the whole; the caller says that the block has this layout.
            return unsafe { (*heap).realloc(block, layout.size(), layout.align(), size) };
        }
        // SAFETY: the caller says that `size` is possible with this alignment. Both blocks have the
        // smaller of both sizes.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, size.min(layout.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

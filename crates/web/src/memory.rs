//! The module's heap. Tensors have one of their own: small objects that outlive them do not lie in
//! the gaps that they leave, so that neighbouring gaps become one again for the next tensor. What is
//! never touched costs nothing, but growing the memory does: it grows in steps. Where memory is shared, a lock lets one
//! thread at a time use a heap.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
#[cfg(target_feature = "atomics")]
use std::sync::atomic::{AtomicBool, Ordering};

use dlmalloc::Dlmalloc;

/// Blocks of so many bytes are tensors or as large as such.
const LARGE: usize = 64 << 10;

struct Heaps {
    small: Heap,
    large: Heap,
}

/// A heap of one thread at a time.
struct Heap {
    blocks: UnsafeCell<Dlmalloc>,
    /// A spin lock. It is held for less than a thread takes to go to sleep, and the page's own thread may not
    /// sleep.
    #[cfg(target_feature = "atomics")]
    taken: AtomicBool,
}

#[global_allocator]
static HEAPS: Heaps = Heaps {
    small: Heap::growing_by(1 << 20),
    large: Heap::growing_by(16 << 20),
};

// SAFETY: only the thread in `Heap::with` uses the blocks, and a heap calls nothing that allocates.
unsafe impl Sync for Heap {}

impl Heap {
    /// `step` is a power of two.
    const fn growing_by(step: usize) -> Heap {
        let mut heap = Dlmalloc::new();
        assert!(heap.set_granularity(step));
        Heap {
            blocks: UnsafeCell::new(heap),
            #[cfg(target_feature = "atomics")]
            taken: AtomicBool::new(false),
        }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Dlmalloc) -> R) -> R {
        #[cfg(target_feature = "atomics")]
        while self.taken.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: without shared memory the module has one thread, with it this one has the lock; `work` does not come
        // here again.
        let result = work(unsafe { &mut *self.blocks.get() });
        #[cfg(target_feature = "atomics")]
        self.taken.store(false, Ordering::Release);
        result
    }
}

impl Heaps {
    /// Where blocks of `size` bytes are.
    fn heap(&self, size: usize) -> &Heap {
        match size {
            LARGE.. => &self.large,
            _ => &self.small,
        }
    }
}

// SAFETY: every block is given back to the heap that it is from, which its size tells.
unsafe impl GlobalAlloc for Heaps {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let heap = self.heap(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, and the size picks the heap.
        heap.with(|heap| unsafe { heap.malloc(layout.size(), layout.align()) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let heap = self.heap(layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc_zeroed`, and the size picks the heap.
        heap.with(|heap| unsafe { heap.calloc(layout.size(), layout.align()) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let heap = self.heap(layout.size());
        // SAFETY: the caller says that the block has this layout, whose size picks the heap that it is from.
        heap.with(|heap| unsafe { heap.free(block, layout.size(), layout.align()) });
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let heap = self.heap(size);
        if std::ptr::eq(heap, self.heap(layout.size())) {
            // SAFETY: the caller says that the block has this layout, whose size picks this heap; the new
            // size does, too.
            return heap
                .with(|heap| unsafe { heap.realloc(block, layout.size(), layout.align(), size) });
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

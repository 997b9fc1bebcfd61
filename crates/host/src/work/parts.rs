//! Outputs that the threads of a run write in disjoint parts.

use std::ops::Range;

/// A mutable slice whose parts are handed out by hand.
#[derive(Debug)]
pub struct Shared<T> {
    ptr: *mut T,
    len: usize,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        *self
    }
}

impl<T> Copy for Shared<T> {}

// SAFETY: elements are only reached through `part`, whose contract gives each to one thread.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: sharing it shares no elements; `part` hands each of them to one thread.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// The parts of `slice`, which stays borrowed only for its callers: see [`Shared::part`].
    pub fn new(slice: &mut [T]) -> Shared<T> {
        Shared {
            ptr: slice.as_mut_ptr(),
            len: slice.len(),
        }
    }

    /// Where `len` elements from `first` on are, for what writes some of them.
    ///
    /// # Panics
    /// Where the slice ends before them.
    pub fn at(&self, first: usize, len: usize) -> *mut T {
        assert!(first <= self.len && len <= self.len - first);
        self.ptr.wrapping_add(first)
    }

    /// `len` elements from `first` on.
    ///
    /// # Panics
    /// Where the slice ends before them.
    ///
    /// # Safety
    /// The slice that this was made of is still borrowed for it, and no two parts that are alive at the same time
    /// overlap.
    pub unsafe fn part<'p>(&self, first: usize, len: usize) -> &'p mut [T] {
        let start = self.at(first, len);
        // SAFETY: inside of the slice, and exclusive by the contract.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }
}

/// A slice as rows of as many elements; what is behind the last whole row is a shorter one.
#[derive(Debug)]
pub struct By<'a, T> {
    data: &'a mut [T],
    row: usize,
}

/// `data` as rows of `row` elements.
pub fn by<T>(data: &mut [T], row: usize) -> By<'_, T> {
    By { data, row }
}

/// Rows that are handed out by hand.
#[derive(Debug)]
pub struct SharedRows<T> {
    data: Shared<T>,
    row: usize,
}

impl<T> Clone for SharedRows<T> {
    fn clone(&self) -> SharedRows<T> {
        *self
    }
}

impl<T> Copy for SharedRows<T> {}

impl<T> SharedRows<T> {
    /// The rows of these numbers, as far as there are any.
    ///
    /// # Safety
    /// As for [`Shared::part`], the ranges of rows being the parts.
    pub(super) unsafe fn rows<'p>(&self, rows: Range<usize>) -> &'p mut [T] {
        let elements = elements(&rows, self.row, self.data.len);
        // SAFETY: ranges that do not overlap have elements that do not.
        unsafe { self.data.part(elements.start, elements.len()) }
    }
}

/// The elements of these rows among the first `len`.
#[inline(never)]
fn elements(rows: &Range<usize>, row: usize, len: usize) -> Range<usize> {
    let at = |number: usize| number.saturating_mul(row).min(len);
    at(rows.start)..at(rows.end)
}

/// One output in rows, or several whose rows have the same numbers.
pub trait Parts {
    /// What is handed to the threads.
    type Shared: Copy + Send + Sync;
    /// Some neighbouring rows.
    type Part<'p>;

    /// Gives up the borrow for one that the parts' contract keeps.
    fn shared(self) -> Self::Shared;

    /// The rows of these numbers.
    ///
    /// # Safety
    /// The outputs are still borrowed for it, and no two ranges whose parts are alive at the same time overlap.
    unsafe fn part<'p>(shared: Self::Shared, rows: Range<usize>) -> Self::Part<'p>;
}

impl<T: Send + 'static> Parts for By<'_, T> {
    type Shared = SharedRows<T>;
    type Part<'p> = &'p mut [T];

    fn shared(self) -> SharedRows<T> {
        SharedRows {
            data: Shared::new(self.data),
            row: self.row,
        }
    }

    unsafe fn part<'p>(shared: SharedRows<T>, rows: Range<usize>) -> &'p mut [T] {
        // SAFETY: the output is still borrowed, and no two ranges of rows that are alive overlap.
        unsafe { shared.rows(rows) }
    }
}

/// No output: work that writes elsewhere.
impl Parts for () {
    type Shared = ();
    type Part<'p> = ();

    fn shared(self) {}

    unsafe fn part<'p>((): (), _: Range<usize>) -> Self::Part<'p> {}
}

/// An output that a node may lack: its parts are lacking then, too.
impl<P: Parts> Parts for Option<P> {
    type Shared = Option<P::Shared>;
    type Part<'p> = Option<P::Part<'p>>;

    fn shared(self) -> Option<P::Shared> {
        self.map(P::shared)
    }

    unsafe fn part<'p>(shared: Option<P::Shared>, rows: Range<usize>) -> Option<P::Part<'p>> {
        // SAFETY: the output is still borrowed, if there is one, and no two ranges of its rows that are alive
        // overlap.
        shared.map(|shared| unsafe { P::part(shared, rows) })
    }
}

impl<A: Parts, B: Parts> Parts for (A, B) {
    type Shared = (A::Shared, B::Shared);
    type Part<'p> = (A::Part<'p>, B::Part<'p>);

    fn shared(self) -> Self::Shared {
        (self.0.shared(), self.1.shared())
    }

    unsafe fn part<'p>((a, b): Self::Shared, rows: Range<usize>) -> Self::Part<'p> {
        // SAFETY: both outputs are still borrowed, and no two ranges of rows that are alive overlap; two outputs that
        // were borrowed mutably do not overlap either.
        unsafe { (A::part(a, rows.clone()), B::part(b, rows)) }
    }
}

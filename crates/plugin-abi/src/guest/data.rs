//! The elements of tensors while a kernel runs.

use std::ptr::NonNull;

/// The elements of a tensor while a kernel runs, aligned to 8 bytes. They lie in memory that Kilim
/// plans; there is no way to keep them.
#[derive(Debug)]
pub struct Data {
    start: NonNull<u64>,
    bytes: usize,
}

// SAFETY: a kernel has the elements of its inputs and outputs for itself while it runs.
unsafe impl Send for Data {}
// SAFETY: shared, the elements are only read; writing them takes `&mut`.
unsafe impl Sync for Data {}

mod number {
    /// A type of at most 8 bytes whose alignment is its size; every pattern of its bits is a value.
    pub trait Number: Copy + 'static {}
}

/// A type of elements: the integers of 8 to 64 bits, `f32` and `f64`. `float16` and `bfloat16` are read as the `u16` of
/// their bits, booleans as `u8`.
pub trait Element: number::Number {}

macro_rules! elements {
    ($($type:ty),*) => {
        $(
            impl number::Number for $type {}
            impl Element for $type {}
        )*
    };
}

elements!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl Data {
    /// # Safety
    /// `start` must be followed by `bytes` initialised bytes, which nothing else writes while the
    /// value lives, and which nothing else reads while it is written.
    pub(crate) unsafe fn new(start: NonNull<u64>, bytes: usize) -> Data {
        Data { start, bytes }
    }

    /// The elements as those of a type, row-major; bytes at the end that are less than one are left out.
    pub fn elements<T: Element>(&self) -> &[T] {
        let count = self.bytes / size_of::<T>();
        // SAFETY: `new` was given `bytes` initialised bytes that nothing else writes while `self` lives; they are aligned
        // for each `Element`, and every pattern of bits is one.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), count) }
    }

    /// The elements as those of a type, to be changed.
    pub fn elements_mut<T: Element>(&mut self) -> &mut [T] {
        let count = self.bytes / size_of::<T>();
        // SAFETY: `new` was given `bytes` initialised bytes that nothing else uses while `self` is borrowed to be
        // written; they are aligned for each `Element`, and every pattern of bits is one.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().cast(), count) }
    }

    /// The elements as bytes, row-major.
    pub fn bytes(&self) -> &[u8] {
        self.elements()
    }

    /// The elements as bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.elements_mut()
    }

    /// The elements as `float32`.
    pub fn f32s(&self) -> &[f32] {
        self.elements()
    }

    /// The elements as `float32`, to be changed.
    pub fn f32s_mut(&mut self) -> &mut [f32] {
        self.elements_mut()
    }
}

//! How the elements of packed B lie in memory.

use std::mem::MaybeUninit;
use std::sync::Arc;

use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Tensor};

use super::Reading;
use crate::isa::Simd;

/// The type of the elements of packed B. Products are of `float32` whichever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Float32,
    Float16,
    BFloat16,
}

impl Form {
    /// The form in which a constant of `float32` loses nothing and takes the least memory: half precision where it was
    /// widened from that and is packed as it is. With it the tensor to pack, of the form's type.
    pub(crate) fn of(constant: &Tensor, reading: Reading) -> (Form, Tensor) {
        let narrow = constant.narrow().filter(|_| !reading.scales());
        match narrow {
            Some(narrow) if narrow.dtype() == DType::F16 => (Form::Float16, narrow),
            Some(narrow) if narrow.dtype() == DType::BF16 => (Form::BFloat16, narrow),
            _ => (Form::Float32, constant.clone()),
        }
    }

    /// Bytes of an element.
    pub(crate) fn size(self) -> usize {
        match self {
            Form::Float32 => size_of::<f32>(),
            Form::Float16 | Form::BFloat16 => size_of::<u16>(),
        }
    }
}

/// Where elements of packed B begin.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    first: *const u8,
    form: Form,
}

impl Packed {
    pub(super) fn form(self) -> Form {
        self.form
    }

    pub(super) fn address(self) -> *const u8 {
        self.first
    }

    /// The place `elements` further on.
    #[inline(always)]
    pub(crate) fn skip(self, elements: usize) -> Packed {
        Packed {
            first: self.first.wrapping_add(elements * self.form.size()),
            ..self
        }
    }

    /// The elements where they lie, if they are of `float32`, else widened into `room`.
    ///
    /// # Safety
    /// `count` elements, a multiple of the lanes, are valid for reads; those in half precision fit in `room`.
    #[inline(always)]
    pub(super) unsafe fn singles<S: Simd>(
        self,
        s: S,
        count: usize,
        room: &mut [MaybeUninit<f32>],
    ) -> *const f32 {
        if self.form == Form::Float32 {
            return self.first.cast();
        }
        let (from, to): (*const u16, *mut f32) = (self.first.cast(), room.as_mut_ptr().cast());
        for i in (0..count).step_by(S::LANES) {
            // SAFETY: a vector is left of the elements, and of the room.
            unsafe {
                let each = match self.form {
                    Form::BFloat16 => s.load_bf16(from.add(i)),
                    _ => s.load_f16(from.add(i)),
                };
                s.store(to.add(i), each);
            }
        }
        to
    }
}

/// Constant matrices, packed one behind the other.
pub(crate) struct Matrices {
    pub bytes: Arc<AlignedBytes>,
    pub form: Form,
}

impl Matrices {
    /// One of the matrices; each has `elements` with its padding.
    ///
    /// # Panics
    /// Where it is not there.
    pub(crate) fn at(&self, matrix: usize, elements: usize) -> Packed {
        let size = elements * self.form.size();
        Packed {
            first: self.bytes.as_slice()[matrix * size..][..size].as_ptr(),
            form: self.form,
        }
    }
}

impl From<*const f32> for Packed {
    fn from(first: *const f32) -> Packed {
        Packed {
            first: first.cast(),
            form: Form::Float32,
        }
    }
}

//! The access of kernels to the memory of their tensors. The unsafety of sharing one arena among
//! all tensors is in this file alone.

use std::marker::PhantomData;

use bytemuck::Pod;
use kilim_core::memory::HostMemory;
use kilim_core::{DType, Tensor};

use super::kernel::CpuRun;
use super::texts::Texts;

/// Where the bytes of one tensor are.
#[derive(Clone, Copy)]
pub struct View {
    ptr: *mut u8,
    bytes: usize,
    dtype: DType,
}

impl View {
    /// Of a tensor that is only read; not of strings, whose bytes are in a [`Texts`].
    pub fn of(tensor: &Tensor) -> View {
        View::of_bytes(tensor.bytes(), tensor.dtype())
    }

    /// Of bytes that are only read.
    pub fn of_bytes(bytes: &[u8], dtype: DType) -> View {
        View {
            ptr: bytes.as_ptr().cast_mut(),
            bytes: bytes.len(),
            dtype,
        }
    }

    pub fn of_mut(bytes: &mut [u8], dtype: DType) -> View {
        View {
            ptr: bytes.as_mut_ptr(),
            bytes: bytes.len(),
            dtype,
        }
    }

    /// Of all of an arena.
    pub fn of_arena(memory: &HostMemory) -> View {
        let (ptr, bytes) = memory.base();
        View {
            ptr,
            bytes,
            dtype: DType::U8,
        }
    }

    /// A tensor with no memory yet; reading it gives nothing.
    pub fn empty(dtype: DType) -> View {
        View {
            ptr: std::ptr::without_provenance_mut(64),
            bytes: 0,
            dtype,
        }
    }

    /// `bytes` bytes from `offset` on; `None` where they are not all there.
    pub fn part(&self, offset: usize, bytes: usize, dtype: DType) -> Option<View> {
        let end = offset.checked_add(bytes)?;
        (end <= self.bytes).then(|| View {
            ptr: self.ptr.wrapping_add(offset),
            bytes,
            dtype,
        })
    }

    /// The same bytes as another tensor sees them.
    pub fn with_dtype(self, dtype: DType) -> View {
        View { dtype, ..self }
    }

    /// # Safety
    /// The memory must live and nobody may write to it during `'a`.
    pub unsafe fn read<'a>(&self) -> &'a [u8] {
        // SAFETY: `ptr` and `bytes` came from a slice; the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts(self.ptr, self.bytes) }
    }

    /// # Safety
    /// The memory must live, came from [`View::of_mut`] or an arena, and nobody else may touch it during `'a`.
    pub unsafe fn write<'a>(&self) -> &'a mut [u8] {
        // SAFETY: as for `read`.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.bytes) }
    }

    /// As elements, or as the parts of complex numbers.
    fn typed<T: Pod>(&self) -> (*mut T, usize) {
        assert!(
            [self.dtype, self.dtype.part()]
                .iter()
                .any(|d| d.size() == size_of::<T>()),
            "a kernel reads {} as an element of {} bytes",
            self.dtype,
            size_of::<T>()
        );
        (self.ptr.cast(), self.bytes / size_of::<T>())
    }
}

/// The tensors of one node during a run, its scratch memory, and the threads it may use.
///
/// Outputs and the scratch memory are handed out once each, so that no two references to the same
/// bytes exist.
pub struct Io<'a> {
    views: &'a [View],
    inputs: &'a [u32],
    outputs: &'a [u32],
    taken: u64,
    scratch: (*mut u8, usize),
    texts: &'a mut Texts,
    cpu: CpuRun<'a>,
    memory: PhantomData<&'a mut [u8]>,
}

/// In [`Io::new`]'s `inputs`: an optional input that is left out.
pub const ABSENT: u32 = u32::MAX;
const SCRATCH_TAKEN: u64 = 1 << 63;

impl<'a> Io<'a> {
    /// `inputs` and `outputs` are indices into `views`.
    ///
    /// # Safety
    /// During `'a` all views of the inputs and outputs must be live and aligned for their element
    /// type; the outputs and `scratch` must not be accessed in any other way and overlap neither
    /// each other nor any input. The planner gives tensors that live at the same time disjoint
    /// places in the arena.
    pub unsafe fn new(
        views: &'a [View],
        inputs: &'a [u32],
        outputs: &'a [u32],
        scratch: &'a mut [u8],
        texts: &'a mut Texts,
        cpu: CpuRun<'a>,
    ) -> Io<'a> {
        debug_assert!(outputs.len() < 63);
        Io {
            views,
            inputs,
            outputs,
            taken: 0,
            scratch: (scratch.as_mut_ptr(), scratch.len()),
            texts,
            cpu,
            memory: PhantomData,
        }
    }

    /// The threads that the run may use, and what may stop it.
    pub fn cpu(&self) -> CpuRun<'a> {
        self.cpu
    }

    /// What the elements of string tensors stand for; they are read and written as `u32`.
    pub fn texts(&mut self) -> &mut Texts {
        self.texts
    }

    /// The number of inputs, those that are left out between others too.
    pub fn inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Whether the node has input `i`.
    pub fn has_input(&self, i: usize) -> bool {
        self.inputs.get(i).is_some_and(|&v| v != ABSENT)
    }

    /// Whether the node has output `i`.
    pub fn has_output(&self, i: usize) -> bool {
        i < self.outputs.len()
    }

    fn input_view(&self, i: usize) -> &View {
        &self.views[self.inputs[i] as usize]
    }

    /// The elements of input `i`. `T` may be any type of the element's size.
    ///
    /// # Panics
    /// Where the kernel was built for an input that is not there or has elements of another size.
    pub fn input<T: Pod>(&self, i: usize) -> &'a [T] {
        let (ptr, len) = self.input_view(i).typed::<T>();
        // SAFETY: live and unwritten by the contract of `new`; `typed` checked the size, and every
        // bit pattern is a `T`.
        unsafe { std::slice::from_raw_parts(ptr, len) }
    }

    /// Input `i`, if the node has it.
    pub fn optional<T: Pod>(&self, i: usize) -> Option<&'a [T]> {
        self.has_input(i).then(|| self.input(i))
    }

    /// The number of elements of input `i`.
    pub fn input_len(&self, i: usize) -> usize {
        let view = self.input_view(i);
        view.bytes / view.dtype.size()
    }

    /// The number of elements of output `i`.
    pub fn output_len(&self, i: usize) -> usize {
        let view = &self.views[self.outputs[i] as usize];
        view.bytes / view.dtype.size()
    }

    /// The bytes of input `i`, whatever its element type.
    ///
    /// # Panics
    /// Where the kernel was built for an input that is not there.
    pub fn input_bytes(&self, i: usize) -> &'a [u8] {
        // SAFETY: as for `input`.
        unsafe { self.input_view(i).read() }
    }

    /// Input `i`, for the `Io` of a kernel within a kernel.
    pub(super) fn input_view_of(&self, i: usize) -> View {
        *self.input_view(i)
    }

    /// Output `i`, handed out for the `Io` of a kernel within a kernel.
    pub(super) fn take_view(&mut self, i: usize) -> View {
        *self.take(i)
    }

    fn take(&mut self, i: usize) -> &'a View {
        assert!(self.taken & (1 << i) == 0, "output {i} is taken twice");
        self.taken |= 1 << i;
        &self.views[self.outputs[i] as usize]
    }

    /// The elements of output `i`, to be written; whatever they hold now is rubbish. `T` may be
    /// any type of the element's size.
    ///
    /// # Panics
    /// Where it was taken before, is not there, or has elements of another size.
    pub fn output<T: Pod>(&mut self, i: usize) -> &'a mut [T] {
        let (ptr, len) = self.take(i).typed::<T>();
        // SAFETY: live, exclusive by the contract of `new` and handed out once; `typed` checked
        // the size.
        unsafe { std::slice::from_raw_parts_mut(ptr, len) }
    }

    /// The bytes of output `i`, to be written; whatever they hold now is rubbish.
    ///
    /// # Panics
    /// Where it was taken before or is not there.
    pub fn output_bytes(&mut self, i: usize) -> &'a mut [u8] {
        let view = self.take(i);
        // SAFETY: as for `output`.
        unsafe { std::slice::from_raw_parts_mut(view.ptr, view.bytes) }
    }

    /// `len` elements of scratch memory, aligned to 64, with rubbish in them.
    ///
    /// # Panics
    /// Where it was taken before, or is more than the kernel asked for.
    pub fn scratch<T: Pod>(&mut self, len: usize) -> &'a mut [T] {
        assert!(self.taken & SCRATCH_TAKEN == 0, "scratch is taken twice");
        self.taken |= SCRATCH_TAKEN;
        assert!(
            len * size_of::<T>() <= self.scratch.1,
            "a kernel uses more scratch memory than it asked for"
        );
        // SAFETY: exclusive by the contract of `new`, handed out once, large enough, and the
        // buffer starts at a multiple of 64.
        unsafe { std::slice::from_raw_parts_mut(self.scratch.0.cast(), len) }
    }
}

//! The access of kernels to the memory of their tensors. The unsafety of sharing one arena among
//! all tensors is in this file alone.

use std::marker::PhantomData;

use bytemuck::Pod;
use kilim_core::memory::HostMemory;
use kilim_core::{DType, Result, Tensor};

use super::texts::Texts;
use super::widen::WideTensors;
use crate::work::CpuRun;

/// Where the bytes of one tensor are.
#[derive(Clone, Copy)]
pub struct View {
    ptr: *mut u8,
    bytes: usize,
    dtype: DType,
}

impl View {
    /// A view of a tensor that is only read. For strings, whose bytes are in a [`Texts`], there is none.
    ///
    /// # Errors
    /// `Limit` where memory for what is computed late is short.
    pub fn of(tensor: &Tensor) -> Result<View> {
        Ok(View::of_bytes(tensor.read()?, tensor.dtype()))
    }

    /// A view of bytes that are only read.
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

    /// A view of elements in host memory of the user's; `None` where the tensor is not there.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn of_users(tensor: &kilim_core::DeviceTensor) -> Option<View> {
        let (start, bytes) = kilim_core::backend::InHost::place(tensor)?;
        Some(View {
            ptr: start.as_ptr(),
            bytes,
            dtype: tensor.dtype,
        })
    }

    /// A view of all of an arena.
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

    /// A view of these bytes with another element type.
    pub fn with_dtype(self, dtype: DType) -> View {
        View { dtype, ..self }
    }

    /// # Safety
    /// The memory must live and nobody may write to it during `'a`.
    pub unsafe fn read<'a>(&self) -> &'a [u8] {
        // SAFETY: `ptr` and `bytes` came from a slice, which lives and is not written during `'a`.
        unsafe { std::slice::from_raw_parts(self.ptr, self.bytes) }
    }

    /// # Safety
    /// The memory must live, came from [`View::of_mut`], an arena or the user, and nobody else may touch it during `'a`.
    pub unsafe fn write<'a>(&self) -> &'a mut [u8] {
        // SAFETY: `ptr` and `bytes` came from a slice that may be written, and nobody else touches it during `'a`.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.bytes) }
    }

    fn elements(&self) -> usize {
        self.bytes / self.dtype.size()
    }

    /// The pointer and the number of elements, or of parts where the elements are complex numbers.
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

/// Which outputs of a node are handed out; made once for nodes of so many outputs.
pub struct Taken {
    words: Vec<u64>,
}

impl Taken {
    /// Room for nodes of at most `outputs` outputs.
    pub fn new(outputs: usize) -> Taken {
        Taken {
            words: vec![0; outputs.div_ceil(64)],
        }
    }

    /// Forgets what was taken of a node of `outputs` outputs.
    fn clear(&mut self, outputs: usize) {
        self.words[..outputs.div_ceil(64)].fill(0);
    }

    /// Marks output `i`; false where it was before.
    fn mark(&mut self, i: usize) -> bool {
        let (word, bit) = (&mut self.words[i / 64], 1 << (i % 64));
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }
}

/// Where the tensors of a node are.
#[derive(Clone, Copy)]
pub(super) enum Tensors<'a> {
    /// Indices into `views`.
    Listed {
        views: &'a [View],
        inputs: &'a [u32],
        outputs: &'a [u32],
    },
    /// The tensors of another node, some of them in another form.
    Widened {
        narrow: &'a Tensors<'a>,
        wide: WideTensors<'a>,
    },
}

impl Tensors<'_> {
    fn inputs(&self) -> usize {
        match self {
            Tensors::Listed { inputs, .. } => inputs.len(),
            Tensors::Widened { narrow, .. } => narrow.inputs(),
        }
    }

    fn outputs(&self) -> usize {
        match self {
            Tensors::Listed { outputs, .. } => outputs.len(),
            Tensors::Widened { narrow, .. } => narrow.outputs(),
        }
    }

    fn has_input(&self, i: usize) -> bool {
        match self {
            Tensors::Listed { inputs, .. } => inputs.get(i).is_some_and(|&v| v != ABSENT),
            Tensors::Widened { narrow, .. } => narrow.has_input(i),
        }
    }

    fn input(&self, i: usize) -> View {
        match self {
            Tensors::Listed { views, inputs, .. } => views[inputs[i] as usize],
            Tensors::Widened { narrow, wide } => wide.input(i).unwrap_or_else(|| narrow.input(i)),
        }
    }

    fn output(&self, i: usize) -> View {
        match self {
            Tensors::Listed { views, outputs, .. } => views[outputs[i] as usize],
            Tensors::Widened { narrow, wide } => wide.output(i).unwrap_or_else(|| narrow.output(i)),
        }
    }
}

/// The tensors of one node during a run, its scratch memory, and the threads it may use.
///
/// Outputs and the scratch memory are handed out once each, so that no two references to the same
/// bytes exist.
pub struct Io<'a> {
    tensors: Tensors<'a>,
    taken: &'a mut Taken,
    scratch: (*mut u8, usize),
    scratch_taken: bool,
    texts: &'a mut Texts,
    cpu: &'a CpuRun<'a>,
    memory: PhantomData<&'a mut [u8]>,
}

/// Where an [`Io`] finds the tensors of a node: indices into `views`, [`ABSENT`] for an optional input that is left
/// out.
#[derive(Clone, Copy)]
pub struct Listed<'a> {
    pub views: &'a [View],
    pub inputs: &'a [u32],
    pub outputs: &'a [u32],
}

/// Stands for an optional input that is left out in [`Listed::inputs`].
pub const ABSENT: u32 = u32::MAX;

impl<'a> Io<'a> {
    /// `taken` is for nodes of at least as many outputs.
    ///
    /// # Safety
    /// During `'a` all views of the inputs and outputs must be live and aligned for their element
    /// type; the outputs and `scratch` must not be accessed in any other way and overlap neither
    /// each other nor any input. The planner gives tensors that live at the same time disjoint
    /// places in the arena.
    pub unsafe fn new(
        Listed {
            views,
            inputs,
            outputs,
        }: Listed<'a>,
        taken: &'a mut Taken,
        scratch: &'a mut [u8],
        texts: &'a mut Texts,
        cpu: &'a CpuRun<'a>,
    ) -> Io<'a> {
        taken.clear(outputs.len());
        Io {
            tensors: Tensors::Listed {
                views,
                inputs,
                outputs,
            },
            taken,
            scratch: (scratch.as_mut_ptr(), scratch.len()),
            scratch_taken: false,
            texts,
            cpu,
            memory: PhantomData,
        }
    }

    /// The node with some tensors in another form, and with other scratch memory. All its outputs may be
    /// taken.
    ///
    /// # Safety
    /// Nobody holds an output of this `Io`; what `wide` gives is as [`Io::new`] asks for, and `scratch` overlaps none
    /// of it.
    pub(super) unsafe fn widened<'b>(
        &'b mut self,
        wide: WideTensors<'b>,
        scratch: &'b mut [u8],
    ) -> Io<'b> {
        self.taken.clear(self.tensors.outputs());
        Io {
            tensors: Tensors::Widened {
                narrow: &self.tensors,
                wide,
            },
            taken: self.taken,
            scratch: (scratch.as_mut_ptr(), scratch.len()),
            scratch_taken: false,
            texts: self.texts,
            cpu: self.cpu,
            memory: PhantomData,
        }
    }

    /// All outputs may be taken again.
    ///
    /// # Safety
    /// Nobody holds one.
    pub(super) unsafe fn give_back(&mut self) {
        self.taken.clear(self.tensors.outputs());
    }

    /// The worker that runs the kernel: with it a kernel cuts its work in pieces, and asks what may stop it.
    pub fn cpu(&self) -> &'a CpuRun<'a> {
        self.cpu
    }

    /// What the elements of string tensors stand for; they are read and written as `u32`.
    pub fn texts(&mut self) -> &mut Texts {
        self.texts
    }

    /// The number of inputs, those that are left out between others too.
    pub fn inputs(&self) -> usize {
        self.tensors.inputs()
    }

    /// Whether the node has input `i`.
    pub fn has_input(&self, i: usize) -> bool {
        self.tensors.has_input(i)
    }

    /// Whether the node has output `i`.
    pub fn has_output(&self, i: usize) -> bool {
        i < self.tensors.outputs()
    }

    /// The elements of input `i`. `T` may be any type of the element's size.
    ///
    /// # Panics
    /// Where the kernel was built for an input that is not there or has elements of another size.
    pub fn input<T: Pod>(&self, i: usize) -> &'a [T] {
        let (ptr, len) = self.tensors.input(i).typed::<T>();
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
        self.tensors.input(i).elements()
    }

    /// The number of elements of output `i`.
    pub fn output_len(&self, i: usize) -> usize {
        self.tensors.output(i).elements()
    }

    /// The bytes of input `i`, whatever its element type.
    ///
    /// # Panics
    /// Where the kernel was built for an input that is not there.
    pub fn input_bytes(&self, i: usize) -> &'a [u8] {
        // SAFETY: live and unwritten by the contract of `new`.
        unsafe { self.tensors.input(i).read() }
    }

    fn take(&mut self, i: usize) -> View {
        let view = self.tensors.output(i);
        assert!(self.taken.mark(i), "output {i} is taken twice");
        view
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
        // SAFETY: live, exclusive by the contract of `new` and handed out once.
        unsafe { view.write() }
    }

    /// The bytes of output `i`, which begin as a copy of the bytes of input `input`, as many. Nothing is copied where the output
    /// has got the memory of the input: the input is empty then ([`Kernel::writes_on`](super::Kernel::writes_on)).
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    ///
    /// # Panics
    /// Where the output was taken before or is not there, or the input has another number of bytes.
    pub fn output_on(&mut self, i: usize, input: usize) -> Result<&'a mut [u8]> {
        let (x, y) = (self.input_bytes(input), self.output_bytes(i));
        if !x.is_empty() {
            self.cpu.copy(x, y)?;
        }
        Ok(y)
    }

    /// `len` elements of scratch memory, aligned to 64, with rubbish in them.
    ///
    /// # Panics
    /// Where it was taken before, or is more than the kernel asked for.
    pub fn scratch<T: Pod>(&mut self, len: usize) -> &'a mut [T] {
        assert!(!self.scratch_taken, "scratch is taken twice");
        self.scratch_taken = true;
        let (ptr, have) = self.scratch;
        let fits = len.checked_mul(size_of::<T>()).is_some_and(|n| n <= have);
        assert!(fits, "a kernel uses more scratch memory than it asked for");
        // SAFETY: exclusive by the contract of `new`, handed out once, large enough, and the
        // buffer starts at a multiple of 64.
        unsafe { std::slice::from_raw_parts_mut(ptr.cast(), len) }
    }

    /// `len` elements of scratch memory for each thread, one thread's behind another's, for
    /// [`CpuRun::rows_with`].
    ///
    /// # Panics
    /// As [`Io::scratch`].
    pub fn thread_scratch<T: Pod>(&mut self, len: usize) -> &'a mut [T] {
        self.scratch(len.saturating_mul(self.cpu.threads()))
    }
}

#[cfg(test)]
mod tests {
    use super::Taken;

    #[test]
    fn outputs_are_taken_once_each_however_many_there_are() {
        for count in [1, 63, 64, 65, 70, 1000] {
            let mut taken = Taken::new(count);
            for _ in 0..2 {
                taken.clear(count);
                assert!((0..count).all(|i| taken.mark(i)), "{count}");
                assert!(!(0..count).any(|i| taken.mark(i)), "{count}");
            }
        }
    }
}

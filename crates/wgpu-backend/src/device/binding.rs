//! Parts of buffers that dispatches bind.

use std::sync::Arc;

use kilim_core::backend::{Location, StageTensors};
use kilim_core::ids::TensorIndex;
use kilim_core::{Error, ErrorCode, Result};

use crate::device::gpu::GpuBuffer;

/// The buffer behind a binding. The session's arena may be another buffer in the next run.
#[derive(Clone)]
enum Source {
    /// A tensor in the arena, which is no alias.
    Tensor(TensorIndex),
    /// What kernels use between their dispatches, in the arena behind all tensors.
    Scratch,
    Buffer(Arc<GpuBuffer>),
}

/// Where the arena and its tensors are now.
pub(crate) struct Places<'a> {
    pub arena: Option<&'a GpuBuffer>,
    pub tensors: &'a StageTensors,
    /// Where scratch begins in the arena, in bytes.
    pub scratch: u64,
    /// Tensors that have buffers beside the arena.
    pub own: &'a [(TensorIndex, &'a GpuBuffer)],
}

/// Part of a buffer that a dispatch binds.
#[derive(Clone)]
pub(crate) struct Binding {
    source: Source,
    /// In the buffer, or from where scratch begins; of a tensor, where it was in the arena when its kernel was made.
    offset: u64,
    pub bytes: u64,
    pub read_only: bool,
}

impl Binding {
    /// All of a buffer, to be read.
    pub fn whole(buffer: Arc<GpuBuffer>) -> Binding {
        let bytes = buffer.bytes;
        Binding::part(buffer, 0, bytes)
    }

    /// Bytes of a buffer, to be read.
    pub fn part(buffer: Arc<GpuBuffer>, offset: u64, bytes: u64) -> Binding {
        Binding {
            source: Source::Buffer(buffer),
            offset,
            bytes,
            read_only: true,
        }
    }

    /// This binding, to be read and written.
    pub fn written(self) -> Binding {
        Binding {
            read_only: false,
            ..self
        }
    }

    /// A tensor of `bytes` that is no alias and stands at `offset` in the arena, to be read and written.
    pub fn tensor(root: TensorIndex, offset: u64, bytes: u64) -> Binding {
        Binding {
            source: Source::Tensor(root),
            offset,
            bytes,
            read_only: false,
        }
    }

    /// Bytes of scratch, to be read and written.
    pub fn scratch(offset: u64, bytes: u64) -> Binding {
        Binding {
            source: Source::Scratch,
            offset,
            bytes,
            read_only: false,
        }
    }

    /// This binding, with buffer `to` in the place of buffer `from`.
    pub fn exchanged(&self, from: &Arc<GpuBuffer>, to: &Arc<GpuBuffer>) -> Binding {
        let mut binding = self.clone();
        if binding.is(from) {
            binding.source = Source::Buffer(to.clone());
        }
        binding
    }

    /// Whether it lies in this buffer.
    pub fn is(&self, buffer: &Arc<GpuBuffer>) -> bool {
        matches!(&self.source, Source::Buffer(own) if Arc::ptr_eq(own, buffer))
    }

    /// Whether it is a tensor, or what an alias of one has.
    pub fn is_tensor(&self, root: TensorIndex) -> bool {
        matches!(&self.source, Source::Tensor(own) if *own == root)
    }

    /// What a bind group takes.
    ///
    /// # Errors
    /// `State` where it lies in an arena and there is none.
    pub fn resource<'a>(&'a self, places: &Places<'a>) -> Result<wgpu::BindingResource<'a>> {
        let arena = || places.arena.ok_or_else(no_arena);
        let (buffer, offset) = match &self.source {
            Source::Buffer(buffer) => (&**buffer, self.offset),
            Source::Scratch => (arena()?, places.scratch + self.offset),
            Source::Tensor(root) => match places.own.iter().find(|(t, _)| t == root) {
                Some((_, own)) => (*own, 0),
                None => match places.tensors.location(*root) {
                    Location::Arena { offset } => (arena()?, offset as u64),
                    _ => return Err(no_arena()),
                },
            },
        };
        Ok(wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &buffer.raw,
            offset,
            size: std::num::NonZeroU64::new(self.bytes),
        }))
    }

    /// WebGPU forbids two bindings of one dispatch to overlap if either is written.
    pub fn clashes(&self, other: &Binding) -> bool {
        let same = match (&self.source, &other.source) {
            (Source::Tensor(_), Source::Tensor(_)) | (Source::Scratch, Source::Scratch) => true,
            (Source::Buffer(buffer), _) => other.is(buffer),
            _ => false,
        };
        same && !(self.read_only && other.read_only)
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

fn no_arena() -> Error {
    Error::new(ErrorCode::State, "the stage has no arena")
}

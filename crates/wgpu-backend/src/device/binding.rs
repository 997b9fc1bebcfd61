//! Parts of buffers that dispatches bind.

use std::sync::Arc;

use kilim_core::{Error, ErrorCode, Result};

use crate::device::gpu::GpuBuffer;

/// The buffer behind a binding.
#[derive(Clone)]
enum Source {
    /// The session's arena, which may be another buffer in the next run.
    Arena,
    Buffer(Arc<GpuBuffer>),
}

/// Part of a buffer that a dispatch binds.
#[derive(Clone)]
pub(crate) struct Binding {
    source: Source,
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

    /// Bytes of the arena, to be read and written.
    pub fn in_arena(offset: u64, bytes: u64) -> Binding {
        Binding {
            source: Source::Arena,
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

    /// What a bind group takes.
    pub fn resource<'a>(
        &'a self,
        arena: Option<&'a GpuBuffer>,
    ) -> Result<wgpu::BindingResource<'a>> {
        let buffer = match &self.source {
            Source::Buffer(buffer) => buffer,
            Source::Arena => arena.ok_or_else(no_arena)?,
        };
        Ok(wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &buffer.raw,
            offset: self.offset,
            size: std::num::NonZeroU64::new(self.bytes),
        }))
    }

    /// WebGPU forbids two bindings of one dispatch to overlap if either is written.
    pub fn clashes(&self, other: &Binding) -> bool {
        let same = match (&self.source, &other.source) {
            (Source::Arena, Source::Arena) => true,
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

//! The elements of tensors for kernels that take many types and any layout: a [`Codec`] reads and writes them as one of
//! four types, a [`Walk`] goes over several tensors with strides of their own.

mod codec;
mod walk;

pub use codec::{BLOCK, Class, Codec, Wide};
pub use walk::{Span, Walk, broadcast_strides, broadcast_strides_into, contiguous_strides};

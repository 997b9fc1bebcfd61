//! Bytes between host and device. On the device a `bool` is a `u32`, 64-bit integers are two words,
//! and everything else is as on the host.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use kilim_core::tensor::{AlignedBytes, byte_count, element_count};
use kilim_core::{DType, Error, ErrorCode, Result, Tensor};

use crate::gpu::{Gpu, GpuBuffer, lock};

/// Words of an element on the device; `None` for types that have no place there.
pub(crate) fn words(dtype: DType) -> Option<usize> {
    match dtype {
        DType::F32 | DType::I32 | DType::U32 | DType::Bool => Some(1),
        DType::I64 | DType::U64 => Some(2),
        _ => None,
    }
}

/// Whether tensors of this type can be on the device; those of half precision, two elements a
/// word, are only moved whole and converted.
pub(crate) fn holds(dtype: DType) -> bool {
    words(dtype).is_some() || dtype == DType::F16
}

/// Bytes of a tensor on the device.
pub(crate) fn device_bytes(dtype: DType, elements: usize) -> usize {
    match words(dtype) {
        Some(w) => elements.saturating_mul(4 * w),
        None => elements.saturating_mul(dtype.size()).next_multiple_of(4),
    }
}

/// A tensor's bytes as the device wants them.
pub(crate) fn to_device(tensor: &Tensor) -> Cow<'_, [u8]> {
    if tensor.dtype() != DType::Bool {
        return Cow::Borrowed(tensor.bytes());
    }
    let mut out = Vec::with_capacity(tensor.bytes().len() * 4);
    for &b in tensor.bytes() {
        out.extend_from_slice(&u32::from(b != 0).to_le_bytes());
    }
    Cow::Owned(out)
}

/// The inverse of [`to_device`].
pub(crate) fn from_device(dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
    if dtype != DType::Bool {
        // Half precision ends with a word that may be half full.
        let own = byte_count(dtype, shape)?.min(bytes.len());
        return Tensor::from_raw(dtype, shape, &bytes[..own]);
    }
    let mut out = AlignedBytes::zeroed(element_count(shape)?)?;
    for (o, word) in out.as_mut_slice().iter_mut().zip(bytes.chunks_exact(4)) {
        *o = u8::from(word != [0; 4]);
    }
    Tensor::from_bytes(dtype, shape, Arc::new(out))
}

/// What a callback of the device leaves for the future that waits for it.
struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
}

/// A future that a callback completes.
struct Completion<T>(Arc<Mutex<Slot<T>>>);

impl<T> Completion<T> {
    fn new() -> (Completion<T>, impl FnOnce(T)) {
        let slot = Arc::new(Mutex::new(Slot {
            value: None,
            waker: None,
        }));
        let give = slot.clone();
        let complete = move |value| {
            let mut slot = lock(&give);
            slot.value = Some(value);
            if let Some(waker) = slot.waker.take() {
                waker.wake();
            }
        };
        (Completion(slot), complete)
    }
}

impl<T> Future for Completion<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut slot = lock(&self.0);
        match slot.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Waits natively until everything submitted is done; in a browser the event loop does that.
pub(crate) fn drive(gpu: &Gpu) -> Result<()> {
    if cfg!(target_arch = "wasm32") {
        return Ok(());
    }
    gpu.device
        .poll(wgpu::PollType::wait_indefinitely())
        .map(|_| ())
        .map_err(|e| {
            Error::new(
                ErrorCode::Device,
                format!("waiting for the GPU failed: {e}"),
            )
        })
}

/// Resolves when everything submitted so far is done.
pub(crate) async fn idle(gpu: &Gpu) -> Result<()> {
    let (done, complete) = Completion::new();
    gpu.queue.on_submitted_work_done(move || complete(()));
    drive(gpu)?;
    done.await;
    gpu.check()
}

/// The first `bytes` of a mappable buffer, once the copies into it are done.
pub(crate) async fn map(gpu: &Gpu, staging: &GpuBuffer, bytes: u64) -> Result<Vec<u8>> {
    let bytes = bytes.max(4);
    let (done, complete) = Completion::new();
    staging
        .raw
        .map_async(wgpu::MapMode::Read, 0..bytes, complete);
    drive(gpu)?;
    let mapped = done.await;
    gpu.check()?;
    let failed = |e: String| {
        Error::new(
            ErrorCode::Device,
            format!("reading from the GPU failed: {e}"),
        )
    };
    mapped.map_err(|e| failed(e.to_string()))?;
    let view = staging
        .raw
        .get_mapped_range(0..bytes)
        .map_err(|e| failed(e.to_string()))?;
    let out = view.to_vec();
    drop(view);
    staging.raw.unmap();
    Ok(out)
}

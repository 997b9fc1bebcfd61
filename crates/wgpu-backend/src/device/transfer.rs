//! Waiting for the device, and reading what it made.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use kilim_core::{Error, ErrorCode, Result};

use crate::device::gpu::{Gpu, GpuBuffer, lock};

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

/// Submits what was written to buffers, and waits natively until it is there, so that the queue's copies of it go.
pub(crate) fn flush(gpu: &Gpu) -> Result<()> {
    gpu.queue.submit([]);
    drive(gpu)
}

/// Waits natively until everything submitted is done; in a browser the event loop does that.
pub(crate) fn drive(gpu: &Gpu) -> Result<()> {
    match cfg!(target_arch = "wasm32") {
        true => Ok(()),
        false => poll(gpu, wgpu::PollType::wait_indefinitely()),
    }
}

fn poll(gpu: &Gpu, what: wgpu::PollType) -> Result<()> {
    gpu.device.poll(what).map(|_| ()).map_err(|e| {
        Error::new(
            ErrorCode::Device,
            format!("waiting for the GPU failed: {e}"),
        )
    })
}

/// What was submitted up to some moment.
pub(crate) struct Submitted {
    done: Completion<()>,
    /// Natively nothing completes unless the device is polled.
    #[cfg(not(target_arch = "wasm32"))]
    index: wgpu::SubmissionIndex,
}

impl Submitted {
    /// What was submitted to the device so far, `index` last.
    pub fn new(gpu: &Gpu, index: wgpu::SubmissionIndex) -> Submitted {
        let (done, complete) = Completion::new();
        gpu.queue.on_submitted_work_done(move || complete(()));
        #[cfg(target_arch = "wasm32")]
        let _ = index;
        Submitted {
            done,
            #[cfg(not(target_arch = "wasm32"))]
            index,
        }
    }
}

/// Resolves when this and what was submitted before is done.
#[cfg_attr(
    target_arch = "wasm32",
    expect(unused_variables, reason = "a browser polls by itself")
)]
pub(crate) async fn finished(gpu: &Gpu, submitted: Submitted) -> Result<()> {
    #[cfg(not(target_arch = "wasm32"))]
    poll(
        gpu,
        wgpu::PollType::Wait {
            submission_index: Some(submitted.index),
            timeout: None,
        },
    )?;
    submitted.done.await;
    Ok(())
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

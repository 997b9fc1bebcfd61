//! How much work the device has in its queue. A run that takes long is submitted in slices, so that it
//! can be stopped between two of them and other users of the device get their turn.

use std::collections::VecDeque;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::ids::{KernelIndex, PerKernel};
use web_time::Instant;

use crate::device::gpu::Gpu;
use crate::device::transfer::{self, Submitted};

/// Seconds that one slice takes: a frame or two of a page that shares the device.
const SLICE: f64 = 0.03;
/// Slices in the queue: while one runs, the next is there.
const QUEUED: usize = 2;
/// How far the estimates of a device may be corrected, down or up.
const CORRECTION: f64 = 32.0;

/// Counts the work of one stage's runs.
pub(crate) struct Pace {
    /// Estimated seconds of each node.
    seconds: Arc<PerKernel<f64>>,
    /// Estimated seconds that were recorded since the last slice.
    recorded: f64,
    queue: VecDeque<Submitted>,
    /// When the last slice was done, if another was in the queue then.
    last_done: Option<Instant>,
    /// What an estimated second really takes.
    correction: f64,
}

impl Pace {
    /// `seconds` are estimates for each node.
    pub fn new(seconds: Arc<PerKernel<f64>>) -> Pace {
        Pace {
            seconds,
            recorded: 0.0,
            queue: VecDeque::new(),
            last_done: None,
            correction: 1.0,
        }
    }

    /// The pace of a replica of the stage.
    pub fn replica(&self) -> Pace {
        Pace {
            correction: self.correction,
            ..Pace::new(self.seconds.clone())
        }
    }

    /// Takes other estimates for some nodes.
    pub fn expect(&mut self, seconds: Vec<(KernelIndex, f64)>) {
        let own = Arc::make_mut(&mut self.seconds);
        for (node, seconds) in seconds {
            own[node] = seconds;
        }
    }

    /// Forgets what a run before has left.
    pub fn begin(&mut self) {
        self.recorded = 0.0;
        self.queue.clear();
        self.last_done = None;
    }

    /// Counts a node that is recorded. True where what is recorded makes a slice.
    pub fn record(&mut self, node: KernelIndex) -> bool {
        self.recorded += self.seconds[node];
        self.recorded * self.correction >= SLICE
    }

    /// Counts a slice that was submitted. True where the queue is full.
    pub fn submitted(&mut self, slice: Submitted) -> bool {
        self.recorded = 0.0;
        self.queue.push_back(slice);
        self.queue.len() >= QUEUED
    }

    /// Resolves when the queue has room for another slice.
    pub async fn wait_room(&mut self, gpu: &Gpu) -> Result<()> {
        while self.queue.len() >= QUEUED
            && let Some(first) = self.queue.pop_front()
        {
            transfer::finished(gpu, first).await?;
            let now = Instant::now();
            if let Some(before) = self.last_done.replace(now) {
                let taken = now.duration_since(before).as_secs_f64() / SLICE;
                let correction = self.correction * taken;
                self.correction = correction.clamp(1.0 / CORRECTION, CORRECTION);
            }
        }
        gpu.check()
    }
}

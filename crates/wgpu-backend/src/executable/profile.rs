//! Time of single nodes: timestamps where the device has them, else (natively) the clock around a
//! submission for each node.

use std::ops::Range;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::ids::{KernelIndex, PerKernel, each};

use crate::device::gpu::{Gpu, GpuBuffer};
use crate::device::pipelines::Pipeline;
use crate::device::transfer;
use crate::executable::Command;

/// Queries of one set: the most that WebGPU allows.
const QUERIES: usize = 4096;

enum Means {
    /// Two timestamps for each node.
    Timestamps(Vec<wgpu::QuerySet>),
    Clock(PerKernel<f64>),
}

pub(crate) struct Profiler {
    means: Means,
    /// For each node that launches something, its place among those.
    query: PerKernel<Option<usize>>,
    launching: usize,
}

/// Records the launches of one node.
pub(crate) type Record = fn(&Gpu, &mut wgpu::ComputePass, &[Command], &mut Option<*const Pipeline>);

impl Profiler {
    /// A profiler for nodes, each with whether it launches something.
    pub fn new(gpu: &Gpu, nodes: PerKernel<bool>) -> Profiler {
        let mut launching = 0;
        let query = nodes
            .iter()
            .map(|launches| {
                let at = launches.then_some(launching);
                launching += usize::from(at.is_some());
                at
            })
            .collect();
        let means = if gpu.timestamps {
            let counts = (0..launching).step_by(QUERIES / 2);
            Means::Timestamps(
                counts
                    .map(|start| {
                        gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                            label: Some("profile"),
                            ty: wgpu::QueryType::Timestamp,
                            count: (2 * (launching - start)).min(QUERIES) as u32,
                        })
                    })
                    .collect(),
            )
        } else {
            Means::Clock(vec![0.0; nodes.len()].into())
        };
        Profiler {
            means,
            query,
            launching,
        }
    }

    /// Records the nodes of `range`, each in a pass of its own.
    pub fn run(
        &mut self,
        gpu: &Gpu,
        encoder: &mut Option<wgpu::CommandEncoder>,
        range: Range<KernelIndex>,
        nodes: &PerKernel<Vec<Command>>,
        record: Record,
    ) -> Result<()> {
        for i in each(range) {
            let Some(query) = self.query[i] else { continue };
            match &mut self.means {
                Means::Timestamps(sets) => {
                    let first = (2 * query % QUERIES) as u32;
                    let encoder = encoder.get_or_insert_with(|| {
                        gpu.device.create_command_encoder(&Default::default())
                    });
                    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                        label: None,
                        timestamp_writes: Some(wgpu::ComputePassTimestampWrites {
                            query_set: &sets[2 * query / QUERIES],
                            beginning_of_pass_write_index: Some(first),
                            end_of_pass_write_index: Some(first + 1),
                        }),
                    });
                    record(gpu, &mut pass, &nodes[i], &mut None);
                }
                Means::Clock(seconds) => {
                    if let Some(before) = encoder.take() {
                        gpu.queue.submit([before.finish()]);
                    }
                    transfer::drive(gpu)?;
                    let mut own = gpu.device.create_command_encoder(&Default::default());
                    record(
                        gpu,
                        &mut own.begin_compute_pass(&Default::default()),
                        &nodes[i],
                        &mut None,
                    );
                    let start = clock();
                    gpu.queue.submit([own.finish()]);
                    transfer::drive(gpu)?;
                    seconds[i] = clock() - start;
                }
            }
        }
        Ok(())
    }

    /// Seconds of each node in the last run; zero for those that launch nothing.
    pub async fn seconds(&mut self, gpu: &Gpu) -> Result<PerKernel<f64>> {
        let sets = match &self.means {
            Means::Clock(seconds) => return Ok(seconds.clone()),
            Means::Timestamps(sets) => sets,
        };
        let period = f64::from(gpu.queue.get_timestamp_period()) * 1e-9;
        let mut ticks = Vec::with_capacity(self.launching);
        for (i, set) in sets.iter().enumerate() {
            let count = (2 * self.launching - i * QUERIES).min(QUERIES);
            let data = read(gpu, set, count as u32).await?;
            for pair in data.chunks_exact(16) {
                let at = |k: usize| {
                    let mut word = [0; 8];
                    word.copy_from_slice(&pair[k..k + 8]);
                    u64::from_le_bytes(word)
                };
                ticks.push(at(8).saturating_sub(at(0)));
            }
        }
        let of = |q: usize| ticks.get(q).copied().unwrap_or(0) as f64 * period;
        Ok(self.query.iter().map(|q| q.map_or(0.0, of)).collect())
    }
}

async fn read(gpu: &Gpu, set: &wgpu::QuerySet, count: u32) -> Result<Vec<u8>> {
    let bytes = u64::from(count) * 8;
    let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
    let resolved: Arc<GpuBuffer> = gpu.buffer("timestamps", bytes, usage)?;
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let staging = gpu.buffer("staging", bytes, usage)?;
    let mut encoder = gpu.device.create_command_encoder(&Default::default());
    encoder.resolve_query_set(set, 0..count, &resolved.raw, 0);
    encoder.copy_buffer_to_buffer(&resolved.raw, 0, &staging.raw, 0, bytes);
    gpu.queue.submit([encoder.finish()]);
    transfer::map(gpu, &staging, bytes).await
}

/// Seconds of a clock that only counts up.
#[cfg(not(target_arch = "wasm32"))]
fn clock() -> f64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Submissions cannot be waited for in a browser, so there is nothing to measure.
#[cfg(target_arch = "wasm32")]
fn clock() -> f64 {
    0.0
}

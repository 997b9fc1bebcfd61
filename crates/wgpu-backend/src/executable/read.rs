//! Results on their way to the host.

use std::ops::Range;

use kilim_core::ids::TensorIndex;
use kilim_core::memory::MemoryMode;
use kilim_core::{Result, Tensor};

use super::{WgpuExecutable, encoder};
use crate::device::faults;
use crate::device::storage;
use crate::device::transfer;

impl WgpuExecutable {
    /// The elements of tensors, which go through one staging buffer with the word for faults behind them;
    /// `InvalidValue` where a kernel has reported one.
    pub async fn read_back(&mut self, tensors: &[TensorIndex]) -> Result<Vec<Tensor>> {
        let ranges = self.staging_ranges(tensors)?;
        let results = ranges.last().map_or(0, |range| range.end);
        let data = match results > 0 || self.faults.possible() {
            true => self.staged(tensors, &ranges, results as u64).await?,
            false => {
                self.flush();
                self.gpu.check()?;
                Vec::new()
            }
        };
        self.faults.check(&self.gpu, &data[results..])?;
        let read = |(&t, range): (&TensorIndex, Range<usize>)| {
            let spec = &self.tensors.slot(t)?.spec;
            match &self.values[t] {
                Some(value) => value.reshaped(&spec.shape),
                None => storage::from_device(spec.dtype, &spec.shape, &data[range]),
            }
        };
        tensors.iter().zip(ranges).map(read).collect()
    }

    /// Where each tensor lies in the staging buffer, one behind the other; known ones take no bytes.
    fn staging_ranges(&self, tensors: &[TensorIndex]) -> Result<Vec<Range<usize>>> {
        let mut end = 0;
        let range = |&t: &TensorIndex| {
            let start = end;
            if self.values[t].is_none() {
                end += self.bytes(t)? as usize;
            }
            Ok(start..end)
        };
        tensors.iter().map(range).collect()
    }

    /// The bytes of the staging buffer: `results` of the tensors, then the word for faults where there may be any.
    async fn staged(
        &mut self,
        tensors: &[TensorIndex],
        ranges: &[Range<usize>],
        results: u64,
    ) -> Result<Vec<u8>> {
        let gpu = &self.gpu.clone();
        let possible = self.faults.possible();
        let total = results + if possible { faults::BYTES } else { 0 };
        let staging = match self.staging.take() {
            Some(s) if s.bytes >= total => s,
            _ => {
                let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
                gpu.buffer("staging", total, usage)?
            }
        };
        if results > 0 {
            for (&t, range) in tensors.iter().zip(ranges).filter(|(_, r)| !r.is_empty()) {
                let (buffer, offset) = self.place(t)?;
                let from = (&*buffer, offset);
                let to = (&*staging, range.start as u64);
                self.transfer(from, to, range.len() as u64);
            }
        }
        if possible {
            let word = &self.faults.buffer.raw;
            let encoder = encoder(gpu, &mut self.encoder);
            encoder.copy_buffer_to_buffer(word, 0, &staging.raw, results, faults::BYTES);
        }
        self.flush();
        let data = transfer::map(gpu, &staging, total).await?;
        if self.memory == MemoryMode::Normal {
            self.staging = Some(staging);
        }
        Ok(data)
    }
}

//! What a backend says of itself.

use serde::{Deserialize, Serialize};

use super::BackendConfig;
use crate::dtype::DType;
use crate::fact::Cost;
use crate::ids::BackendId;

/// How well a backend handles an element type; each grade includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Stored and moved.
    Storage,
    /// Computed with, perhaps in a wider type.
    Arithmetic,
    /// Computed with at the device's best speed.
    Fast,
}

/// Where a backend's tensors are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// In host memory: tensors of the user are read and written in place.
    Host,
    /// On a device: inputs are copied in, outputs are copied out.
    Device,
}

/// What the cost model knows of a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    pub flops_per_second: f64,
    pub bytes_per_second: f64,
    /// Seconds that starting one kernel costs.
    pub kernel_start: f64,
    /// Seconds that one transfer between host and device costs, whatever its size.
    pub transfer_start: f64,
    pub transfer_bytes_per_second: f64,
}

impl Speed {
    /// Seconds that a node of this cost takes, its start included.
    pub fn seconds(&self, cost: &Cost) -> f64 {
        let computing = cost.flops / self.flops_per_second;
        let moving = cost.bytes / self.bytes_per_second;
        self.kernel_start + computing.max(moving)
    }

    /// Whether every figure is one that a device can have.
    pub fn is_possible(&self) -> bool {
        let rates = [
            self.flops_per_second,
            self.bytes_per_second,
            self.transfer_bytes_per_second,
        ];
        let starts = [self.kernel_start, self.transfer_start];
        rates.iter().all(|r| r.is_finite() && *r > 0.0)
            && starts.iter().all(|s| s.is_finite() && *s >= 0.0)
    }
}

/// What a backend says of itself.
#[derive(Clone, Debug)]
pub struct Description {
    pub id: BackendId,
    /// The device, in words: adapter and driver, or instruction set and threads.
    pub device: String,
    pub memory: Memory,
    pub dtypes: Vec<(DType, Grade)>,
    /// Offsets of tensors in the arena are multiples of this.
    pub alignment: usize,
    /// The largest tensor that one kernel can bind.
    pub max_tensor_bytes: u64,
    /// The largest arena.
    pub max_arena_bytes: u64,
    pub speed: Speed,
    /// Whether the device is a CPU that plays a GPU, which is slower than computing on the CPU as it is. Where nobody names
    /// backends, such a one is left out.
    pub software: bool,
    pub config: BackendConfig,
}

impl Description {
    /// Names the device among others: a new driver is a new device.
    pub fn key(&self) -> String {
        format!("{}: {}", self.id, self.device)
    }

    /// How well an element type is served; `None` where it is not.
    pub fn grade(&self, dtype: DType) -> Option<Grade> {
        self.dtypes
            .iter()
            .find(|(d, _)| *d == dtype)
            .map(|(_, g)| *g)
    }

    /// Whether half precision is computed with at the device's best speed.
    pub fn f16(&self) -> bool {
        self.grade(DType::F16) >= Some(Grade::Fast)
    }
}

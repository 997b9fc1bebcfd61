//! The constants of the cost model, as they were measured.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::backend::{Description, Speed};

/// Measured speeds of devices, to be kept between processes. Without an entry a device is priced
/// by what its backend says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Speeds by [`Description::key`].
    devices: BTreeMap<String, Speed>,
}

impl Calibration {
    /// What was measured of a device. Entries that cannot be are ignored.
    pub fn speed(&self, device: &Description) -> Option<Speed> {
        let speed = self.devices.get(&device.key()).copied();
        speed.filter(Speed::is_possible)
    }

    /// Keeps what was measured of a device, instead of what was known.
    pub fn insert(&mut self, device: &Description, speed: Speed) {
        self.devices.insert(device.key(), speed);
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }
}

//! Who computes where nobody is named.

use kilim_core::backend::DeviceOptions;
use kilim_core::{BackendId, Result};

use crate::{LoadOptions, Runtime};

/// The backends of a session that names none, and those that it does without.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picked {
    /// In the order of preference.
    pub backends: Vec<BackendId>,
    /// Who is left out, and why: a sentence.
    pub skipped: Vec<(BackendId, String)>,
}

impl Runtime {
    /// The backends of a session that names none: of those that are built in the GPU first, then the ARM Compute Library
    /// where it is installed, then the CPU. Left out is whoever has no device on this machine, and a GPU that is played by a
    /// CPU, which the CPU's own backend outruns. A backend is meant, whatever its device is, where `options` ask for
    /// a device of it (`wgpu:device=TEXT`) or pin something to it.
    ///
    /// # Errors
    /// Those of [`Runtime::backend`] for a backend that is meant; and for the last one if all are left out.
    pub async fn pick(&self, options: &LoadOptions) -> Result<Picked> {
        let (mut picked, mut software, mut last) = (Picked::default(), Vec::new(), None);
        let mut configs = options.session.configs.clone();
        configs.rename(|id| self.resolve(id));
        let pins = options.session.pins.iter();
        for id in self.ids().into_iter().filter(crate::arm::by_default) {
            let pinned = pins.clone().any(|pin| self.resolve(&pin.backend) == id);
            let meant = pinned || configs.get(&id).device != DeviceOptions::default();
            match self.open(&id, options).await {
                Ok(backend) if meant || !backend.describe().software => picked.backends.push(id),
                Ok(backend) => {
                    let device = &backend.describe().device;
                    let reason = format!(
                        "{device} is no GPU but a CPU that plays one, slower than the backend `cpu`"
                    );
                    software.push(id.clone());
                    picked.skipped.push((id, reason));
                }
                Err(error) if meant => return Err(error),
                Err(error) => {
                    picked.skipped.push((id, error.sentence()));
                    last = Some(error);
                }
            }
        }
        if picked.backends.is_empty() {
            // A device that is slow is better than none.
            let slow = picked
                .skipped
                .iter()
                .position(|(id, _)| software.contains(id));
            match (slow, last) {
                (Some(at), _) => picked.backends.push(picked.skipped.remove(at).0),
                (None, Some(error)) => return Err(error),
                (None, None) => {}
            }
        }
        Ok(picked)
    }
}

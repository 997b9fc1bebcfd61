//! Stopping a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, ErrorCode, Result};

/// What may stop a run between two steps.
#[derive(Clone, Default)]
pub struct Interrupt {
    /// Set by the caller to abort.
    pub abort: Option<Arc<AtomicBool>>,
    /// The time by `clock` after which the run is over.
    pub deadline: Option<(fn() -> f64, f64)>,
}

impl Interrupt {
    /// `Aborted` if the run is to stop.
    pub fn check(&self) -> Result<()> {
        if self
            .abort
            .as_ref()
            .is_some_and(|a| a.load(Ordering::Relaxed))
        {
            return Err(Error::new(ErrorCode::Aborted, "the run was aborted"));
        }
        if let Some((clock, end)) = self.deadline
            && clock() > end
        {
            return Err(Error::new(ErrorCode::Aborted, "the run took too long"));
        }
        Ok(())
    }
}

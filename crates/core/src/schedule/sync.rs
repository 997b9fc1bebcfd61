//! The default scheduler.

use super::{Scheduler, StageRun};
use crate::error::Result;
use crate::threading::LocalFuture;

/// Runs one step after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncScheduler;

impl Scheduler for SyncScheduler {
    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            for index in 0..stage.steps.len() {
                stage.execute(index).await?;
            }
            Ok(())
        })
    }

    fn gives_way(&self) -> bool {
        true
    }
}

//! The order in which a library has the tasks of a stage done.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::Result;
use kilim_core::backend::{BackendId, LocalFuture};
use kilim_core::schedule::{Scheduler, StageRun, Step};
use kilim_plugin_abi as abi;

use crate::executable::PluginExecutable;
use crate::library::{Library, Message, check};

/// A [`Scheduler`] that asks a library.
pub struct PluginScheduler {
    id: BackendId,
    library: Arc<Library>,
}

impl PluginScheduler {
    /// The scheduler of a library; `None` where it has none.
    pub fn of(id: BackendId, library: &Arc<Library>) -> Option<PluginScheduler> {
        library.table.schedule.map(|_| PluginScheduler {
            id,
            library: library.clone(),
        })
    }

    fn task(&self, stage: &StageRun, step: &Step) -> abi::Task {
        let [own, other] = step.backends();
        let (kind, part) = match step {
            Step::Part { part, .. } => (abi::TASK_PART, part.0),
            Step::Permute { .. } => (abi::TASK_CROSS, 0),
        };
        let executable = stage.executables.get(own);
        let executable = executable.and_then(|e| {
            let executable: &dyn Any = &**e.as_ref()?;
            executable
                .downcast_ref::<PluginExecutable>()?
                .raw_of(&self.library)
        });
        abi::Task {
            kind,
            backend: own.0,
            to: other.0,
            part,
            executable: executable.unwrap_or(std::ptr::null_mut::<c_void>()),
        }
    }

    /// Asks the library.
    ///
    /// # Errors
    /// What the library says.
    fn order(&self, stage: &StageRun) -> Result<Vec<usize>> {
        let tasks: Vec<_> = stage.steps.iter().map(|s| self.task(stage, s)).collect();
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        let table = &self.library.table;
        let Some(schedule) = table.schedule else {
            return Ok(order);
        };
        let mut message = Message::new();
        // SAFETY: a function of the table; there are as many tasks, and as much room, as it is told.
        let status = unsafe {
            let (from, to) = (tasks.as_ptr(), order.as_mut_ptr());
            schedule(table.this, from, tasks.len(), to, message.raw())
        };
        let id = &self.id;
        check(status, &message, &format!("`{id}` did not order a stage"))?;
        Ok(order)
    }
}

impl Scheduler for PluginScheduler {
    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            let order = self.order(&stage)?;
            stage.execute_in(&order, &self.id).await
        })
    }

    fn overlaps(&self) -> bool {
        self.library.table.submit.is_some()
    }
}

//! The order in which a library has the tasks of a stage done.

use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

use kilim_core::backend::{BackendId, LocalFuture};
use kilim_core::ids::BackendIndex;
use kilim_core::schedule::{Scheduler, StageRun, Step};
use kilim_core::{Error, ErrorCode, Result};
use kilim_plugin_abi as abi;

use crate::executable::PluginExecutable;
use crate::library::{Library, Message, check};

/// A [`Scheduler`] that asks a library.
pub struct PluginScheduler {
    id: BackendId,
    library: Arc<Library>,
}

/// The backends that a step needs, which are one where it crosses nothing.
fn backends(step: &Step) -> [BackendIndex; 2] {
    match step {
        Step::Part { backend, .. } => [*backend; 2],
        Step::Permute { from, to, .. } => [*from, *to],
    }
}

/// What is wrong with an order of steps; `None` where each stands in it once, and those that share a backend as before.
fn fault(order: &[usize], steps: &[Step]) -> Option<String> {
    let mut done = vec![false; steps.len()];
    let mut last: Vec<(BackendIndex, usize)> = Vec::new();
    for &index in order {
        let Some(done) = done.get_mut(index) else {
            return Some(format!("there is no task {index}"));
        };
        if std::mem::replace(done, true) {
            return Some(format!("task {index} stands there twice"));
        }
        for backend in backends(&steps[index]) {
            match last.iter_mut().find(|(b, _)| *b == backend) {
                None => last.push((backend, index)),
                Some((_, before)) if *before > index => {
                    return Some(format!("task {before} stands before task {index}"));
                }
                Some((_, before)) => *before = index,
            }
        }
    }
    None
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
        let [backend, to] = backends(step).map(|b| b.0);
        let (kind, part) = match step {
            Step::Part { part, .. } => (abi::TASK_PART, part.0),
            Step::Permute { .. } => (abi::TASK_CROSS, 0),
        };
        let executable = stage.executables.get(backends(step)[0]);
        let executable = executable.and_then(|e| {
            let executable: &dyn Any = &**e.as_ref()?;
            executable
                .downcast_ref::<PluginExecutable>()?
                .raw_of(&self.library)
        });
        abi::Task {
            kind,
            backend,
            to,
            part,
            executable: executable.unwrap_or(std::ptr::null_mut::<c_void>()),
        }
    }

    /// Asks the library.
    ///
    /// # Errors
    /// What the library says; `State` where its order cannot be.
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
        match fault(&order, stage.steps) {
            None => Ok(order),
            Some(fault) => Err(Error::new(
                ErrorCode::State,
                format!("`{id}` puts the tasks of a stage into an order that cannot be"),
            )
            .with_expected("every task once, those that share a backend in their order")
            .with_got(fault)),
        }
    }
}

impl Scheduler for PluginScheduler {
    fn run<'a>(&'a self, mut stage: StageRun<'a>) -> LocalFuture<'a, Result<()>> {
        Box::pin(async move {
            for index in self.order(&stage)? {
                stage.execute(index).await?;
                // What the next tasks do not need goes on beside them.
                if let Step::Part { backend, .. } = stage.steps[index]
                    && let Some(executable) = &mut stage.executables[backend]
                {
                    executable.submit()?;
                }
            }
            Ok(())
        })
    }

    fn overlaps(&self) -> bool {
        self.library.table.submit.is_some()
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::ids::PartIndex;

    use super::*;

    #[test]
    fn an_order_keeps_that_of_each_backend() {
        let part = |backend, part| Step::Part {
            backend: BackendIndex(backend),
            part: PartIndex(part),
        };
        let cross = Step::Permute {
            from: BackendIndex(0),
            to: BackendIndex(1),
            pairs: Vec::new(),
        };
        let steps = [part(0, 0), part(1, 0), cross, part(1, 1)];
        assert_eq!(fault(&[1, 0, 2, 3], &steps), None);
        for wrong in [[0, 2, 1, 3], [0, 1, 3, 2], [0, 1, 1, 3], [0, 1, 2, 4]] {
            assert!(fault(&wrong, &steps).is_some(), "{wrong:?}");
        }
    }
}

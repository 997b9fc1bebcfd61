//! The order in which a guest has the tasks of a stage done.

use std::ffi::c_void;

use super::program::failed;
use super::{Opened, guarded, list};
use crate::guest::{Guest, Task};
use crate::{self as abi, Status};

/// What the interface says of a task.
fn task(told: &abi::Task) -> Task {
    let own = !told.executable.is_null();
    match told.kind {
        abi::TASK_PART => Task::Part {
            backend: told.backend,
            part: told.part,
            own,
        },
        _ => Task::Cross {
            from: told.backend,
            to: told.to,
            own,
        },
    }
}

pub unsafe extern "C" fn schedule<G: Guest>(
    this: *mut c_void,
    tasks: *const abi::Task,
    count: usize,
    order: *mut usize,
    error: *mut abi::Message,
) -> Status {
    guarded(error, || {
        // SAFETY: `this` is of `create`, and there are as many tasks as Kilim says.
        let (opened, tasks) = unsafe { (&*this.cast::<Opened<G>>(), list(tasks, count)) };
        let Some(scheduler) = opened.guest.scheduler() else {
            return Err(failed("the backend has no order any more"));
        };
        let tasks: Vec<Task> = tasks.iter().map(task).collect();
        let found = scheduler.order(&tasks).map_err(|f| (f, -1))?;
        if found.len() != count {
            let text = format!("an order of {} tasks where there are {count}", found.len());
            return Err(failed(&text));
        }
        // SAFETY: Kilim gave room for `count` indices.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), order, count) };
        Ok(())
    })
}

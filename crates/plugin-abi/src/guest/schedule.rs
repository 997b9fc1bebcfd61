//! The order of a stage.

use super::Result;

/// Says in which order the tasks of a stage are done. A scheduler that the user chose goes first.
pub trait Scheduler {
    /// The indices of all `tasks`, in the order in which they are done. Tasks that share a backend keep their order among
    /// themselves. Asked before every run of a stage.
    ///
    /// # Errors
    /// Whatever keeps the backend from an order; the run fails with it.
    fn order(&self, tasks: &[Task]) -> Result<Vec<usize>>;
}

/// One of the things that are to be done for a stage of the whole graph. Backends are told by their places in the session's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The steps of a part, on one backend.
    Part {
        backend: usize,
        part: usize,
        /// Whether the library's own executable computes.
        own: bool,
    },
    /// Tensors that go from one backend to another.
    Cross {
        from: usize,
        to: usize,
        /// Whether the library's own executable gives them.
        own: bool,
    },
}

impl Task {
    /// Whether the library's own executable computes, or gives tensors.
    pub fn is_own(&self) -> bool {
        match *self {
            Task::Part { own, .. } | Task::Cross { own, .. } => own,
        }
    }

    /// Whether both need one backend.
    pub fn shares_backend(&self, other: &Task) -> bool {
        let backends = |task: &Task| match *task {
            Task::Part { backend, .. } => [backend; 2],
            Task::Cross { from, to, .. } => [from, to],
        };
        let others = backends(other);
        backends(self).iter().any(|b| others.contains(b))
    }
}

//! What becomes of a stage that a backend takes node by node, and then cannot run as it was planned: where its
//! memory does not hold the tensors, or its kernels cannot be made. The stage is planned again without what the
//! backend has refused, and the nodes go to the next one. Each round refuses something that was not refused before.

use std::collections::HashMap;

use crate::error::{Error, ErrorCode};
use crate::graph::{NodeId, Refusal};
use crate::ids::{BackendIndex, IdMap};

/// Nodes that a backend does not run although it supports them one by one.
pub(in crate::session) type Refused = HashMap<(NodeId, BackendIndex), Refusal>;

/// Single nodes that a backend may refuse in one stage before all of them go elsewhere: each costs a round of planning.
const SINGLE: usize = 16;

/// Why a stage cannot be as it was planned.
pub(crate) struct Obstacle {
    error: Error,
    /// The backend that may be planned without, and the nodes that are in question; all of the stage where none is named.
    on: Option<(BackendIndex, Vec<NodeId>)>,
}

impl Obstacle {
    /// What `backend` said of `nodes`, which are all of its share of the stage where none is named.
    pub fn of(backend: BackendIndex, nodes: Vec<NodeId>, error: Error) -> Obstacle {
        Obstacle {
            on: is_of_backend(&error).then_some((backend, nodes)),
            error,
        }
    }

    /// An error that no other backend would spare.
    pub fn of_all(error: Error) -> Obstacle {
        Obstacle { error, on: None }
    }

    /// Whether the stage may be planned again without the backend.
    pub fn can_be_avoided(&self) -> bool {
        self.on.is_some()
    }

    /// What was said.
    pub fn error(self) -> Error {
        self.error
    }
}

/// Whether an error says what a backend cannot do, where another one may. The user's own limits hold for all of them.
fn is_of_backend(error: &Error) -> bool {
    matches!(error.code(), ErrorCode::Limit | ErrorCode::Unsupported) && error.limit().is_none()
}

/// What backends have refused while one stage was planned.
#[derive(Default)]
pub(in crate::session) struct Fallback {
    refused: Refused,
    /// What was said first: the error where no other backend takes the nodes.
    first: Option<Error>,
    /// How often each backend has refused single nodes.
    single: IdMap<BackendIndex, usize>,
}

impl Fallback {
    /// The nodes that are not offered to a backend again.
    pub fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Notes what is to be planned without. `stage` has all nodes of the stage. `last`: it is not planned again.
    ///
    /// # Errors
    /// What was said first, where nothing can be planned without that was not before.
    pub fn take(&mut self, obstacle: Obstacle, stage: &[NodeId], last: bool) -> Result<(), Error> {
        let Obstacle { error, on } = obstacle;
        let Some((backend, mut nodes)) = on.filter(|_| !last) else {
            return Err(match error.code() {
                ErrorCode::NoBackend => self.first.take().unwrap_or(error),
                _ => error,
            });
        };
        let single = self.single.entry(backend).or_default();
        *single += 1;
        if nodes.is_empty() || *single > SINGLE {
            nodes = stage.to_vec();
        }
        let refusal = Refusal::new(error.sentence());
        let known = self.refused.len();
        for node in nodes {
            let entry = self.refused.entry((node, backend));
            entry.or_insert_with(|| refusal.clone());
        }
        let first = self.first.get_or_insert(error);
        match self.refused.len() > known {
            true => Ok(()),
            false => Err(first.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn obstacle(backend: usize, nodes: &[usize]) -> Obstacle {
        let nodes = nodes.iter().copied().map(NodeId).collect();
        let error = Error::new(ErrorCode::Limit, format!("{backend} is full"));
        Obstacle::of(BackendIndex(backend), nodes, error)
    }

    #[test]
    fn what_was_refused_before_ends_it() {
        let stage: Vec<NodeId> = (0..100).map(NodeId).collect();
        let mut fallback = Fallback::default();
        fallback.take(obstacle(0, &[3]), &stage, false).unwrap();
        fallback.take(obstacle(1, &[3, 4]), &stage, false).unwrap();
        assert_eq!(fallback.refused().len(), 3);
        let error = fallback.take(obstacle(1, &[4]), &stage, false);
        assert_eq!(error.unwrap_err().message(), "0 is full");
        let error = fallback.take(obstacle(2, &[4]), &stage, true);
        assert_eq!(error.unwrap_err().message(), "2 is full");
    }

    #[test]
    fn a_backend_that_refuses_one_node_after_the_other_loses_all() {
        let stage: Vec<NodeId> = (0..100).map(NodeId).collect();
        let mut fallback = Fallback::default();
        for i in 0..=SINGLE {
            fallback.take(obstacle(0, &[i]), &stage, false).unwrap();
        }
        assert_eq!(fallback.refused().len(), 100);
        assert!(fallback.take(obstacle(0, &[]), &stage, false).is_err());
    }

    #[test]
    fn errors_of_the_users_and_of_devices_are_final() {
        let mut fallback = Fallback::default();
        let limit = crate::limits::Limits::exceeded("weight_bytes", "too much", 1, 2);
        let device = Error::new(ErrorCode::Device, "it is gone");
        for error in [limit, device] {
            let code = error.code();
            let obstacle = Obstacle::of(BackendIndex(0), Vec::new(), error);
            let error = fallback.take(obstacle, &[NodeId(0)], false).unwrap_err();
            assert_eq!(error.code(), code);
        }
        assert!(fallback.refused().is_empty());
    }
}

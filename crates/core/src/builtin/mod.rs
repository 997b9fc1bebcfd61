//! The backend that is always there. It alone runs control flow and carries tensors from one
//! backend to another; the tensors that take the user's inputs and hand out results are its own.

pub(crate) mod control;
pub(crate) mod permute;

use crate::backend::BackendId;

/// The id under which reports list what `builtin` does.
pub const BUILTIN: BackendId = BackendId::new("builtin");

//! Tensors that go from one backend to another between two steps.

use crate::error::{Error, ErrorCode, Result};
use crate::executable::Executable;
use crate::ids::{BackendIndex, PerBackend, TensorIndex};

/// Copies each pair's first tensor, of `from`, into its second, of `to`.
pub(super) async fn cross(
    executables: &mut PerBackend<Option<Box<dyn Executable>>>,
    from: BackendIndex,
    to: BackendIndex,
    pairs: &[(TensorIndex, TensorIndex)],
) -> Result<()> {
    let gone = || Error::new(ErrorCode::State, "a backend's part of the plan is gone");
    let sources: Vec<TensorIndex> = pairs.iter().map(|p| p.0).collect();
    let source = executables[from].as_mut().ok_or_else(gone)?;
    let tensors = source.read(&sources).await?;
    let target = executables[to].as_mut().ok_or_else(gone)?;
    for ((_, t), data) in pairs.iter().zip(&tensors) {
        target.write(*t, data)?;
    }
    Ok(())
}

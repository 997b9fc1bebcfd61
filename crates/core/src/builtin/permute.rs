//! Carries tensors between backends.

use crate::backend::{DataLayout, Executable};
use crate::error::{Error, ErrorCode, Result};

/// A tensor of an executable as a copy sees it.
pub struct StoredTensor<'a> {
    pub executable: &'a mut dyn Executable,
    pub tensor: usize,
    /// How the tensor is stored.
    pub layout: DataLayout,
}

/// Copies a tensor of shape `[N, C, …]` between two executables of any backends, from the one's
/// layout to the other's. Inside one executable, `Executable::copy` needs no way over the host.
///
/// # Errors
/// `Shape` where either side does not store such a tensor; what reading and writing say.
pub async fn copy(shape: &[usize], from: StoredTensor<'_>, to: StoredTensor<'_>) -> Result<()> {
    let gone = || Error::new(ErrorCode::State, "a tensor was not read");
    let read = [from.tensor];
    let tensor = from.executable.read(&read).await?.pop().ok_or_else(gone)?;
    let tensor = from.layout.convert(&tensor, shape, to.layout)?;
    to.executable.write(to.tensor, &tensor)
}

/// Copies each pair's first tensor, of `from`, into its second, of `to`.
pub(crate) async fn cross(
    executables: &mut [Option<Box<dyn Executable>>],
    from: usize,
    to: usize,
    pairs: &[(usize, usize)],
) -> Result<()> {
    let gone = || Error::new(ErrorCode::State, "a backend's part of the plan is gone");
    let sources: Vec<usize> = pairs.iter().map(|p| p.0).collect();
    let source = executables[from].as_mut().ok_or_else(gone)?;
    let tensors = source.read(&sources).await?;
    let target = executables[to].as_mut().ok_or_else(gone)?;
    for ((_, t), data) in pairs.iter().zip(&tensors) {
        target.write(*t, data)?;
    }
    Ok(())
}

//! Carries tensors between backends.

use crate::backend::DataLayout;
use crate::error::{Error, ErrorCode, Result};
use crate::executable::Executable;
use crate::ids::TensorIndex;

/// A tensor of an executable as a copy sees it.
pub struct StoredTensor<'a> {
    pub executable: &'a mut dyn Executable,
    pub tensor: TensorIndex,
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

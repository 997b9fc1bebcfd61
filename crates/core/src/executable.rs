//! A planned stage on a backend.

use std::any::Any;
use std::sync::Arc;

use crate::device_tensor::DeviceTensor;
use crate::error::{Error, ErrorCode, Result};
use crate::ids::{PartIndex, PerKernel, TensorIndex};
use crate::interrupt::Interrupt;
use crate::tensor::Tensor;
use crate::threading::{LocalFuture, MaybeSend};

/// How far [`Executable::run`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All kernels of the part have run or are recorded.
    Whole,
    /// The device's queue is full.
    Partly,
}

/// The tensors and kernels of one planned stage, by their indices in its [`crate::backend::StageSpec`].
pub trait Executable: Any + MaybeSend {
    /// Called before a run of the stage.
    fn execute_begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Gives a tensor its data from the host. For [`crate::backend::Memory::Host`] this shares the bytes.
    fn write(&mut self, tensor: TensorIndex, data: &Tensor) -> Result<()>;

    /// Whether [`Executable::import`] takes this tensor: it is on the executable's device. Others are read and written.
    fn takes(&self, data: &DeviceTensor) -> bool {
        let _ = data;
        false
    }

    /// Gives a tensor its data from a device tensor that this executable takes, without a way over the host.
    fn import(&mut self, tensor: TensorIndex, data: &DeviceTensor) -> Result<()> {
        let _ = (tensor, data);
        Err(Error::new(
            ErrorCode::State,
            "this backend has no device tensors",
        ))
    }

    /// Copies tensor `from` into tensor `to`, of the same element type and number of elements,
    /// without a way over the host.
    fn copy(&mut self, from: TensorIndex, to: TensorIndex) -> Result<()>;

    /// Runs the kernels of one part (see [`crate::backend::StageSpec::parts`]). On a device this may only record.
    ///
    /// A device that is given more work than it should have in its queue at once stops on the way and
    /// gives [`Progress::Partly`]; `run` is called again for the rest of the part when
    /// [`Executable::wait_room`] has resolved.
    ///
    /// # Errors
    /// `Aborted` where `interrupt` stops it, `InvalidValue` where the data is out of an operator's
    /// domain, `Device` where the device fails.
    fn run(&mut self, part: PartIndex, interrupt: &Interrupt) -> Result<Progress>;

    /// Leaves kernels out of every part from the next run on, until it is called again; `None` leaves none out. Called before
    /// [`Executable::set_profiling`]. What such a kernel reads may not be there, and what it writes is not read. False where the executable runs
    /// its parts whole: it is then given what all kernels of a part read.
    fn skip(&mut self, kernels: Option<Arc<PerKernel<bool>>>) -> bool {
        let _ = kernels;
        false
    }

    /// Resolves when the device can take the rest of a part.
    fn wait_room(&mut self) -> LocalFuture<'_, Result<()>> {
        self.wait_finish()
    }

    /// Starts whatever is only recorded, without waiting for it.
    fn submit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Resolves when everything submitted is done. A future that is polled once and dropped is a
    /// try.
    fn wait_finish(&mut self) -> LocalFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Brings tensors to the host; on a device everything recorded so far is submitted first.
    fn read<'a>(&'a mut self, tensors: &'a [TensorIndex]) -> LocalFuture<'a, Result<Vec<Tensor>>>;

    /// Takes a tensor out of the stage without a way over the host, so that another stage can
    /// [`Executable::import`] it. It has the elements that are there now, whatever the stage does afterwards; they
    /// may be read once the run of the stage has ended, or was submitted.
    fn export(&mut self, tensor: TensorIndex) -> Result<DeviceTensor> {
        let _ = tensor;
        Err(Error::new(
            ErrorCode::State,
            "this backend has no device tensors",
        ))
    }

    /// Has the elements of a tensor go into memory of the user's in this run, a tensor that this executable takes and that is
    /// of the same element type and shape: where they are computed, if that can be. They are there when everything that was
    /// submitted is done. Called before the parts of a run, and forgotten with its end. False where the tensor cannot go
    /// there, such as one that no kernel writes, or whose bytes go elsewhere already: it is then exported or read.
    ///
    /// # Errors
    /// `Shape` where the memory is for another tensor, `Device` where the device fails.
    #[cfg(not(target_arch = "wasm32"))]
    fn export_into(&mut self, tensor: TensorIndex, memory: &DeviceTensor) -> Result<bool> {
        let _ = (tensor, memory);
        Ok(false)
    }

    /// Called after a run of the stage, also one that has failed: whatever is still only recorded is
    /// submitted.
    fn execute_end(&mut self) -> Result<()> {
        Ok(())
    }

    /// Turns timing of single nodes on or off.
    fn set_profiling(&mut self, on: bool) {
        let _ = on;
    }

    /// Seconds that each node of [`crate::backend::StageSpec::nodes`] took in the last profiled run.
    fn profile(&mut self) -> LocalFuture<'_, Result<PerKernel<f64>>> {
        Box::pin(std::future::ready(Ok(PerKernel::new())))
    }

    /// Kernel launches of one run of the stage (dispatches on a GPU).
    fn launches(&self) -> usize;
}

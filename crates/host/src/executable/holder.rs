//! Who holds the bytes of a tensor.

use std::sync::Arc;

#[cfg(not(target_arch = "wasm32"))]
use kilim_core::DeviceTensor;
use kilim_core::tensor::AlignedBytes;
use kilim_core::{DType, Result, Tensor};

use crate::kernel::{Texts, View};

/// What the view of a tensor points into.
pub enum Holder {
    Arena,
    /// Constants, planned values, and inputs once they are written.
    Tensor(Tensor),
    /// Strings that are constants, planned values or written inputs; the view shows the numbers of their
    /// texts.
    Texts {
        value: Tensor,
        _numbers: AlignedBytes,
    },
    /// An input that was not written yet, a constant that kernels have packed, or an alias.
    Missing,
    /// Memory of the user's, for this run.
    #[cfg(not(target_arch = "wasm32"))]
    User(DeviceTensor),
    /// An output's own buffer, replaced when the user still has the one of the run before; `None` before a run.
    Output(Option<Arc<AlignedBytes>>),
}

/// Where the elements of a host tensor are, and what holds them.
pub fn held(value: Tensor, texts: &mut Texts) -> Result<(View, Holder)> {
    if value.dtype() != DType::String {
        return Ok((View::of(&value)?, Holder::Tensor(value)));
    }
    let numbers = texts.admit(&value)?;
    let view = View::of_bytes(numbers.as_slice(), DType::String);
    let holder = Holder::Texts {
        value,
        _numbers: numbers,
    };
    Ok((view, holder))
}

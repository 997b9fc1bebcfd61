//! How shaders see the elements of a type.

use kilim_core::DType;

use super::{Lowers, refuse};
use crate::device::storage::{self, scalar};
use crate::shaders::{Index, Moved, Moved4, Stored, Word};

/// The type in which elements of a dtype are moved without being looked at.
pub(crate) fn carrier(dtype: DType) -> Lowers<Moved> {
    match storage::words(dtype) {
        Some(1) => Ok(Moved::U32),
        Some(_) => Ok(Moved::Vec2u),
        None => refuse(format!("the GPU does not move single elements of {dtype}")),
    }
}

/// The type in which elements of a dtype are moved, four at once where they are words and `whole`; how many
/// of them are one unit.
pub(crate) fn carrier4(dtype: DType, whole: bool) -> Lowers<(Moved4, usize)> {
    Ok(match carrier(dtype)? {
        Moved::U32 if whole => (Moved4::Vec4u, 4),
        Moved::U32 => (Moved4::U32, 1),
        Moved::Vec2u => (Moved4::Vec2u, 1),
    })
}

/// How shaders read indices of a type.
pub(crate) fn index_type(dtype: DType) -> Lowers<Index> {
    match (dtype, scalar(dtype)) {
        (DType::I64, _) => Ok(Index::I64),
        (_, Some(scalar)) => Ok(match scalar.word {
            Word::F32 => Index::F32,
            Word::I32 => Index::I32,
            Word::U32 => Index::U32,
        }),
        _ => refuse(format!("indices of type {dtype} are not on the GPU")),
    }
}

impl Stored {
    /// The name in the classes of measured kernels.
    pub const fn name(self) -> &'static str {
        match self {
            Stored::F32 => "f32",
            Stored::F16 => "f16",
        }
    }
}

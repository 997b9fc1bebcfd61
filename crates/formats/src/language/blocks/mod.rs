//! The types of elements of ggml, and what blocks of packed numbers become.

mod fours;
mod gridded;
mod grids;
mod supers;
#[cfg(test)]
mod tests;
mod unpack;

use kilim_core::error::{Result, unsupported};
use kilim_core::tensor::element_count;
use kilim_core::{DType, Tensor};

use super::invalid;
use crate::build::OpTable;

pub use unpack::unpacked;

/// A type of elements.
#[derive(Debug)]
pub struct ElementType {
    pub name: &'static str,
    /// Numbers of a block, which stand in a row of the tensor.
    pub numbers: usize,
    /// Bytes of a block.
    pub bytes: usize,
    pub form: Form,
}

/// What elements are.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// Numbers that stand for themselves.
    Plain(DType),
    /// Blocks of packed numbers.
    Packed(&'static Packing),
    /// Nothing that Kilim reads.
    Other,
}

/// How the packed numbers of a block are read. A number `q` stands for `scale · q + offset`.
#[derive(Debug)]
pub struct Packing {
    /// Bits of a number as products take it: 2, 4 or 8.
    pub bits: usize,
    /// Numbers that share a scale.
    pub block: usize,
    /// Writes all numbers of a block. Where there are no offsets they are as much larger as the middle of their bits.
    pub numbers: fn(&[u8], &mut [u8]),
    pub scales: Scales,
}

/// Scales of a block, and offsets where it has any.
#[derive(Clone, Copy, Debug)]
pub enum Scales {
    Alone(fn(&[u8], &mut [f32])),
    /// Scales, then offsets.
    WithOffsets(fn(&[u8], &mut [f32], &mut [f32])),
}

const fn plain(name: &'static str, dtype: DType, bytes: usize) -> ElementType {
    ElementType {
        name,
        numbers: 1,
        bytes,
        form: Form::Plain(dtype),
    }
}

const fn packed(
    name: &'static str,
    [numbers, bytes]: [usize; 2],
    packing: &'static Packing,
) -> ElementType {
    ElementType {
        name,
        numbers,
        bytes,
        form: Form::Packed(packing),
    }
}

const fn other(name: &'static str, [numbers, bytes]: [usize; 2]) -> ElementType {
    ElementType {
        name,
        numbers,
        bytes,
        form: Form::Other,
    }
}

/// The types by their number in files, with the numbers and bytes of their blocks (`enum ggml_type` in `ggml/include/ggml.h`,
/// `ggml/src/ggml-common.h`).
static TYPES: OpTable<u32, ElementType> = OpTable(&[
    (0, plain("F32", DType::F32, 4)),
    (1, plain("F16", DType::F16, 2)),
    (2, packed("Q4_0", [32, 18], &fours::Q4_0)),
    (3, packed("Q4_1", [32, 20], &fours::Q4_1)),
    (6, packed("Q5_0", [32, 22], &fours::Q5_0)),
    (7, packed("Q5_1", [32, 24], &fours::Q5_1)),
    (8, packed("Q8_0", [32, 34], &fours::Q8_0)),
    (9, other("Q8_1", [32, 36])),
    (10, packed("Q2_K", [256, 84], &supers::Q2_K)),
    (11, packed("Q3_K", [256, 110], &supers::Q3_K)),
    (12, packed("Q4_K", [256, 144], &supers::Q4_K)),
    (13, packed("Q5_K", [256, 176], &supers::Q5_K)),
    (14, packed("Q6_K", [256, 210], &supers::Q6_K)),
    (15, other("Q8_K", [256, 292])),
    (16, packed("IQ2_XXS", [256, 66], &gridded::IQ2_XXS)),
    (17, packed("IQ2_XS", [256, 74], &gridded::IQ2_XS)),
    (18, packed("IQ3_XXS", [256, 98], &gridded::IQ3_XXS)),
    (19, packed("IQ1_S", [256, 50], &gridded::IQ1_S)),
    (20, packed("IQ4_NL", [32, 18], &fours::IQ4_NL)),
    (21, packed("IQ3_S", [256, 110], &gridded::IQ3_S)),
    (22, packed("IQ2_S", [256, 82], &gridded::IQ2_S)),
    (23, packed("IQ4_XS", [256, 136], &supers::IQ4_XS)),
    (24, plain("I8", DType::I8, 1)),
    (25, plain("I16", DType::I16, 2)),
    (26, plain("I32", DType::I32, 4)),
    (27, plain("I64", DType::I64, 8)),
    (28, plain("F64", DType::F64, 8)),
    (29, packed("IQ1_M", [256, 56], &gridded::IQ1_M)),
    (30, plain("BF16", DType::BF16, 2)),
    (34, packed("TQ1_0", [256, 54], &supers::TQ1_0)),
    (35, packed("TQ2_0", [256, 66], &supers::TQ2_0)),
    (39, packed("MXFP4", [32, 17], &fours::MXFP4)),
    (40, other("NVFP4", [64, 36])),
    (41, other("Q1_0", [128, 18])),
]);

/// The type that files give the number `number`.
///
/// # Errors
/// `Unsupported` where it is not known.
pub fn element_type(number: u32) -> Result<&'static ElementType> {
    let found = TYPES.find(&number);
    found.ok_or_else(|| unsupported(format!("elements of ggml's type number {number}")))
}

impl ElementType {
    /// The bytes of a tensor.
    ///
    /// # Errors
    /// `InvalidModel` where its rows are no whole blocks, `Limit` where it is too large.
    pub fn bytes_of(&self, shape: &[usize]) -> Result<usize> {
        let row = shape.last().copied().unwrap_or(1);
        if !row.is_multiple_of(self.numbers) {
            return Err(
                invalid(format!("rows of {} that are no whole blocks", self.name))
                    .with_expected(format!("a multiple of {}", self.numbers))
                    .with_got(row),
            );
        }
        let blocks = element_count(shape)? / self.numbers;
        let bytes = blocks.checked_mul(self.bytes);
        bytes.ok_or_else(|| invalid("a tensor is too large"))
    }

    /// The numbers of a tensor of `shape`, whose bytes are `raw`, where they stand for themselves.
    ///
    /// # Errors
    /// `Unsupported` where they are packed.
    pub fn plain(&self, raw: &Tensor, shape: &[usize]) -> Result<Tensor> {
        match self.form {
            Form::Plain(dtype) => raw.bytes_as(dtype, shape),
            _ => Err(unsupported(format!("elements of type {} here", self.name))),
        }
    }
}

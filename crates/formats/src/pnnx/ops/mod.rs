//! The operators by what PyTorch calls them, each with what brings it into the graph.

mod activation;
mod arrange;
mod attention;
mod conv;
mod data;
mod norm;
mod pad;
mod parts;
mod pool;
mod product;
mod recurrent;
mod reduce;
mod sample;
mod tables;

use kilim_core::error::{Error, Result, unsupported};
use kilim_core::graph::ValueId;

use super::import::Import;
use super::layer::Layer;
use super::numbers;
use super::value::Value;
use crate::build::{OpTable, unknown_operator};
use tables::TABLES;

/// What brings an operator into the graph.
#[derive(Clone, Copy)]
pub enum Row {
    /// One output.
    One(fn(&mut Import, &Layer) -> Result<ValueId>),
    /// Several outputs.
    Many(fn(&mut Import, &Layer) -> Result<Vec<ValueId>>),
    /// Outputs that need not be tensors.
    Values(fn(&mut Import, &Layer) -> Result<Vec<Value>>),
}

/// Operators that are known, with the reason why they cannot be run.
static REFUSED: OpTable<&str, &str> = OpTable(&[
    ("Tensor.index_put", "writing into a part of a tensor"),
    ("Tensor.slice_copy", "writing into a part of a tensor"),
    ("nn.quantized.Conv2d", "PyTorch's quantised modules"),
    ("nn.quantized.DeQuantize", "PyTorch's quantised modules"),
    ("nn.quantized.Linear", "PyTorch's quantised modules"),
    ("nn.quantized.Quantize", "PyTorch's quantised modules"),
    ("torch.complex", "complex numbers"),
    ("torch.dequantize", "PyTorch's quantised modules"),
    ("torch.imag", "complex numbers"),
    ("torch.istft", "sound of a spectrum"),
    ("torch.masked_select", "elements that depend on the data"),
    ("torch.nonzero", "places that depend on the data"),
    ("torch.normal", "numbers that are drawn"),
    ("torch.quantize_per_tensor", "PyTorch's quantised modules"),
    ("torch.rand", "numbers that are drawn"),
    ("torch.rand_like", "numbers that are drawn"),
    ("torch.randn", "numbers that are drawn"),
    ("torch.randn_like", "numbers that are drawn"),
    ("torch.real", "complex numbers"),
    ("torch.slice_scatter", "writing into a part of a tensor"),
    ("torch.stft", "the spectrum of sound"),
    ("torch.view_as_complex", "complex numbers"),
    ("torch.view_as_real", "complex numbers"),
    (
        "torchvision.ops.DeformConv2d",
        "a convolution at positions that another operator computes",
    ),
    (
        "torchvision.ops.deform_conv2d",
        "a convolution at positions that another operator computes",
    ),
    (
        "torchvision.ops.nms",
        "boxes that depend on the data; take the operands that it reads as outputs",
    ),
]);

/// What brings an operator into the graph.
pub fn find(kind: &str) -> Option<Row> {
    TABLES.iter().find_map(|table| table.find(kind)).copied()
}

/// Why an operator that no table of operators has is refused.
pub fn refusal(kind: &str) -> Error {
    match REFUSED.find(kind) {
        Some(why) => unsupported(*why),
        None => unknown_operator(),
    }
}

/// A function of one tensor that expressions have, too.
fn one_of(imp: &mut Import, layer: &Layer, name: &str) -> Result<ValueId> {
    numbers::unary(imp, name, &layer.x()?.into())
}

/// A function of two tensors or numbers that expressions have, too.
fn two_of(imp: &mut Import, layer: &Layer, name: &str) -> Result<ValueId> {
    layer.refuse("alpha", Value::Int(1), "a factor of the second operand")?;
    layer.refuse("rounding_mode", Value::None, "a division that is rounded")?;
    let missing = || super::invalid("an operand is missing");
    let a = layer.operand("input", 0).ok_or_else(missing)?;
    let b = layer.operand("other", 1).or_else(|| layer.arg("exponent"));
    numbers::binary(imp, name, &a, &b.ok_or_else(missing)?)
}

#[cfg(test)]
mod tests {
    use super::{REFUSED, TABLES};

    #[test]
    fn operators_are_sorted_and_unique() {
        for table in TABLES {
            assert_eq!(table.misplaced(), None);
        }
        assert_eq!(REFUSED.misplaced(), None);
    }
}

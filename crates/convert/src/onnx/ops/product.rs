//! Products, convolutions and pooling.

use kilim_core::error::Result;
use kilim_core::ops::AveragePool;

use super::Family;
use crate::onnx::form::{Form, MICROSOFT, Rule};
use crate::onnx::node::NodeForm;
use Rule::{As, Said, Told};
use kilim_formats::build::OpTable;

const PADDING: Rule = Said(
    "auto_pad",
    &[
        ("Explicit", "NOTSET"),
        ("SameLower", "SAME_LOWER"),
        ("SameUpper", "SAME_UPPER"),
        ("Valid", "VALID"),
    ],
);
const CONV: Form = Form::of(&[
    ("conv", Told),
    ("dilations", As("dilations")),
    ("groups", As("group")),
    ("output_padding", As("output_padding")),
    ("output_shape", As("output_shape")),
    ("padding", PADDING),
    ("padding.value", As("pads")),
    ("strides", As("strides")),
]);
const POOL: Form = Form::of(&[
    ("ceil_mode", As("ceil_mode")),
    ("column_major", As("storage_order")),
    ("count_include_pad", As("count_include_pad")),
    ("dilations", As("dilations")),
    ("kernel", As("kernel_shape")),
    ("p", As("p")),
    ("padding", PADDING),
    ("padding.value", As("pads")),
    ("strides", As("strides")),
    ("window", Told),
]);

pub static OPERATORS: Family = OpTable(&[
    ("AveragePool", POOL.also(average_pool)),
    (
        "Col2Im",
        Form::of(&[
            ("dilations", As("dilations")),
            ("pads", As("pads")),
            ("strides", As("strides")),
        ])
        .since(18),
    ),
    ("Conv", CONV),
    ("ConvInteger", CONV),
    ("ConvTranspose", CONV),
    (
        "DeformConv",
        Form::of(&[
            ("dilations", As("dilations")),
            ("groups", As("group")),
            ("offset_groups", As("offset_group")),
            ("pads", As("pads")),
            ("strides", As("strides")),
        ])
        .since(19),
    ),
    ("Det", Form::of(&[])),
    ("Einsum", Form::of(&[("equation", As("equation"))])),
    (
        "Gemm",
        Form::of(&[
            ("alpha", As("alpha")),
            ("beta", As("beta")),
            ("transpose_a", As("transA")),
            ("transpose_b", As("transB")),
        ]),
    ),
    ("LpPool", POOL.since(18)),
    ("MatMul", Form::of(&[])),
    ("MatMulInteger", Form::of(&[])),
    (
        "MatMulNBits",
        Form::of(&[
            ("bits", As("bits")),
            ("block", As("block_size")),
            ("int8", Told),
            ("k", As("K")),
            ("n", As("N")),
        ])
        .in_domain(MICROSOFT)
        .also(packed_product),
    ),
    ("MaxPool", POOL),
    ("MaxUnpool", UNPOOL),
    ("QLinearConv", CONV),
    ("QLinearMatMul", Form::of(&[])),
]);

/// The parts of the window that ONNX has; the output is as large as its input says.
const UNPOOL: Form = Form::of(&[
    ("dilations", Told),
    ("kernel", As("kernel_shape")),
    ("padding", Told),
    ("padding.value", As("pads")),
    ("strides", As("strides")),
    ("window", Told),
]);

/// Dilations came with operator set 19.
fn average_pool(n: &mut NodeForm) -> Result<()> {
    if n.op::<AveragePool>()?
        .window
        .dilations
        .iter()
        .any(|&d| d > 1)
    {
        n.needs(19);
    } else if n.opset < 19 {
        n.attributes.retain(|(name, _)| name != "dilations");
    }
    Ok(())
}

/// Accuracy level 4 of onnxruntime is a product of `int8` with 8 bits of the left factor.
fn packed_product(n: &mut NodeForm) -> Result<()> {
    if n.op::<kilim_core::ops::MatMulNBits>()?.int8 {
        n.set_int("accuracy_level", 4);
    }
    Ok(())
}

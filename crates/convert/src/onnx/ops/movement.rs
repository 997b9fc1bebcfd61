//! Operators that move elements, and those that make them from shapes.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{Attribute, ConstantOfShape, Pad, PadMode};

use super::Family;
use crate::onnx::form::{Form, Rule};
use crate::onnx::node::NodeForm;
use Rule::{As, Said, Told, Type};
use kilim_formats::build::OpTable;

const NONE: Form = Form::of(&[]);
const AXIS: Form = Form::of(&[("axis", As("axis"))]);
const BLOCKS: Form = Form::of(&[
    ("block", As("blocksize")),
    ("crd", Said("mode", &[("0", "DCR"), ("1", "CRD")])),
]);

pub static OPERATORS: Family = OpTable(&[
    ("CenterCropPad", Form::of(&[("axes", As("axes"))]).since(18)),
    ("Concat", AXIS),
    (
        "ConstantOfShape",
        Form::of(&[("value", Told)]).also(constant_of_shape),
    ),
    ("DepthToSpace", BLOCKS),
    ("Expand", NONE),
    (
        "EyeLike",
        Form::of(&[("dtype", Type("dtype")), ("k", As("k"))]),
    ),
    ("Flatten", AXIS),
    ("Pad", Form::of(&[("mode", Told)]).also(pad)),
    ("Range", NONE),
    ("Reshape", Form::of(&[("allow_zero", As("allowzero"))])),
    (
        "ReverseSequence",
        Form::of(&[
            ("batch_axis", As("batch_axis")),
            ("time_axis", As("time_axis")),
        ]),
    ),
    (
        "Shape",
        Form::of(&[("end", As("end")), ("start", As("start"))]),
    ),
    ("Size", NONE),
    ("Slice", NONE),
    ("SpaceToDepth", BLOCKS),
    ("Split", AXIS.also(split)),
    ("Squeeze", NONE),
    ("Tile", NONE),
    ("Transpose", Form::of(&[("perm", As("perm"))])),
    ("Trilu", Form::of(&[("upper", As("upper"))])),
    ("Unsqueeze", NONE),
]);

/// The value is a vector of one element.
fn constant_of_shape(n: &mut NodeForm) -> Result<()> {
    let value = n.op::<ConstantOfShape>()?.value.reshaped(&[1])?;
    n.set("value", Attribute::Tensor(value));
    Ok(())
}

fn pad(n: &mut NodeForm) -> Result<()> {
    let mode = match n.op::<Pad>()?.mode {
        PadMode::Constant => "constant",
        PadMode::Reflect => "reflect",
        PadMode::Edge => "edge",
        PadMode::Wrap => {
            n.needs(19);
            "wrap"
        }
        PadMode::Symmetric => {
            return Err(unsupported("a border that repeats the outermost element"));
        }
    };
    if n.has(3) {
        n.needs(18);
    }
    n.set_text("mode", mode);
    Ok(())
}

/// A number of equal parts is said in operator set 18 and later ones.
fn split(n: &mut NodeForm) -> Result<()> {
    if n.opset >= 18 && !n.has(1) {
        n.set_int("num_outputs", n.outputs.len() as i64);
    }
    Ok(())
}

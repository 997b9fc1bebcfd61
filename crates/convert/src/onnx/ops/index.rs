//! Operators that read or write by index, sort, select and reduce.

use kilim_core::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::ops::ScatterReduction;
use kilim_core::ops::{ArgReduce, Attribute, Reduce, ReduceKind, ScatterElements, ScatterNd};

use super::Family;
use crate::onnx::form::{Form, Rule};
use crate::onnx::node::NodeForm;
use Rule::{As, Said, Told};
use kilim_formats::build::OpTable;

const NONE: Form = Form::of(&[]);
const AXIS: Form = Form::of(&[("axis", As("axis"))]);
const REDUCTION: Form = Form::of(&[
    ("keep_dims", As("keepdims")),
    ("kind", Told),
    ("noop_with_empty_axes", As("noop_with_empty_axes")),
])
.also(reduction);
const LARGEST: Form = Form::of(&[
    ("axis", As("axis")),
    ("keep_dims", As("keepdims")),
    ("max", Told),
    ("output", Told),
    ("select_last", As("select_last_index")),
])
.also(|n| match n.op::<ArgReduce>()?.output {
    DType::I64 => Ok(()),
    other => Err(unsupported(format!("places as {other}"))),
});
const RUNNING: Form = Form::of(&[
    ("exclusive", As("exclusive")),
    ("product", Told),
    ("reverse", As("reverse")),
]);
const SOFTMAX: Form = Form::of(&[("axis", As("axis")), ("beta", Told), ("kind", Told)]);

pub static OPERATORS: Family = OpTable(&[
    ("ArgMax", LARGEST),
    ("ArgMin", LARGEST),
    ("Compress", AXIS),
    ("CumProd", RUNNING.since(26)),
    ("CumSum", RUNNING),
    ("Gather", AXIS),
    ("GatherElements", AXIS),
    ("GatherND", Form::of(&[("batch_dims", As("batch_dims"))])),
    ("Hardmax", SOFTMAX),
    ("LogSoftmax", SOFTMAX),
    (
        "NonMaxSuppression",
        Form::of(&[("center_point_box", As("center_point_box"))]),
    ),
    ("NonZero", NONE),
    ("OneHot", AXIS),
    ("ReduceL1", REDUCTION),
    ("ReduceL2", REDUCTION),
    ("ReduceLogSum", REDUCTION),
    ("ReduceLogSumExp", REDUCTION),
    ("ReduceMax", REDUCTION),
    ("ReduceMean", REDUCTION),
    ("ReduceMin", REDUCTION),
    ("ReduceProd", REDUCTION),
    ("ReduceSum", REDUCTION),
    ("ReduceSumSquare", REDUCTION),
    (
        "ScatterElements",
        Form::of(&[("axis", As("axis")), ("reduction", Told)])
            .also(|n| scatter(n, n.op::<ScatterElements>()?.reduction)),
    ),
    (
        "ScatterND",
        Form::of(&[("reduction", Told)]).also(|n| scatter(n, n.op::<ScatterNd>()?.reduction)),
    ),
    ("Softmax", SOFTMAX),
    (
        "TensorScatter",
        Form::of(&[
            ("axis", As("axis")),
            (
                "circular",
                Said("mode", &[("0", "linear"), ("1", "circular")]),
            ),
        ])
        .since(24),
    ),
    (
        "TopK",
        Form::of(&[
            ("axis", As("axis")),
            ("largest", As("largest")),
            ("sorted", As("sorted")),
        ]),
    ),
    (
        "Unique",
        Form::of(&[("axis", As("axis")), ("sorted", As("sorted"))]),
    ),
]);

/// Before operator set 18 only sums are given their axes as an input.
fn reduction(n: &mut NodeForm) -> Result<()> {
    let op = n.op::<Reduce>()?;
    let extreme = matches!(op.kind, ReduceKind::Max | ReduceKind::Min);
    if extreme && n.dtype(0) == Some(DType::Bool) {
        n.needs(20);
    }
    if n.opset >= 18 || op.kind == ReduceKind::Sum {
        return Ok(());
    }
    if !n.has(1) && !op.noop_with_empty_axes {
        n.attributes
            .retain(|(name, _)| name != "noop_with_empty_axes");
        return Ok(());
    }
    let axes = n.constant(1).map(|axes| axes.to_i64s()).transpose()?;
    match axes.filter(|axes| !axes.is_empty()) {
        Some(axes) => {
            n.set("axes", Attribute::Ints(axes));
            n.attributes
                .retain(|(name, _)| name != "noop_with_empty_axes");
            n.without_inputs(1);
        }
        None => n.needs(18),
    }
    Ok(())
}

fn scatter(n: &mut NodeForm, reduction: ScatterReduction) -> Result<()> {
    let word = match reduction {
        ScatterReduction::None => "none",
        ScatterReduction::Add => "add",
        ScatterReduction::Mul => "mul",
        ScatterReduction::Max => "max",
        ScatterReduction::Min => "min",
    };
    if matches!(reduction, ScatterReduction::Max | ScatterReduction::Min) {
        n.needs(18);
    }
    n.set_text("reduction", word);
    Ok(())
}

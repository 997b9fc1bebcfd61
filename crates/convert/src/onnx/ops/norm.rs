//! Normalisations.

use super::Family;
use crate::onnx::form::{Form, Rule};
use Rule::As;
use kilim_formats::build::OpTable;

const EPSILON: Form = Form::of(&[("epsilon", As("epsilon"))]);
const ALONG: Form = Form::of(&[("axis", As("axis")), ("epsilon", As("epsilon"))]);

pub static OPERATORS: Family = OpTable(&[
    ("BatchNormalization", EPSILON),
    (
        "GroupNormalization",
        Form::of(&[("epsilon", As("epsilon")), ("groups", As("num_groups"))]).since(21),
    ),
    ("InstanceNormalization", EPSILON),
    (
        "LRN",
        Form::of(&[
            ("alpha", As("alpha")),
            ("beta", As("beta")),
            ("bias", As("bias")),
            ("size", As("size")),
        ]),
    ),
    ("LayerNormalization", ALONG),
    (
        "LpNormalization",
        Form::of(&[("axis", As("axis")), ("p", As("p"))]),
    ),
    (
        "MeanVarianceNormalization",
        Form::of(&[("axes", As("axes"))]),
    ),
    ("RMSNormalization", ALONG.since(23)),
]);

//! Inference against what the ONNX specification says. Facts are written as they are displayed.

mod all;
mod attributes;
mod control;
mod forms;
mod generate;
mod identity;
mod index;
mod layers;
mod movement;
mod pointwise;
mod products;
mod quant;
mod robust;
mod signatures;
mod text;
mod windows;

use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{ErrorCode, Result};
use crate::graph::Graph;
use crate::interrupt::{Interrupt, Meter};
use crate::ops::*;
use crate::tensor::Tensor;

/// An input whose value is not known: `float32 n,3,?`; `float32 …` is one of unknown rank, `-` one
/// that is left out.
fn unknown(text: &str) -> Option<InputFact> {
    if text == "-" {
        return None;
    }
    let (dtype, dims) = text.split_once(' ').unwrap_or((text, ""));
    let dim = |d: &str| match d.trim() {
        "?" => Dim::Unknown,
        d => d.parse().map_or_else(|_| Dim::Symbol(d.into()), Dim::Known),
    };
    let shape = match dims {
        "…" => None,
        "" => Some(Shape::default()),
        dims => Some(Shape(dims.split(',').map(dim).collect())),
    };
    Some(InputFact {
        fact: Fact {
            dtype: DType::from_name(dtype),
            shape,
            ..Fact::default()
        },
        value: None,
    })
}

/// An input whose value is known.
fn known(tensor: Tensor) -> Option<InputFact> {
    Some(InputFact {
        fact: Fact::of(&tensor),
        value: Some(tensor),
    })
}

/// A vector of `int64`.
fn ints(values: &[i64]) -> Option<InputFact> {
    known(Tensor::from_slice(&[values.len()], values).unwrap())
}

static NEVER: Interrupt = Interrupt::NEVER;

/// A meter that nothing stops.
fn meter() -> Meter<'static> {
    Meter::new(&NEVER)
}

fn int(value: i64) -> Option<InputFact> {
    known(Tensor::scalar(value).unwrap())
}

/// A vector of `float32`.
fn floats(values: &[f32]) -> Option<InputFact> {
    known(Tensor::from_slice(&[values.len()], values).unwrap())
}

fn try_infer(op: &dyn Operator, outputs: usize, inputs: &[Option<InputFact>]) -> Result<Vec<Fact>> {
    op.infer(&InferContext::new(inputs, outputs))
}

/// The facts of all outputs, separated by spaces without a space inside.
fn infer_all(op: impl Operator, outputs: usize, inputs: &[Option<InputFact>]) -> String {
    let facts = try_infer(&op, outputs, inputs).unwrap();
    assert_eq!(facts.len(), outputs, "{}", op.name());
    let texts: Vec<String> = facts
        .iter()
        .map(|f| f.to_string().replace(", ", ","))
        .collect();
    texts.join(" ")
}

/// The fact of the only output.
fn infer(op: impl Operator, inputs: &[Option<InputFact>]) -> String {
    infer_all(op, 1, inputs)
}

/// The fact of the only output where elements of input `i` are known: `n,?,4`.
fn infer_from(op: impl Operator, inputs: &[Option<InputFact>], i: usize, list: &str) -> String {
    let mut elements = vec![None; inputs.len()];
    let shape = unknown(&format!("int64 {list}")).unwrap().fact.shape;
    elements[i] = shape.map(|s| s.0);
    let ctx = InferContext::new(inputs, 1);
    let facts = op.infer_with_elements(&ctx, &elements).unwrap();
    facts[0].to_string().replace(", ", ",")
}

/// The code of the error that these inputs are answered with.
fn refuse(op: impl Operator, inputs: &[Option<InputFact>]) -> ErrorCode {
    match try_infer(&op, 1, inputs) {
        Err(e) => e.code(),
        Ok(facts) => panic!("{:?} gave {facts:?}", &op as &dyn Operator),
    }
}

#[test]
fn axes_are_brought_into_range() {
    assert_eq!(normalize_axes(&[-1, 0], 3).unwrap(), [2, 0]);
    assert_eq!(normalize_axis(3, 3).unwrap_err().code(), ErrorCode::Shape);
    assert_eq!(normalize_axis(-4, 3).unwrap_err().code(), ErrorCode::Shape);
    assert!(normalize_axes(&[1, -2], 3).is_err());
    assert!(normalize_axis(i64::MIN, 3).is_err());
}

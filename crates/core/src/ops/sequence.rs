//! Values that are not one tensor: sequences and optional values. `builtin` runs these operators
//! between stages, on the tensors' handles.

use super::axes::normalize_axis;
use super::rules::{INDICES, InputValues};
use crate::Reflect;
use crate::datum::{Form, Kind};
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, dtype_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};

/// A sequence of its inputs, in order; without any an empty one.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SequenceConstruct;

/// The tensor at a position. Inputs: sequence, position (an integer scalar, negative from the end).
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SequenceAt;

/// Inputs: sequence, tensor, optional position; without it the tensor comes last.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SequenceInsert;

/// Inputs: sequence, optional position; without it the last tensor goes.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SequenceErase;

/// The number of tensors, an `int64` scalar.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SequenceLength;

/// Cuts a tensor along an axis. Inputs: tensor, optional sizes: a scalar is the size of every part
/// but perhaps the last, a vector has the size of each part. Without sizes, parts of one, which lose
/// the axis unless `keep_dims`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct SplitToSequence {
    pub axis: i64,
    pub keep_dims: bool,
}

/// Joins the tensors of a sequence along an axis, a new one where `new_axis`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ConcatFromSequence {
    pub axis: i64,
    pub new_axis: bool,
}

/// An optional value of `kind` and `dtype` that is not there. No inputs.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct OptionalAbsent {
    pub kind: Kind,
    pub dtype: Option<DType>,
}

/// What is in an optional value; an error where nothing is.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct OptionalGetElement;

/// Whether there is something in an optional value: a `bool` scalar.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct OptionalHasElement;

impl InferContext<'_> {
    /// Input `i`, which must be of this form.
    fn formed(&self, i: usize, form: Form) -> Result<&Fact> {
        let fact = self.fact(i)?;
        if fact.kind != Kind::from(form) {
            return Err(dtype_error(format!("input {i} has another form"))
                .with_expected(Kind::from(form))
                .with_got(fact.kind));
        }
        Ok(fact)
    }
}

/// What holds of each tensor of two facts.
pub(crate) fn join(a: &Fact, b: &Fact) -> Fact {
    let shape = match (&a.shape, &b.shape) {
        (Some(a), Some(b)) if a.rank() == b.rank() => {
            let dims = a.0.iter().zip(&b.0);
            let dim = |(a, b): (&Dim, &Dim)| if a == b { a.clone() } else { Dim::Unknown };
            Some(Shape(dims.map(dim).collect()))
        }
        _ => None,
    };
    Fact {
        dtype: a.dtype.or(b.dtype),
        shape,
        kind: a.kind,
    }
}

fn sequence_of(element: Fact) -> Fact {
    Fact {
        kind: Form::Sequence.into(),
        ..element
    }
}

fn element_of(sequence: &Fact) -> Fact {
    Fact {
        kind: Kind::default(),
        ..sequence.clone()
    }
}

impl Operator for SequenceConstruct {
    fn name(&self) -> &'static str {
        "SequenceConstruct"
    }

    signature! { (list inputs) -> (sequence) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.common_type(0..ctx.inputs.len())?;
        let mut all: Option<Fact> = None;
        for i in 0..ctx.inputs.len() {
            let one = ctx.formed(i, Form::Tensor)?;
            all = Some(all.map_or_else(|| one.clone(), |all| join(&all, one)));
        }
        Ok(vec![sequence_of(all.unwrap_or_default())])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for SequenceAt {
    fn name(&self) -> &'static str {
        "SequenceAt"
    }

    signature! { (sequence, position) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(1, &INDICES)?;
        ctx.scalar(1)?;
        Ok(vec![element_of(ctx.formed(0, Form::Sequence)?)])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for SequenceInsert {
    fn name(&self) -> &'static str {
        "SequenceInsert"
    }

    signature! { (sequence, inserted, optional position) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let all = ctx.formed(0, Form::Sequence)?;
        ctx.formed(1, Form::Tensor)?;
        ctx.common_type(0..2)?;
        ctx.typed_optional(2, &INDICES)?;
        ctx.scalar(2)?;
        Ok(vec![join(all, ctx.fact(1)?)])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for SequenceErase {
    fn name(&self) -> &'static str {
        "SequenceErase"
    }

    signature! { (sequence, optional position) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed_optional(1, &INDICES)?;
        ctx.scalar(1)?;
        Ok(vec![ctx.formed(0, Form::Sequence)?.clone()])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for SequenceLength {
    fn name(&self) -> &'static str {
        "SequenceLength"
    }

    signature! { (sequence) -> (length) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.formed(0, Form::Sequence)?;
        Ok(vec![Fact::fixed(DType::I64, &[])])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for SplitToSequence {
    fn name(&self) -> &'static str {
        "SplitToSequence"
    }

    signature! { (data, optional sizes) -> (sequence) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let mut part = ctx.formed(0, Form::Tensor)?.clone();
        ctx.typed_optional(1, &INDICES)?;
        if let Some(shape) = &mut part.shape {
            let axis = normalize_axis(self.axis, shape.rank())?;
            if ctx.has(1) {
                shape.0[axis] = Dim::Unknown;
            } else if self.keep_dims {
                shape.0[axis] = Dim::Known(1);
            } else {
                shape.0.remove(axis);
            }
        }
        Ok(vec![sequence_of(part)])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for ConcatFromSequence {
    fn name(&self) -> &'static str {
        "ConcatFromSequence"
    }

    signature! { (sequence) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let mut whole = element_of(ctx.formed(0, Form::Sequence)?);
        if let Some(shape) = &mut whole.shape {
            let rank = shape.rank() + usize::from(self.new_axis);
            let axis = normalize_axis(self.axis, rank)?;
            if self.new_axis {
                shape.0.insert(axis, Dim::Unknown);
            } else {
                shape.0[axis] = Dim::Unknown;
            }
        }
        Ok(vec![whole])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for OptionalAbsent {
    fn name(&self) -> &'static str {
        "Optional"
    }

    signature! { () -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, _: &InferContext) -> Result<Vec<Fact>> {
        Ok(vec![Fact {
            dtype: self.dtype,
            shape: None,
            kind: Kind {
                optional: true,
                ..self.kind
            },
        }])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for OptionalGetElement {
    fn name(&self) -> &'static str {
        "OptionalGetElement"
    }

    signature! { (value) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let fact = ctx.fact(0)?;
        Ok(vec![Fact {
            kind: fact.kind.form.into(),
            ..fact.clone()
        }])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for OptionalHasElement {
    fn name(&self) -> &'static str {
        "OptionalHasElement"
    }

    signature! { (value) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.input(0)?;
        Ok(vec![Fact::fixed(DType::Bool, &[])])
    }

    fn on_values(&self) -> bool {
        true
    }
}

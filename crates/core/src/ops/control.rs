//! Control flow, run by `builtin` alone. Bodies capture nothing: what they use of the graph around
//! them is passed as additional inputs.

use super::rules::{BOOL, INDICES, InputValues, unify};
use std::sync::Arc;

use super::axes::normalize_axis;
use super::sequence::join;
use crate::Reflect;
use crate::datum::Kind;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result, dtype_error};
use crate::fact::{Fact, InputFact};
use crate::graph::{Bodies, Flow, Graph, InferContext, Names, Operator, Value, ValueId};
use crate::interrupt::Interrupt;
use crate::reflect::{Leaf, Visitor};

/// A graph is the same only as itself: its nodes are not compared.
impl Reflect for Graph {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Opaque(std::ptr::from_ref(self) as usize));
    }
}

/// Inputs: condition, then the inputs of both bodies (each body takes all of them).
#[derive(Clone, Debug, Reflect)]
pub struct If {
    pub then_body: Arc<Graph>,
    pub else_body: Arc<Graph>,
}

/// Inputs: optional trip count, optional condition, the `carried` values, then captures. The body
/// takes iteration (`int64` scalar), condition, carried values, captures, and gives condition,
/// carried values, scan outputs. Outputs: carried values, then each scan output stacked.
#[derive(Clone, Debug, Reflect)]
pub struct Loop {
    pub body: Arc<Graph>,
    pub carried: usize,
}

/// Inputs: states, scanned values, then captures. The body takes states, one slice of each scanned
/// value, captures, and gives states and scan outputs.
#[derive(Clone, Debug, Reflect)]
pub struct Scan {
    pub body: Arc<Graph>,
    pub states: usize,
    pub scan_inputs: usize,
    pub input_axes: Vec<i64>,
    pub input_reverse: Vec<bool>,
    pub output_axes: Vec<i64>,
    pub output_reverse: Vec<bool>,
}

/// The facts of a body's outputs when it is given these inputs. A node that does not fit them keeps
/// what was known of its outputs: a branch that is never taken need not fit.
fn outputs_of(
    interrupt: &Interrupt,
    body: &Graph,
    given: &[Option<InputFact>],
) -> Result<Vec<Fact>> {
    let of = |v: &Value| InputFact {
        fact: v.constant.as_ref().map_or_else(|| v.fact.clone(), Fact::of),
        value: v.constant.clone(),
    };
    let mut known: Vec<InputFact> = body.values.iter().map(of).collect();
    if body.inputs.len() != given.len() {
        return Err(wrong_arity(body));
    }
    for (&v, given) in body.inputs.iter().zip(given) {
        if let (Some(declared), Some(given)) = (known.get_mut(v.0), given) {
            declared.fact.kind = given.fact.kind;
            declared.fact.dtype = given.fact.dtype.or(declared.fact.dtype);
            if given.fact.shape.is_some() {
                declared.fact.shape.clone_from(&given.fact.shape);
            }
            declared.value.clone_from(&given.value);
        }
    }
    for node in &body.nodes {
        let input = |v: &Option<ValueId>| v.and_then(|v| known.get(v.0).cloned());
        let inputs: Vec<Option<InputFact>> = node.inputs.iter().map(input).collect();
        let ctx = InferContext {
            inputs: &inputs,
            outputs: node.outputs.len(),
            interrupt,
            names: Names::of(body, node),
        };
        for (v, fact) in node
            .outputs
            .iter()
            .zip(node.op.infer(&ctx).unwrap_or_default())
        {
            if let Some(value) = known.get_mut(v.0) {
                value.fact = Fact {
                    dtype: fact.dtype.or(value.fact.dtype),
                    ..fact
                };
            }
        }
    }
    let output = |v: &ValueId| known.get(v.0).map(|k| k.fact.clone());
    let outputs: Option<Vec<Fact>> = body.outputs.iter().map(output).collect();
    outputs.ok_or_else(|| wrong_arity(body))
}

fn wrong_arity(body: &Graph) -> Error {
    Error::new(
        ErrorCode::InvalidGraph,
        format!("the body `{}` has too few inputs or outputs", body.name),
    )
}

/// What holds of a value that has either fact.
fn either(a: &Fact, b: &Fact) -> Result<Fact> {
    let dtype = match (a.dtype, b.dtype) {
        (Some(a), Some(b)) if a != b => {
            return Err(dtype_error("the bodies give different element types")
                .with_expected(a)
                .with_got(b));
        }
        (a, b) => a.or(b),
    };
    // Of a value that nothing is known of, not even the form is.
    let form = match (a, b) {
        (a, b) if *a == Fact::default() => b.kind.form,
        (a, b) if *b == Fact::default() || a.kind.form == b.kind.form => a.kind.form,
        (a, b) => {
            return Err(dtype_error("the bodies give values of different forms")
                .with_expected(a.kind)
                .with_got(b.kind));
        }
    };
    let kind = Kind {
        form,
        optional: a.kind.optional || b.kind.optional,
    };
    Ok(Fact {
        dtype,
        kind,
        ..join(a, b)
    })
}

/// What holds of values that go round, the initial ones or what the body makes of them. `first`
/// and `out` are the first such input of the node and output of the body.
fn carried(
    ctx: &InferContext,
    first: usize,
    body: &Graph,
    out: usize,
    count: usize,
) -> Result<Vec<Fact>> {
    (0..count)
        .map(|k| {
            let made = body.outputs.get(out + k).and_then(|v| body.values.get(v.0));
            let made = made.ok_or_else(|| wrong_arity(body))?;
            either(ctx.fact(first + k)?, &made.fact)
        })
        .collect()
}

/// Outputs of the body that are collected along a new axis, `place` says which and how long.
fn stacked(
    outputs: &[Fact],
    count: usize,
    place: impl Fn(usize) -> (i64, Dim),
) -> Result<Vec<Fact>> {
    outputs
        .iter()
        .take(count)
        .enumerate()
        .map(|(k, one)| {
            let mut all = one.clone();
            if let Some(shape) = &mut all.shape {
                let (axis, length) = place(k);
                let axis = normalize_axis(axis, shape.rank() + 1)?;
                shape.0.insert(axis, length);
            }
            Ok(all)
        })
        .collect()
}

/// Facts without values, as a body is given them.
fn given(facts: impl IntoIterator<Item = Fact>) -> impl Iterator<Item = Option<InputFact>> {
    let given = |fact| InputFact { fact, value: None };
    facts.into_iter().map(move |fact| Some(given(fact)))
}

impl Operator for If {
    fn name(&self) -> &'static str {
        "If"
    }

    signature! { (condition, list captures) -> (list outputs) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &BOOL)?;
        ctx.scalar(0)?;
        let captures = ctx.inputs.get(1..).unwrap_or_default();
        let outputs = |body: &Graph| -> Result<Vec<Fact>> {
            let facts = outputs_of(ctx.interrupt, body, captures)?;
            if facts.len() < ctx.outputs {
                return Err(wrong_arity(body));
            }
            Ok(facts)
        };
        match ctx.int(0)? {
            Some(0) => outputs(&self.else_body),
            Some(_) => outputs(&self.then_body),
            None => {
                let (a, b) = (outputs(&self.then_body)?, outputs(&self.else_body)?);
                a.iter().zip(&b).map(|(a, b)| either(a, b)).collect()
            }
        }
    }

    fn bodies(&self) -> Option<Bodies<'_>> {
        Some(Bodies::new(vec![&self.then_body, &self.else_body], 1))
    }

    fn with_bodies(&self, graphs: Vec<Arc<Graph>>) -> Option<Arc<dyn Operator>> {
        let [then_body, else_body] = <[_; 2]>::try_from(graphs).ok()?;
        Some(Arc::new(If {
            then_body,
            else_body,
        }))
    }
}

impl Loop {
    /// The number of iterations, if it does not depend on what the body computes.
    fn trips(&self, ctx: &InferContext) -> Result<Option<usize>> {
        let Some(trips) = ctx.int(0)? else {
            return Ok(None);
        };
        let started = match (ctx.has(1), ctx.int(1)?) {
            (false, _) => true,
            (true, Some(c)) => c != 0,
            (true, None) => return Ok(None),
        };
        if !started {
            return Ok(Some(0));
        }
        let id = *self
            .body
            .outputs
            .first()
            .ok_or_else(|| wrong_arity(&self.body))?;
        let passed_on = self.body.inputs.get(1) == Some(&id);
        let constant = self.body.values.get(id.0).and_then(|v| v.constant.as_ref());
        let always = match constant {
            Some(t) => t.to_i64s()?.iter().all(|&c| c != 0),
            None => passed_on,
        };
        Ok(always.then_some(usize::try_from(trips).unwrap_or(0)))
    }
}

impl Operator for Loop {
    fn name(&self) -> &'static str {
        "Loop"
    }

    signature! { (optional trips, optional condition, list values) -> (list outputs) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed_optional(0, &INDICES)?;
        ctx.typed_optional(1, &BOOL)?;
        ctx.scalar(0)?;
        ctx.scalar(1)?;
        let mut facts = carried(ctx, 2, &self.body, 1, self.carried)?;
        let turn = [Fact::fixed(DType::I64, &[]), Fact::fixed(DType::Bool, &[])];
        let mut inputs: Vec<_> = given(turn.into_iter().chain(facts.clone())).collect();
        let captures = self.carried.saturating_add(2);
        inputs.extend_from_slice(ctx.inputs.get(captures..).unwrap_or_default());
        let outputs = outputs_of(ctx.interrupt, &self.body, &inputs)?;
        let trips = self.trips(ctx)?.map_or(Dim::Unknown, Dim::Known);
        let count = ctx.outputs.saturating_sub(self.carried);
        let scanned = outputs.get(self.carried + 1..).unwrap_or_default();
        facts.extend(stacked(scanned, count, |_| (0, trips.clone()))?);
        Ok(facts)
    }

    fn bodies(&self) -> Option<Bodies<'_>> {
        Some(Bodies {
            counted: true,
            carried: self.carried,
            ..Bodies::new(vec![&self.body], 2)
        })
    }

    fn with_bodies(&self, graphs: Vec<Arc<Graph>>) -> Option<Arc<dyn Operator>> {
        let [body] = <[_; 1]>::try_from(graphs).ok()?;
        Some(Arc::new(Loop {
            body,
            ..self.clone()
        }))
    }
}

impl Operator for Scan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    signature! { (list values) -> (list outputs) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let mut facts = carried(ctx, 0, &self.body, 0, self.states)?;
        let mut length = Dim::Unknown;
        let mut inputs: Vec<_> = given(facts.clone()).collect();
        for k in 0..self.scan_inputs {
            let mut slice = ctx.fact(self.states + k)?.clone();
            if let Some(x) = &mut slice.shape {
                let axis = self.input_axes.get(k).copied().unwrap_or(0);
                let axis = normalize_axis(axis, x.rank())?;
                let dim = x.0.remove(axis);
                length = unify(&dim, &length, || format!("the length of input {k}"))?;
            }
            inputs.extend(given([slice]));
        }
        let captures = self.states.saturating_add(self.scan_inputs);
        inputs.extend_from_slice(ctx.inputs.get(captures..).unwrap_or_default());
        let outputs = outputs_of(ctx.interrupt, &self.body, &inputs)?;
        let count = ctx.outputs.saturating_sub(self.states);
        let scanned = outputs.get(self.states..).unwrap_or_default();
        facts.extend(stacked(scanned, count, |k| {
            let axis = self.output_axes.get(k).copied().unwrap_or(0);
            (axis, length.clone())
        })?);
        Ok(facts)
    }

    fn bodies(&self) -> Option<Bodies<'_>> {
        Some(Bodies {
            carried: self.states,
            cut: self.scan_inputs,
            axes: &self.input_axes,
            ..Bodies::new(vec![&self.body], 0)
        })
    }

    fn with_bodies(&self, graphs: Vec<Arc<Graph>>) -> Option<Arc<dyn Operator>> {
        let [body] = <[_; 1]>::try_from(graphs).ok()?;
        Some(Arc::new(Scan {
            body,
            ..self.clone()
        }))
    }
}

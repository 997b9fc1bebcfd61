//! Control flow, run by `builtin` alone. Bodies capture nothing: what they use of the graph around
//! them is passed as additional inputs.

use std::sync::Arc;

use super::*;
use crate::error::{ErrorCode, dtype_error};
use crate::graph::ValueId;

/// Inputs: condition, then the inputs of both bodies (each body takes all of them).
#[derive(Clone, Debug)]
pub struct If {
    pub then_body: Arc<Graph>,
    pub else_body: Arc<Graph>,
}

/// Inputs: optional trip count, optional condition, the `carried` values, then captures. The body
/// takes iteration (`int64` scalar), condition, carried values, captures, and gives condition,
/// carried values, scan outputs. Outputs: carried values, then each scan output stacked.
#[derive(Clone, Debug)]
pub struct Loop {
    pub body: Arc<Graph>,
    pub carried: usize,
}

/// Inputs: states, scanned values, then captures. The body takes states, one slice of each scanned
/// value, captures, and gives states and scan outputs.
#[derive(Clone, Debug)]
pub struct Scan {
    pub body: Arc<Graph>,
    pub states: usize,
    pub scan_inputs: usize,
    pub input_axes: Vec<i64>,
    pub input_reverse: Vec<bool>,
    pub output_axes: Vec<i64>,
    pub output_reverse: Vec<bool>,
}

/// The fact of input or output `i` of a body.
fn fact_of(body: &Graph, list: &[ValueId], i: usize) -> Result<Fact> {
    let id = list.get(i).ok_or_else(|| wrong_arity(body))?;
    let value = body.values.get(id.0).ok_or_else(|| wrong_arity(body))?;
    Ok(match &value.constant {
        Some(t) => Fact::of(t),
        None => value.fact.clone(),
    })
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
    let shape = match (&a.shape, &b.shape) {
        (Some(a), Some(b)) if a.rank() == b.rank() => {
            let dims = a.0.iter().zip(&b.0);
            let dim = |(a, b): (&Dim, &Dim)| if a == b { a.clone() } else { Dim::Unknown };
            Some(Shape(dims.map(dim).collect()))
        }
        _ => None,
    };
    Ok(fact(dtype, shape))
}

/// What holds of values that go round: the initial one, or what the body makes of it.
fn carried(
    ctx: &InferContext,
    first: usize,
    body: &Graph,
    out: usize,
    n: usize,
) -> Result<Vec<Fact>> {
    (0..n)
        .map(|k| {
            either(
                ctx.fact(first + k)?,
                &fact_of(body, &body.outputs, out + k)?,
            )
        })
        .collect()
}

/// The outputs of the body that are collected along a new axis of this length.
fn stacked(
    body: &Graph,
    first: usize,
    count: usize,
    place: impl Fn(usize) -> (i64, Dim),
) -> Result<Vec<Fact>> {
    (0..count)
        .map(|k| {
            let mut one = fact_of(body, &body.outputs, first + k)?;
            if let Some(shape) = &mut one.shape {
                let (axis, length) = place(k);
                let axis = normalize_axis(axis, shape.rank() + 1)?;
                shape.0.insert(axis, length);
            }
            Ok(one)
        })
        .collect()
}

impl Operator for If {
    fn name(&self) -> &'static str {
        "If"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &BOOL)?;
        ctx.scalar(0)?;
        let bodies = [&self.then_body, &self.else_body];
        let give = |body: &Graph, i: usize| fact_of(body, &body.outputs, i);
        let condition = ctx.int(0)?;
        (0..ctx.outputs)
            .map(|i| match condition {
                Some(c) => give(bodies[usize::from(c == 0)], i),
                None => either(&give(bodies[0], i)?, &give(bodies[1], i)?),
            })
            .collect()
    }

    fn subgraphs(&self) -> Vec<&Graph> {
        vec![&self.then_body, &self.else_body]
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

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed_optional(0, &INDICES)?;
        ctx.typed_optional(1, &BOOL)?;
        ctx.scalar(0)?;
        ctx.scalar(1)?;
        let mut facts = carried(ctx, 2, &self.body, 1, self.carried)?;
        let trips = self.trips(ctx)?.map_or(Dim::Unknown, Dim::Known);
        let count = ctx.outputs.saturating_sub(self.carried);
        let first = self.carried.saturating_add(1);
        facts.extend(stacked(&self.body, first, count, |_| (0, trips.clone()))?);
        Ok(facts)
    }

    fn subgraphs(&self) -> Vec<&Graph> {
        vec![&self.body]
    }
}

impl Operator for Scan {
    fn name(&self) -> &'static str {
        "Scan"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let mut length = Dim::Unknown;
        for k in 0..self.scan_inputs {
            if let Some(x) = ctx.shape(self.states + k)? {
                let axis = self.input_axes.get(k).copied().unwrap_or(0);
                let axis = normalize_axis(axis, x.rank())?;
                length = unify(&x.0[axis], &length, || format!("the length of input {k}"))?;
            }
        }
        let mut facts = carried(ctx, 0, &self.body, 0, self.states)?;
        let count = ctx.outputs.saturating_sub(self.states);
        facts.extend(stacked(&self.body, self.states, count, |k| {
            let axis = self.output_axes.get(k).copied().unwrap_or(0);
            (axis, length.clone())
        })?);
        Ok(facts)
    }

    fn subgraphs(&self) -> Vec<&Graph> {
        vec![&self.body]
    }
}

//! Control flow: subgraphs become bodies that are given what they use of the graph around them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kilim_core::dim::Shape;
use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Fact, If, Loop, Scan, ShapeOf, Slice};

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::import::Body;
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[("If", branch), ("Loop", repeat), ("Scan", scan)]);

fn branch(b: &mut NodeBuilder) -> Result<()> {
    let condition = b.input(0)?;
    if let Some(known) = b.constant(condition) {
        let name = match known.to_i64s()?.as_slice() {
            [0] => "else_branch",
            [_] => "then_branch",
            _ => return Err(invalid("a condition that is not one element")),
        };
        // The other branch is not read, and may stand there.
        b.attribute("then_branch").and(b.attribute("else_branch"));
        let outputs = b.inline(name, &[])?;
        for (i, value) in outputs.into_iter().enumerate() {
            b.bind(i, value)?;
        }
        return Ok(());
    }
    let mut then_body = b.branch("then_branch")?;
    let mut else_body = b.branch("else_branch")?;
    check_outputs(&then_body, b.output_count())?;
    check_outputs(&else_body, b.output_count())?;
    let captures = then_body.captures.iter().chain(&else_body.captures);
    let mut seen = HashSet::new();
    let inputs: Vec<ValueId> = captures.copied().filter(|v| seen.insert(*v)).collect();
    take_all(b, &mut then_body, &inputs);
    take_all(b, &mut else_body, &inputs);
    let op = If {
        then_body: Arc::new(then_body.graph),
        else_body: Arc::new(else_body.graph),
    };
    let inputs = std::iter::once(condition).chain(inputs);
    let inputs: Vec<_> = inputs.map(Some).collect();
    b.emit(op, &inputs)
}

/// Makes a body that has captures alone take all of `inputs`, in their order.
fn take_all(b: &mut NodeBuilder, body: &mut Body, inputs: &[ValueId]) {
    let own = std::mem::take(&mut body.graph.inputs);
    let own: HashMap<ValueId, ValueId> = body.captures.iter().copied().zip(own).collect();
    for &outer in inputs {
        match own.get(&outer) {
            Some(&inner) => body.graph.inputs.push(inner),
            None => {
                let value = b.graph().value(outer).clone();
                body.graph.add_input(value.name, value.fact);
            }
        }
    }
}

fn check_outputs(body: &Body, wanted: usize) -> Result<()> {
    if body.graph.outputs.len() >= wanted {
        return Ok(());
    }
    Err(invalid(format!(
        "a body with {} outputs where {wanted} are needed",
        body.graph.outputs.len()
    )))
}

fn formals(body: &Graph, captures: usize) -> usize {
    body.inputs.len().saturating_sub(captures)
}

fn repeat(b: &mut NodeBuilder) -> Result<()> {
    let trip_count = b.optional(0)?;
    let condition = b.optional(1)?;
    let carried = b.required_from(2)?;
    let mut facts = vec![Fact::fixed(DType::I64, &[]), Fact::fixed(DType::Bool, &[])];
    // The shape of a carried value may change from one iteration to the next.
    facts.extend(carried.iter().map(|&v| Fact {
        shape: None,
        ..b.fact(v)
    }));
    let body = b.body("body", &facts)?;
    if formals(&body.graph, body.captures.len()) != carried.len() + 2 {
        return Err(invalid("the body of a loop has a wrong number of inputs"));
    }
    check_outputs(&body, b.output_count() + 1)?;
    let op = Loop {
        body: Arc::new(body.graph),
        carried: carried.len(),
    };
    let mut inputs = vec![trip_count, condition];
    inputs.extend(carried.into_iter().chain(body.captures).map(Some));
    b.emit(op, &inputs)
}

fn scan(b: &mut NodeBuilder) -> Result<()> {
    let batched = b.version() < 9;
    let values = b.required_from(usize::from(batched))?;
    let scan_inputs = b.count("num_scan_inputs", None)?;
    let states = values
        .len()
        .checked_sub(scan_inputs)
        .ok_or_else(|| invalid("less inputs than are scanned"))?;
    let scan_outputs = b
        .output_count()
        .checked_sub(states)
        .ok_or_else(|| invalid("less outputs than states"))?;
    if scan_inputs == 0 {
        return Err(invalid("a scan of nothing"));
    }
    if batched {
        return scan_batched(b, &values, states, scan_outputs);
    }
    let op = plan(b, &values, states, scan_outputs)?;
    let inputs: Vec<_> = values.into_iter().chain(op.captures).map(Some).collect();
    b.emit(op.scan, &inputs)
}

struct Plan {
    scan: Scan,
    captures: Vec<ValueId>,
}

fn plan(
    b: &mut NodeBuilder,
    values: &[ValueId],
    states: usize,
    scan_outputs: usize,
) -> Result<Plan> {
    let scan_inputs = values.len() - states;
    let list = |name: &str, n: usize| -> Result<Vec<i64>> {
        let given = b.ints(name)?.unwrap_or_else(|| vec![0; n]);
        if given.len() == n {
            Ok(given)
        } else {
            Err(invalid(format!(
                "the attribute `{name}` has a wrong length"
            )))
        }
    };
    let flags = |list: Vec<i64>| list.into_iter().map(|f| f != 0).collect::<Vec<_>>();
    let input_directions = match b.version() {
        ..9 => "directions",
        _ => "scan_input_directions",
    };
    let input_axes = list("scan_input_axes", scan_inputs)?;
    let input_reverse = flags(list(input_directions, scan_inputs)?);
    let output_axes = list("scan_output_axes", scan_outputs)?;
    let output_reverse = flags(list("scan_output_directions", scan_outputs)?);
    let mut facts: Vec<Fact> = values.iter().map(|&v| b.fact(v)).collect();
    for (fact, &axis) in facts[states..].iter_mut().zip(&input_axes) {
        fact.shape = fact.shape.take().and_then(|s| without(s, axis));
    }
    let body = b.body("body", &facts)?;
    if formals(&body.graph, body.captures.len()) != values.len() {
        return Err(invalid("the body of a scan has a wrong number of inputs"));
    }
    check_outputs(&body, states + scan_outputs)?;
    Ok(Plan {
        scan: Scan {
            body: Arc::new(body.graph),
            states,
            scan_inputs,
            input_axes,
            input_reverse,
            output_axes,
            output_reverse,
        },
        captures: body.captures,
    })
}

/// The shape of one slice.
fn without(mut shape: Shape, axis: i64) -> Option<Shape> {
    let axis = kilim_core::ops::normalize_axis(axis, shape.rank()).ok()?;
    shape.0.remove(axis);
    Some(shape)
}

/// The form of operator set 8, where everything has a batch dimension in front: a scan over the batch
/// of the scan of each item, which may end before the longest.
fn scan_batched(
    b: &mut NodeBuilder,
    values: &[ValueId],
    states: usize,
    scan_outputs: usize,
) -> Result<()> {
    let mut batched = values.to_vec();
    batched.extend(b.optional(0)?);
    let mut facts: Vec<Fact> = batched.iter().map(|&v| b.fact(v)).collect();
    for fact in &mut facts {
        fact.shape = fact.shape.take().and_then(|s| without(s, 0));
    }
    let outputs = states + scan_outputs;
    let body = b.new_body_of(&facts, |b, inner| {
        let (item, length) = inner.split_at(values.len());
        let mut item = item.to_vec();
        let mut missing = None;
        if let Some(&length) = length.first() {
            let longest = b.dim(item[states], 0)?;
            let length = b.cast(length, DType::I64)?;
            let length = b.unsqueeze(length, &[0])?;
            missing = Some(b.sub(longest, length)?);
            let first = b.i64s(&[0])?;
            for x in &mut item[states..] {
                *x = b.op(Slice, &[*x, first, length, first])?;
            }
        }
        let plan = plan(b, &item, states, scan_outputs)?;
        let inputs: Vec<_> = item.into_iter().chain(plan.captures).map(Some).collect();
        let mut results = b.apply(plan.scan, &inputs, outputs)?;
        if let Some(missing) = missing {
            for y in &mut results[states..] {
                *y = continued(b, *y, missing)?;
            }
        }
        Ok(results)
    })?;
    let scan = Scan {
        body: Arc::new(body.graph),
        states: 0,
        scan_inputs: batched.len(),
        input_axes: vec![0; batched.len()],
        input_reverse: vec![false; batched.len()],
        output_axes: vec![0; outputs],
        output_reverse: vec![false; outputs],
    };
    let inputs: Vec<_> = batched.into_iter().chain(body.captures).map(Some).collect();
    b.emit(scan, &inputs)
}

/// `x` with `missing` more rows of zeros.
fn continued(b: &mut NodeBuilder, x: ValueId, missing: ValueId) -> Result<ValueId> {
    let rest = ShapeOf {
        start: 1,
        end: None,
    };
    let rest = b.op(rest, &[x])?;
    let shape = b.vector(&[missing, rest])?;
    let zero = b.number(0.0, x)?;
    let zeros = b.expand(zero, shape)?;
    b.concat(&[x, zeros], 0)
}

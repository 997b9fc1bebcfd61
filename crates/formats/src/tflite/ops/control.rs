//! Control flow: subgraphs become bodies.

use std::sync::Arc;

use kilim_core::dim::Shape;
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Fact, If, Loop, Reshape};

use super::super::import::{Import, Op};

/// The first output of a subgraph that decides, as a scalar.
fn decision(imp: &mut Import, outputs: &[ValueId]) -> Result<ValueId> {
    let &[decision] = outputs else {
        return Err(Error::new(
            ErrorCode::InvalidModel,
            "a condition with another number of outputs than one",
        ));
    };
    scalar(imp, decision)
}

fn scalar(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let shape = imp.i64s(&[])?;
    let reshape = Reshape { allow_zero: false };
    imp.step(reshape, &[Some(x), Some(shape)])
}

fn inputs(imp: &mut Import, op: &Op, first: usize) -> Result<Vec<ValueId>> {
    (first..op.input_count())
        .map(|i| imp.input(op, i))
        .collect()
}

fn check(what: &str, wanted: usize, got: usize) -> Result<()> {
    if wanted == got {
        return Ok(());
    }
    let message = format!("the {what} of a body do not fit");
    let error = Error::new(ErrorCode::InvalidModel, message);
    Err(error.with_expected(wanted).with_got(got))
}

/// Inputs: condition, then those of both bodies.
pub fn branch(imp: &mut Import, op: &Op) -> Result<()> {
    let condition = imp.input(op, 0)?;
    let condition = scalar(imp, condition)?;
    let given = inputs(imp, op, 1)?;
    let body = |slot: usize| -> Result<Arc<Graph>> {
        let index = op.int(slot)?;
        let body = imp.nested(index, &format!("{}/{slot}", op.node))?.whole()?;
        check("inputs", given.len(), body.inputs.len())?;
        check("outputs", op.output_count(), body.outputs.len())?;
        Ok(Arc::new(body))
    };
    let operator = If {
        then_body: body(0)?,
        else_body: body(1)?,
    };
    let all = std::iter::once(condition).chain(given);
    let all: Vec<_> = all.map(Some).collect();
    imp.emit_all(op, operator, &all)
}

/// Inputs and outputs: what goes round. The condition is asked before each round.
pub fn repeat(imp: &mut Import, op: &Op) -> Result<()> {
    let (asks, body) = (op.int(0)?, op.int(1)?);
    let carried = inputs(imp, op, 0)?;
    check("outputs", op.output_count(), carried.len())?;
    let first = imp.inlined(asks, &carried)?;
    let first = decision(imp, &first)?;

    let mut inner = imp.nested(body, &format!("{}/body", op.node))?;
    let fact = |dtype| Fact::new(dtype, Shape::default());
    inner.add_input("iteration", fact(DType::I64))?;
    inner.add_input("condition", fact(DType::Bool))?;
    inner.graph_inputs()?;
    check("inputs", carried.len() + 2, inner.graph().inputs.len())?;
    let outputs = inner.operators()?;
    check("outputs", carried.len(), outputs.len())?;
    let again = inner.inlined(asks, &outputs)?;
    let again = decision(&mut inner, &again)?;
    let body = inner.with_outputs(std::iter::once(again).chain(outputs).collect())?;

    let operator = Loop {
        body: Arc::new(body),
        carried: carried.len(),
    };
    let round = carried.into_iter().map(Some);
    let all: Vec<_> = [None, Some(first)].into_iter().chain(round).collect();
    imp.emit_all(op, operator, &all)
}

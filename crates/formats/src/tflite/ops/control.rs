//! Control flow: subgraphs become bodies.

use std::sync::Arc;

use kilim_core::dim::Shape;
use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{Fact, If, Loop, Operator, Reshape};

use super::super::import::{Importer, Op};

/// The first output of a subgraph that decides, as a scalar.
fn decision(imp: &mut Importer, op: &Op, outputs: &[ValueId]) -> Result<ValueId> {
    let &[decision] = outputs else {
        return Err(Error::new(
            ErrorCode::InvalidModel,
            "a condition with another number of outputs than one",
        ));
    };
    scalar(imp, op, decision)
}

fn scalar(imp: &mut Importer, op: &Op, x: ValueId) -> Result<ValueId> {
    let shape = imp.ints(op, &[])?;
    let reshape = Reshape { allow_zero: false };
    Ok(imp.step(op, reshape, &[Some(x), Some(shape)]))
}

fn inputs(imp: &mut Importer, op: &Op, first: usize) -> Result<Vec<ValueId>> {
    (first..op.input_count())
        .map(|i| imp.input(op, i))
        .collect()
}

fn emit(
    imp: &mut Importer,
    op: &Op,
    operator: impl Operator,
    inputs: &[Option<ValueId>],
) -> Result<()> {
    let outputs = (0..op.output_count())
        .map(|i| imp.output(op, i))
        .collect::<Result<Vec<_>>>()?;
    imp.graph.push(op.node.clone(), operator, inputs, &outputs);
    Ok(())
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
pub fn branch(imp: &mut Importer, op: &Op) -> Result<()> {
    let condition = imp.input(op, 0)?;
    let condition = scalar(imp, op, condition)?;
    let given = inputs(imp, op, 1)?;
    let body = |slot: usize| -> Result<Arc<Graph>> {
        let index = op.int(slot)?;
        let body = imp
            .nested(index, Graph::new(format!("{}/{slot}", op.node)))?
            .whole()?;
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
    emit(imp, op, operator, &all)
}

/// Inputs and outputs: what goes round. The condition is asked before each round.
pub fn repeat(imp: &mut Importer, op: &Op) -> Result<()> {
    let (asks, body) = (op.int(0)?, op.int(1)?);
    let carried = inputs(imp, op, 0)?;
    check("outputs", op.output_count(), carried.len())?;
    let first = imp.inlined(asks, &carried)?;
    let first = decision(imp, op, &first)?;

    let mut inner = imp.nested(body, Graph::new(format!("{}/body", op.node)))?;
    let fact = |dtype| Fact::new(dtype, Shape::default());
    inner.graph.add_input("iteration", fact(DType::I64));
    inner.graph.add_input("condition", fact(DType::Bool));
    inner.graph_inputs()?;
    check("inputs", carried.len() + 2, inner.graph.inputs.len())?;
    let outputs = inner.operators()?;
    check("outputs", carried.len(), outputs.len())?;
    let again = inner.inlined(asks, &outputs)?;
    let again = decision(&mut inner, op, &again)?;
    inner.graph.outputs = std::iter::once(again).chain(outputs).collect();
    inner.graph.sort()?;

    let operator = Loop {
        body: Arc::new(inner.graph),
        carried: carried.len(),
    };
    let round = carried.into_iter().map(Some);
    let all: Vec<_> = [None, Some(first)].into_iter().chain(round).collect();
    emit(imp, op, operator, &all)
}

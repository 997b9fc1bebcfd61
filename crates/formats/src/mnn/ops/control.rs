//! Loops and branches. Their bodies are graphs of their own, which are called by name.

use std::sync::Arc;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, ValueId};
use kilim_core::ops::{If, Loop};
use kilim_core::{Dim, Fact, Shape};

use super::Outputs;
use crate::build::GraphBuilder;
use crate::flatbuffer::Table;
use crate::mnn::import::Import;
use crate::mnn::invalid;
use crate::mnn::layout::Layout;
use crate::mnn::op::{Op, Params};
use crate::mnn::schema::Body;

/// The tables of parameters.
const WHILE: u8 = 85;
const IF: u8 = 86;

/// Fields of `WhileParam` and `IfParam`.
const FIRST_GRAPH: usize = 0;
const SECOND_GRAPH: usize = 1;
const ALIASES: usize = 2;
const OUTPUT_ALIASES: usize = 3;
const UPDATES: usize = 4;

/// The body of a name.
fn body<'a>(imp: &Import<'a>, name: &str) -> Result<&'a Body<'a>> {
    let found = imp.net.bodies.iter().find(|body| body.name == name);
    found.ok_or_else(|| invalid("a loop or a branch calls a graph that is not there"))
}

fn text<'a>(p: &Params<'a>, slot: usize) -> Result<&'a str> {
    p.0.map_or(Ok(""), |table: Table<'a>| table.text(slot))
}

/// An empty graph for the operators of a body.
fn inner<'a>(imp: &Import<'a>, body: &'a Body<'a>) -> Result<Import<'a>> {
    let builder = GraphBuilder::new(body.name, true, &imp.numbers.source.interrupt);
    imp.nested(&body.tensors, builder)
}

/// Brings the operators of a body into its graph. Its outputs, each with its layout.
fn filled(inner: &mut Import, body: &Body) -> Result<Vec<(ValueId, Layout)>> {
    inner.ops(&body.ops)?;
    let outputs = body.outputs.iter().map(|&tensor| {
        let value = inner.get(tensor);
        value.ok_or_else(|| invalid("no operator gives an output of a body"))
    });
    outputs.collect()
}

/// The layout in which a body takes a tensor.
fn layout_of(body: &Body, tensor: usize) -> Layout {
    let input = body
        .ops
        .iter()
        .find(|op| op.outputs.first() == Some(&tensor));
    let main = input.and_then(|op| op.main.as_ref());
    let number = main.and_then(|(_, table)| table.i8_or(2, 2).ok());
    number
        .and_then(|n| Layout::of(n).ok())
        .unwrap_or(Layout::Nc4hw4)
}

fn finished(inner: Import, outputs: Vec<ValueId>) -> Result<Arc<Graph>> {
    let mut builder = inner.into_builder();
    builder.graph().outputs = outputs;
    Ok(Arc::new(builder.finish()?))
}

/// The operator While, as ONNX's Loop: the number of rounds, whether to begin, and what goes from round to round. What a round gives
/// beside that is put together at the end.
pub fn repeat(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(WHILE)?;
    let aliased = [ALIASES, OUTPUT_ALIASES, UPDATES].map(|slot| p.vector(slot, 4));
    let mut named = !text(&p, FIRST_GRAPH)?.is_empty();
    for vector in aliased {
        named |= vector?.is_some();
    }
    if named {
        return Err(unsupported("a loop whose condition is a graph of its own"));
    }
    let body = body(imp, text(&p, SECOND_GRAPH)?)?;
    let all = op.all()?;
    if all.len() < 2 || body.inputs.len() != all.len() || body.outputs.len() + 1 < all.len() {
        return Err(invalid("the inputs of a loop do not fit its body")
            .with_expected(body.inputs.len())
            .with_got(all.len()));
    }
    let carried = &all[2..];
    let mut inner = inner(imp, body)?;
    let scalar = |dtype| Fact::new(dtype, Shape::default());
    let round = inner.add_input("round", scalar(DType::I64))?;
    let goes_on = inner.add_input("goes on", scalar(DType::Bool))?;
    for (i, &value) in carried.iter().enumerate() {
        let tensor = body.inputs[i + 2];
        let mut fact = imp.fact(value);
        // Dimensions of what a round changes are those of that round.
        if body.outputs[i + 1] != tensor
            && let Some(shape) = &mut fact.shape
        {
            shape.0.iter_mut().for_each(|dim| *dim = Dim::Unknown);
        }
        let value = inner.add_input(body.tensors[tensor], fact)?;
        inner.set(tensor, value, layout_of(body, tensor));
    }
    let around = inner.enter(body.name);
    let round = inner.cast(round, DType::I32)?;
    let goes_on = inner.as_ints(goes_on)?;
    inner.leave(around);
    inner.set(body.inputs[0], round, Layout::Nchw);
    inner.set(body.inputs[1], goes_on, Layout::Nchw);
    let outputs = filled(&mut inner, body)?;
    let layouts: Vec<Layout> = outputs[1..].iter().map(|(_, layout)| *layout).collect();
    let mut values: Vec<ValueId> = outputs.into_iter().map(|(value, _)| value).collect();
    let around = inner.enter(body.name);
    values[0] = truth(&mut inner, values[0])?;
    inner.leave(around);
    let body = finished(inner, values)?;
    let (rounds, begins) = (imp.scalar_of(all[0])?, truth(imp, all[1])?);
    let operator = Loop {
        body,
        carried: carried.len(),
    };
    let inputs = [rounds, begins].into_iter().chain(carried.iter().copied());
    let inputs: Vec<_> = inputs.map(Some).collect();
    imp.gives_each(layouts);
    imp.apply(operator, &inputs, op.outputs())
}

/// One truth value.
fn truth(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let truth = imp.truths(x)?;
    match imp.rank(truth)? {
        0 => Ok(truth),
        _ => imp.reshape(truth, &[]),
    }
}

/// The texts of a list of lists.
fn lists<'a>(p: &Params<'a>, slot: usize) -> Result<Vec<Vec<&'a str>>> {
    let tables =
        p.0.map_or_else(|| Ok(Vec::new()), |table: Table<'a>| table.tables(slot))?;
    tables.into_iter().map(|table| table.texts(0)).collect()
}

/// The operator If. Lists say under which names a body takes each input, and which of its outputs each output is.
pub fn branch(imp: &mut Import, op: &Op) -> Outputs {
    let p = op.params(IF)?;
    let (inputs, outputs) = (lists(&p, ALIASES)?, lists(&p, OUTPUT_ALIASES)?);
    let all = op.all()?;
    if inputs.len() > all.len() {
        return Err(invalid("a branch names inputs that it does not have"));
    }
    let mut layouts = Vec::new();
    let mut side = |imp: &mut Import, slot: usize| -> Result<Arc<Graph>> {
        let body = body(imp, text(&p, slot)?)?;
        let mut inner = inner(imp, body)?;
        for (i, &value) in all.iter().enumerate().skip(1) {
            let taken = inner.add_input(&format!("input {i}"), imp.fact(value))?;
            for name in inputs.get(i).into_iter().flatten() {
                let tensor = body.inputs.iter().find(|&&t| body.tensors[t] == *name);
                if let Some(&tensor) = tensor {
                    inner.set(tensor, taken, layout_of(body, tensor));
                }
            }
        }
        if body
            .inputs
            .iter()
            .any(|&tensor| inner.get(tensor).is_none())
        {
            return Err(invalid("an input of a branch is not given"));
        }
        let made = filled(&mut inner, body)?;
        let place = |i: usize| match outputs.get(i) {
            None => Ok(i),
            Some(names) => {
                let name = names.get(slot);
                let place = body
                    .outputs
                    .iter()
                    .position(|&t| Some(&body.tensors[t]) == name);
                place.ok_or_else(|| invalid("a branch has no output of a name"))
            }
        };
        let mut values = Vec::new();
        layouts.clear();
        for i in 0..op.outputs() {
            let found = made.get(place(i)?).copied();
            let (value, layout) = found.ok_or_else(|| invalid("a branch has too few outputs"))?;
            values.push(value);
            layouts.push(layout);
        }
        finished(inner, values)
    };
    let operator = If {
        then_body: side(imp, FIRST_GRAPH)?,
        else_body: side(imp, SECOND_GRAPH)?,
    };
    let condition = truth(imp, all[0])?;
    let inputs = std::iter::once(condition).chain(all.into_iter().skip(1));
    let inputs: Vec<_> = inputs.map(Some).collect();
    imp.gives_each(layouts);
    imp.apply(operator, &inputs, op.outputs())
}

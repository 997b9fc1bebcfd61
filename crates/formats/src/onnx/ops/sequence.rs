//! Sequences and optional values. Where length and positions are known they are followed while the
//! graph is built, and nothing of them is left in it; the rest becomes operators on values.

use std::rc::Rc;
use std::sync::Arc;

use kilim_core::error::{Result, value_error};
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    ConcatFromSequence, Loop, OptionalAbsent, OptionalGetElement, OptionalHasElement, SequenceAt,
    SequenceConstruct, SequenceErase, SequenceInsert, SequenceLength, Split, SplitToSequence,
};
use kilim_core::tensor::Tensor;

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::proto::invalid;

/// The longest sequence that is followed.
const MAX_LENGTH: usize = 1 << 12;

pub static OPERATORS: Family = OpTable(&[
    ("ConcatFromSequence", concat),
    ("Optional", optional),
    ("OptionalGetElement", get_element),
    ("OptionalHasElement", has_element),
    ("SequenceAt", at),
    ("SequenceConstruct", |b| {
        let values = b.required_from(0)?;
        b.bind_sequence(0, values);
        Ok(())
    }),
    ("SequenceEmpty", |b| {
        // There is no element whose type it would be.
        b.int("dtype")?;
        b.bind_sequence(0, Vec::new());
        Ok(())
    }),
    ("SequenceErase", erase),
    ("SequenceInsert", insert),
    ("SequenceLength", |b| match b.sequence(0) {
        Some(values) => b.bind_constant(Tensor::scalar(values.len() as i64)?),
        None => b.emit_same(SequenceLength),
    }),
    ("SequenceMap", map),
    ("SplitToSequence", split),
]);

fn optional(b: &mut NodeBuilder) -> Result<()> {
    if b.has_input(0) {
        return pass(b);
    }
    let declared = b.kind("type")?;
    let declared = declared.ok_or_else(|| invalid("an absent value without a type"))?;
    let (kind, dtype) = (declared.kind, declared.dtype);
    b.emit(OptionalAbsent { kind, dtype }, &[])
}

/// What is there is followed as the value itself.
fn pass(b: &mut NodeBuilder) -> Result<()> {
    if let Some(values) = b.sequence(0) {
        b.bind_sequence(0, values);
        return Ok(());
    }
    let value = b.input(0)?;
    b.bind(0, value)
}

fn get_element(b: &mut NodeBuilder) -> Result<()> {
    if b.sequence(0).is_none() {
        let value = b.input(0)?;
        if b.fact(value).kind.optional {
            return b.emit(OptionalGetElement, &[Some(value)]);
        }
    }
    pass(b)
}

fn has_element(b: &mut NodeBuilder) -> Result<()> {
    let there = match b.sequence(0) {
        Some(_) => true,
        None => match b.optional(0)? {
            Some(value) if b.fact(value).kind.optional => {
                return b.emit(OptionalHasElement, &[Some(value)]);
            }
            value => value.is_some(),
        },
    };
    b.bind_constant(Tensor::from_bools(&[], &[there])?)
}

/// The tensors of input 0 and the position among them, where both are known: `i` is the input with
/// the position, `default` says what it is without.
fn followed(
    b: &mut NodeBuilder,
    i: usize,
    default: impl Fn(usize) -> usize,
) -> Result<Option<(Rc<Vec<ValueId>>, usize)>> {
    let Some(values) = b.sequence(0) else {
        return Ok(None);
    };
    let len = values.len();
    let Some(position) = b.optional(i)? else {
        return Ok(Some((values, default(len))));
    };
    let Some(known) = b.constant(position) else {
        return Ok(None);
    };
    let given = match known.to_i64s()?[..] {
        [given] => given,
        _ => return Err(invalid("a position that is not one element")),
    };
    let from_start = if given < 0 { given + len as i64 } else { given };
    match usize::try_from(from_start) {
        Ok(p) if p <= len => Ok(Some((values, p))),
        _ => Err(outside(given, len)),
    }
}

fn outside(position: impl std::fmt::Display, len: usize) -> kilim_core::Error {
    value_error(format!("position {position} of a sequence of {len}"))
}

fn insert(b: &mut NodeBuilder) -> Result<()> {
    let Some((values, at)) = followed(b, 2, |len| len)? else {
        return b.emit_same(SequenceInsert);
    };
    let value = b.input(1)?;
    let mut values = b.copy_sequence(&values);
    values.insert(at, value);
    b.bind_sequence(0, values);
    Ok(())
}

fn erase(b: &mut NodeBuilder) -> Result<()> {
    let Some((values, at)) = followed(b, 1, |len| len.saturating_sub(1))? else {
        return b.emit_same(SequenceErase);
    };
    let mut values = b.copy_sequence(&values);
    if at >= values.len() {
        return Err(outside(at, values.len()));
    }
    values.remove(at);
    b.bind_sequence(0, values);
    Ok(())
}

fn at(b: &mut NodeBuilder) -> Result<()> {
    let Some((values, at)) = followed(b, 1, |_| 0)? else {
        return b.emit_same(SequenceAt);
    };
    let value = values.get(at).copied();
    let value = value.ok_or_else(|| outside(at, values.len()))?;
    b.bind(0, value)
}

/// The body once for each tensor of the first sequence; a loop where its length is not known.
fn map(b: &mut NodeBuilder) -> Result<()> {
    let mut lists = Vec::new();
    for i in 0..b.input_count() {
        lists.push(b.sequence(i));
    }
    let Some(Some(first)) = lists.first() else {
        return map_in_loop(b);
    };
    let mut rows = vec![Vec::new(); first.len()];
    for (k, list) in lists.iter().enumerate() {
        let value = match list {
            Some(values) if values.len() < rows.len() => {
                return Err(outside(values.len(), values.len()));
            }
            Some(_) => None,
            None => {
                let value = b.input(k)?;
                if !b.fact(value).kind.is_tensor() {
                    return map_in_loop(b);
                }
                Some(value)
            }
        };
        for (i, row) in rows.iter_mut().enumerate() {
            let of_list = list.as_ref().and_then(|values| values.get(i)).copied();
            row.extend(of_list.or(value));
        }
    }
    let mut outputs = vec![Vec::new(); b.output_count()];
    for row in rows {
        let made = b.inline("body", &row)?;
        for (list, value) in outputs.iter_mut().zip(made) {
            list.push(value);
        }
    }
    for (i, values) in outputs.into_iter().enumerate() {
        b.bind_sequence(i, values);
    }
    Ok(())
}

/// The function body that the standard gives SequenceMap: each turn takes one tensor of every
/// sequence, and puts what the body makes of them at the end of the outputs.
fn map_in_loop(b: &mut NodeBuilder) -> Result<()> {
    let given = b.required_from(0)?;
    let first = *given.first().ok_or_else(|| invalid("no inputs"))?;
    let trips = b.op(SequenceLength, &[first])?;
    let empty = b.op(SequenceConstruct, &[])?;
    let going = b.tensor_value(Tensor::from_bools(&[], &[true])?);
    let made = b.output_count();
    let sequences: Vec<bool> = given.iter().map(|&v| !b.fact(v).kind.is_tensor()).collect();
    // Iteration, condition, the outputs so far, the inputs.
    let mut formals = vec![trips, going];
    formals.extend(vec![empty; made]);
    formals.extend(&given);
    let body = b.new_body(&formals, |b, inner| {
        let (turn, outputs) = inner.split_at(2);
        let (outputs, inputs) = outputs.split_at(made);
        let mut row = Vec::with_capacity(inputs.len());
        for (&v, &sequence) in inputs.iter().zip(&sequences) {
            row.push(match sequence {
                true => b.op(SequenceAt, &[v, turn[0]])?,
                false => v,
            });
        }
        let new = b.inline("body", &row)?;
        let mut results = vec![turn[1]];
        for (&list, &value) in outputs.iter().zip(&new) {
            results.push(b.op(SequenceInsert, &[list, value])?);
        }
        Ok(results)
    })?;
    let op = Loop {
        body: Arc::new(body.graph),
        carried: made,
    };
    let mut inputs = vec![Some(trips), None];
    inputs.extend(vec![Some(empty); made]);
    inputs.extend(given.into_iter().chain(body.captures).map(Some));
    b.emit(op, &inputs)
}

fn concat(b: &mut NodeBuilder) -> Result<()> {
    let axis = b.int_or("axis", 0)?;
    let new_axis = b.flag("new_axis")?;
    let values = match b.sequence(0) {
        Some(values) if !values.is_empty() => values,
        _ => return b.emit_same(ConcatFromSequence { axis, new_axis }),
    };
    let mut parts = b.copy_sequence(&values);
    if new_axis {
        for part in &mut parts {
            *part = b.unsqueeze(*part, &[axis])?;
        }
    }
    let y = b.concat(&parts, axis)?;
    b.bind(0, y)
}

fn split(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let axis = b.int_or("axis", 0)?;
    let keep_dims = b.int_or("keepdims", 1)? != 0 || b.has_input(1);
    let Some(sizes) = known_sizes(b, x, axis)? else {
        return b.emit_same(SplitToSequence { axis, keep_dims });
    };
    let parts = b.i64s(&sizes)?;
    let mut values = b.apply(Split { axis }, &[Some(x), Some(parts)], sizes.len())?;
    if !keep_dims {
        for v in &mut values {
            *v = b.squeeze(*v, &[axis])?;
        }
    }
    b.bind_sequence(0, values);
    Ok(())
}

/// The sizes that `x` is split into, where they are known and few.
fn known_sizes(b: &mut NodeBuilder, x: ValueId, axis: i64) -> Result<Option<Vec<i64>>> {
    let Some(shape) = b.fact(x).shape else {
        return Ok(None);
    };
    let at = b.axis_of(x, axis)?;
    let size = shape.0[at].known().filter(|&n| n <= MAX_LENGTH);
    let given = match b.optional(1)? {
        Some(v) => match b.constant(v) {
            Some(tensor) => Some(tensor),
            None => return Ok(None),
        },
        None => None,
    };
    let sizes = match (given, size) {
        (Some(sizes), _) if sizes.rank() > 0 => sizes.to_i64s()?,
        (Some(chunk), Some(size)) => match chunk.to_i64s()?[..] {
            [chunk] if chunk > 0 => chunks(size as i64, chunk),
            _ => return Err(value_error("the size of the parts must be positive")),
        },
        (None, Some(size)) => vec![1; size],
        (_, None) => return Ok(None),
    };
    let few = !sizes.is_empty() && sizes.len() <= MAX_LENGTH;
    Ok(few.then_some(sizes))
}

/// Parts of `chunk`, the last one smaller.
fn chunks(size: i64, chunk: i64) -> Vec<i64> {
    let mut sizes = vec![chunk; (size / chunk) as usize];
    if size % chunk != 0 {
        sizes.push(size % chunk);
    }
    sizes
}

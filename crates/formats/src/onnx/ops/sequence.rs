//! Sequences of tensors, followed while the graph is built. What is known only at run time, the
//! length or a position, is refused.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::Split;

use super::OpTable;
use crate::onnx::builder::NodeBuilder;

/// The longest sequence that is made by splitting.
const MAX_LENGTH: usize = 1 << 12;

pub fn register(table: &mut OpTable) {
    table.add("SequenceEmpty", |b| {
        b.bind_sequence(0, Vec::new());
        Ok(())
    });
    table.add("SequenceConstruct", |b| {
        let values = b.required_from(0)?;
        b.bind_sequence(0, values);
        Ok(())
    });
    table.add("SequenceInsert", insert);
    table.add("SequenceErase", erase);
    table.add("SequenceAt", at);
    table.add("SequenceLength", |b| {
        let n = b.sequence(0)?.len() as i64;
        let tensor = kilim_core::Tensor::scalar(n)?;
        b.bind_constant(tensor)
    });
    table.add("SequenceMap", map);
    table.add("Optional", pass);
    table.add("OptionalGetElement", pass);
    table.add("OptionalHasElement", |b| {
        let there = b.sequence(0).is_ok() || b.optional(0)?.is_some();
        let tensor = kilim_core::Tensor::from_bools(&[], &[there])?;
        b.bind_constant(tensor)
    });
    table.add("ConcatFromSequence", concat);
    table.add("SplitToSequence", split);
}

/// An optional value that is there is followed as the value itself.
fn pass(b: &mut NodeBuilder) -> Result<()> {
    if let Ok(values) = b.sequence(0) {
        b.bind_sequence(0, values.to_vec());
        return Ok(());
    }
    match b.optional(0)? {
        Some(value) => b.bind(0, value),
        None => Err(unsupported("an optional value without an element")),
    }
}

/// A position in a sequence of `len`, which input `i` gives.
fn position(b: &mut NodeBuilder, i: usize, len: usize, default: usize) -> Result<usize> {
    let Some(given) = b.constant_ints(i)? else {
        return Ok(default);
    };
    let given = given.first().copied().unwrap_or(0);
    let from_start = if given < 0 { given + len as i64 } else { given };
    match usize::try_from(from_start) {
        Ok(p) if p <= len => Ok(p),
        _ => Err(kilim_core::error::value_error(format!(
            "position {given} of a sequence of {len}"
        ))),
    }
}

fn out_of_range() -> kilim_core::Error {
    kilim_core::error::value_error("a position behind the end of a sequence")
}

fn insert(b: &mut NodeBuilder) -> Result<()> {
    let mut values = b.sequence(0)?.to_vec();
    let value = b.input(1)?;
    let len = values.len();
    let at = position(b, 2, len, len)?;
    values.insert(at, value);
    b.bind_sequence(0, values);
    Ok(())
}

fn erase(b: &mut NodeBuilder) -> Result<()> {
    let mut values = b.sequence(0)?.to_vec();
    let len = values.len();
    let at = position(b, 1, len, len.saturating_sub(1))?;
    if at >= len {
        return Err(out_of_range());
    }
    values.remove(at);
    b.bind_sequence(0, values);
    Ok(())
}

fn at(b: &mut NodeBuilder) -> Result<()> {
    let values = b.sequence(0)?;
    let at = position(b, 1, values.len(), 0)?;
    let value = values.get(at).copied().ok_or_else(out_of_range)?;
    b.bind(0, value)
}

/// The body once for each tensor of the first sequence.
fn map(b: &mut NodeBuilder) -> Result<()> {
    let first = b.sequence(0)?;
    let mut outputs = vec![Vec::new(); b.output_count()];
    for i in 0..first.len() {
        let mut inputs = vec![first[i]];
        for k in 1..b.input_count() {
            inputs.push(match b.sequence(k) {
                Ok(values) => values.get(i).copied().ok_or_else(out_of_range)?,
                Err(_) => b.input(k)?,
            });
        }
        let made = b.inline("body", &inputs)?;
        for (list, value) in outputs.iter_mut().zip(made) {
            list.push(value);
        }
    }
    for (i, values) in outputs.into_iter().enumerate() {
        b.bind_sequence(i, values);
    }
    Ok(())
}

fn concat(b: &mut NodeBuilder) -> Result<()> {
    let values = b.sequence(0)?;
    let axis = b.int_or("axis", 0)?;
    let stacked;
    let parts = if b.flag("new_axis")? {
        stacked = values
            .iter()
            .map(|&v| b.unsqueeze(v, &[axis]))
            .collect::<Result<Vec<_>>>()?;
        stacked.as_slice()
    } else {
        values.as_slice()
    };
    if parts.is_empty() {
        return Err(unsupported("an empty sequence"));
    }
    let y = b.concat(parts, axis)?;
    b.bind(0, y)
}

fn split(b: &mut NodeBuilder) -> Result<()> {
    let x = b.input(0)?;
    let axis = b.int_or("axis", 0)?;
    let at = b.axis_of(x, axis)?;
    let size = b.fact(x).shape.and_then(|s| s.0[at].known());
    let given = b.optional(1)?;
    if size.is_some_and(|n| n > MAX_LENGTH) {
        return Err(unsupported(format!(
            "a sequence of more than {MAX_LENGTH} tensors"
        )));
    }
    let sizes: Vec<i64> = match (given, size) {
        (Some(v), size) => {
            let sizes = b.constant_ints(1)?.unwrap_or_default();
            match (b.rank(v)?, sizes.first(), size) {
                (0, Some(&chunk), Some(size)) if chunk > 0 => chunks(size as i64, chunk),
                (0, ..) => return Err(unsupported("a dimension that is known only at run time")),
                _ => sizes,
            }
        }
        (None, Some(size)) => vec![1; size],
        (None, None) => return Err(unsupported("a dimension that is known only at run time")),
    };
    let keep = given.is_some() || b.int_or("keepdims", 1)? != 0;
    let parts = b.i64s(&sizes)?;
    let mut values = b.apply(Split { axis }, &[Some(x), Some(parts)], sizes.len())?;
    if !keep {
        for v in &mut values {
            *v = b.squeeze(*v, &[axis])?;
        }
    }
    b.bind_sequence(0, values);
    Ok(())
}

/// Parts of `chunk`, the last one smaller.
fn chunks(size: i64, chunk: i64) -> Vec<i64> {
    let mut sizes = vec![chunk; (size / chunk) as usize];
    if size % chunk != 0 {
        sizes.push(size % chunk);
    }
    sizes
}

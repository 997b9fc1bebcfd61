//! StringSplit and StringNormalizer, whose output's shape depends on the texts. They are computed
//! when the kernel is built, because only then is the shape known.

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{InputValues, StringNormalizer, StringSplit};
use kilim_core::{Result, Tensor};

use crate::common::rules;
use crate::frame::{Build, Io, Kernel};

pub fn accepts<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 0)
}

/// Results that were computed when the kernel was built.
struct Ready {
    texts: Vec<Arc<str>>,
    /// Of the second output.
    counts: Vec<i64>,
}

impl Kernel for Ready {
    fn run(&self, io: &mut Io) -> Result<()> {
        let y = io.output::<u32>(0);
        for (y, text) in y.iter_mut().zip(&self.texts) {
            *y = io.texts().number(text)?;
        }
        if io.has_output(1) {
            io.output::<i64>(1).copy_from_slice(&self.counts);
        }
        Ok(())
    }
}

fn value<'a>(node: &'a NodeSpec) -> Result<&'a Tensor> {
    node.value(0)
        .ok_or_else(|| kilim_core::error::value_error("the value of input 0 must be known"))
}

pub fn build_split(op: &StringSplit, node: &NodeSpec, _: &mut Build) -> Result<Box<dyn Kernel>> {
    let longest = node.outputs[0].shape.last().copied().unwrap_or(0);
    let empty: Arc<str> = Arc::from("");
    let (mut texts, mut counts) = (Vec::new(), Vec::new());
    for text in value(node)?.texts()? {
        let parts = op.parts(text);
        counts.push(parts.len() as i64);
        texts.extend(parts.into_iter().map(Arc::from));
        texts.resize(counts.len() * longest, empty.clone());
    }
    Ok(Box::new(Ready { texts, counts }))
}

pub fn build_normalizer(
    op: &StringNormalizer,
    node: &NodeSpec,
    _: &mut Build,
) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(Ready {
        texts: op.normalized(value(node)?)?,
        counts: Vec::new(),
    }))
}

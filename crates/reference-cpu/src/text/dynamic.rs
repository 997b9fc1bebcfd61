//! StringSplit and StringNormalizer, whose output's shape depends on the texts. They are computed
//! when the kernel is built, because only then is the shape known.

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::memory::{push, shared_text};
use kilim_core::ops::{InputValues, StringNormalizer, StringSplit};
use kilim_core::{Result, Tensor};
use kilim_host::rules;
use kilim_host::{Build, Io, Kernel, Table};

pub fn accepts<T>(_: &T, node: &NodeSpec) -> Result<(), Refusal> {
    rules::known(node, 0)
}

/// Results that were computed when the kernel was built: rows of texts, each filled up with empty ones.
struct Ready {
    texts: Table<Arc<str>>,
    /// Texts of each row.
    counts: Table<i64>,
    /// Texts of a row of the output.
    longest: usize,
}

impl Kernel for Ready {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (cpu, y) = (io.cpu(), io.output::<u32>(0));
        let mut texts = self.texts.iter();
        for (y, &count) in y
            .chunks_exact_mut(self.longest.max(1))
            .zip(self.counts.iter())
        {
            let (own, rest) = y.split_at_mut(count as usize);
            for (y, text) in own.iter_mut().zip(&mut texts) {
                *y = io.texts().number(cpu, text)?;
            }
            // The number of the empty text.
            cpu.fill(rest, 0)?;
        }
        if io.has_output(1) {
            cpu.copy(&self.counts, io.output::<i64>(1))?;
        }
        Ok(())
    }
}

fn value<'a>(node: &'a NodeSpec) -> Result<&'a Tensor> {
    node.value(0)
        .ok_or_else(|| kilim_core::error::value_error("the value of input 0 must be known"))
}

pub fn build_split(
    op: &StringSplit,
    node: &NodeSpec,
    build: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let (cpu, rows) = (build.cpu(), value(node)?.texts()?);
    let empty: Arc<str> = Arc::from("");
    let mut texts = Vec::new();
    let mut counts = build.room(rows.len())?;
    for row in rows {
        let before = texts.len();
        op.parts(cpu, row, &mut |part| {
            let text = match part {
                "" => empty.clone(),
                part => shared_text(part)?,
            };
            push(&mut texts, text)
        })?;
        counts.push((texts.len() - before) as i64);
    }
    Ok(Box::new(Ready {
        texts: build.keep(texts)?,
        counts,
        longest: node.outputs[0].shape.last().copied().unwrap_or(0),
    }))
}

pub fn build_normalizer(
    op: &StringNormalizer,
    node: &NodeSpec,
    build: &mut Build,
) -> Result<Box<dyn Kernel>> {
    let texts = op.normalized(build.cpu(), value(node)?)?;
    Ok(Box::new(Ready {
        counts: build.keep(vec![texts.len() as i64])?,
        longest: texts.len(),
        texts: build.keep(texts)?,
    }))
}

//! TfIdfVectorizer: counts of n-grams, weighted.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::ops::{BinaryKind, CountNgrams};
use kilim_core::tensor::Tensor;

use super::OpTable;
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub fn register(table: &mut OpTable) {
    table.add("TfIdfVectorizer", vectorizer);
}

fn vectorizer(b: &mut NodeBuilder) -> Result<()> {
    let mut x = b.input(0)?;
    let pool = match b.ints("pool_int64s")? {
        Some(pool) => {
            x = b.cast(x, DType::I64)?;
            Tensor::from_slice(&[pool.len()], &pool)?
        }
        None => b.text_list("pool_strings")?,
    };
    let missing = |name: &str| invalid(format!("the attribute `{name}` is missing"));
    let counts = |name: &str| b.counts(name)?.ok_or_else(|| missing(name));
    let shortest = b.count("min_gram_length", None)?.max(1);
    let op = CountNgrams {
        starts: counts("ngram_counts")?,
        columns: counts("ngram_indexes")?,
        lengths: (shortest, b.count("max_gram_length", None)?),
        skips: b.count("max_skip_count", None)?,
    };
    let weights = b.floats("weights")?.filter(|w| !w.is_empty());
    let width = op.width();
    if weights.as_ref().is_some_and(|w| w.len() != width) {
        return Err(invalid("not as many weights as columns"));
    }
    let pool = b.tensor_value(pool);
    let mut y = b.op(op, &[x, pool])?;
    let weighted = match b.text_or("mode", "")? {
        "TF" => false,
        "IDF" => {
            let zero = b.number(0.0, y)?;
            let there = b.binary(BinaryKind::Greater, y, zero)?;
            y = b.cast(there, DType::F32)?;
            true
        }
        "TFIDF" => true,
        other => return Err(unknown("mode", other)),
    };
    if let Some(weights) = weights.filter(|_| weighted) {
        let weights = Tensor::from_slice(&[width], &weights)?;
        let weights = b.tensor_value(weights);
        y = b.mul(y, weights)?;
    }
    b.bind(0, y)
}

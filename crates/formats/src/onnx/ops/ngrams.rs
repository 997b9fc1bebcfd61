//! TfIdfVectorizer: counts of n-grams, weighted.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{BinaryKind, CountNgrams};
use kilim_core::tensor::Tensor;

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[("TfIdfVectorizer", vectorizer)]);

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
    let weights = match b.floats("weights")?.filter(|w| !w.is_empty()) {
        Some(weights) => {
            // A column's number may be any, however few there are.
            b.check_written_out(DType::F32, &[op.width()])?;
            Some(of_columns(&op, &weights)?)
        }
        None => None,
    };
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
        let weights = Tensor::from_slice(&[weights.len()], &weights)?;
        let weights = b.tensor_value(weights);
        y = b.mul(y, weights)?;
    }
    b.bind(0, y)
}

/// The weights of columns, from the weights of n-grams.
fn of_columns(op: &CountNgrams, weights: &[f32]) -> Result<Vec<f32>> {
    if weights.len() != op.columns.len() {
        return Err(invalid("not as many weights as n-grams"));
    }
    let mut all = vec![None; op.width()];
    for (&column, &weight) in op.columns.iter().zip(weights) {
        if all[column].is_some_and(|other| other != weight) {
            return Err(unsupported("n-grams of one column with different weights"));
        }
        all[column] = Some(weight);
    }
    Ok(all.into_iter().map(|w| w.unwrap_or(0.0)).collect())
}

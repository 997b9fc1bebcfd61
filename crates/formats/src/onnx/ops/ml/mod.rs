//! `ai.onnx.ml`, which converters of scikit-learn, XGBoost and LightGBM write: features of tables in,
//! labels and scores out.

pub mod encode;
pub mod features;
pub mod linear;
mod scores;
pub mod svm;
pub mod trees;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::tensor::Tensor;

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;

pub const DOMAIN: &str = "ai.onnx.ml";

/// The features, input 0, as rows of `dtype`.
fn rows(b: &mut NodeBuilder, dtype: DType) -> Result<ValueId> {
    let x = b.input(0)?;
    let x = b.cast(x, dtype)?;
    match b.rank(x)? {
        1 => b.unsqueeze(x, &[0]),
        _ => Ok(x),
    }
}

/// Numbers of an attribute, as a constant of `shape` in double precision.
fn numbers(b: &mut NodeBuilder, shape: &[usize], numbers: &[f64]) -> Result<ValueId> {
    let tensor = Tensor::from_slice(shape, numbers)?;
    Ok(b.tensor_value(tensor))
}

/// The numbers of attribute `name`, none where it is left out.
fn floats(b: &NodeBuilder, name: &str) -> Result<Vec<f64>> {
    let floats = b.floats(name)?.unwrap_or_default();
    Ok(floats.into_iter().map(f64::from).collect())
}

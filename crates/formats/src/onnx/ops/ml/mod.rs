//! `ai.onnx.ml`, which converters of scikit-learn, XGBoost and LightGBM write: features of tables in,
//! labels and scores out.

mod encode;
mod features;
mod linear;
mod scores;
mod svm;
mod trees;

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::tensor::Tensor;

use super::{MapFn, OpTable};
use crate::onnx::builder::NodeBuilder;

pub fn register(table: &mut OpTable) {
    let mut add = |op, map: MapFn| table.add_in("ai.onnx.ml", op, map);
    features::register(&mut add);
    encode::register(&mut add);
    linear::register(&mut add);
    svm::register(&mut add);
    trees::register(&mut add);
}

/// Where a family registers its operators.
type Add<'a> = &'a mut dyn FnMut(&'static str, MapFn);

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

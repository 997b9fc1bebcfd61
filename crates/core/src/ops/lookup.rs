//! Operators that find elements in a list of known ones (`ai.onnx.ml` and TfIdfVectorizer). Elements
//! of any type are compared for equality; NaN equals NaN.

use super::rules::fact;
use crate::Reflect;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};

/// What stands in a table for each element. Inputs: data, keys `[n]` of its element type, values
/// `[n]`, optional default (one element of the values' type). Of equal keys the last counts. Without
/// a default a key that is not there is `InvalidValue`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Lookup;

/// How often n-grams stand in each row. Inputs: items `[items]` or `[rows, items]`, and a pool of
/// all n-grams, one after the other, of the same element type. Output: `float32`, `[columns]` or
/// `[rows, columns]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct CountNgrams {
    /// Where the n-grams of one item begin in the pool, those of two, and so on.
    pub starts: Vec<usize>,
    /// The column of each n-gram.
    pub columns: Vec<usize>,
    /// The lengths that are counted, from `.0` to `.1`.
    pub lengths: (usize, usize),
    /// How many items may be left out between two of an n-gram, the same number between all.
    pub skips: usize,
}

impl CountNgrams {
    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.columns
            .iter()
            .map(|&c| c.saturating_add(1))
            .max()
            .unwrap_or(0)
    }
}

impl Operator for Lookup {
    fn name(&self) -> &'static str {
        "LabelEncoder"
    }

    signature! { (data, keys, values, optional default) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(3)?;
        ctx.common_type([0, 1])?;
        let dtype = ctx.common_type([2, 3])?;
        let keys = ctx
            .shape_of_rank(1, 1)?
            .map_or(Dim::Unknown, |s| s.0[0].clone());
        ctx.vector(2, &keys)?;
        ctx.scalar(3)?;
        Ok(vec![fact(dtype, ctx.shape(0)?.cloned())])
    }
}

impl Operator for CountNgrams {
    fn name(&self) -> &'static str {
        "TfIdfVectorizer"
    }

    signature! { (data, pool) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(2)?;
        ctx.common_type([0, 1])?;
        ctx.shape_of_rank(1, 1)?;
        let shape = match ctx.shape(0)? {
            Some(x) if x.rank() == 1 || x.rank() == 2 => {
                let mut shape = x.clone();
                shape.0[x.rank() - 1] = Dim::Known(self.width());
                Some(shape)
            }
            Some(x) => {
                return Err(shape_error("items must be a vector or a matrix").with_got(x));
            }
            None => None,
        };
        Ok(vec![fact(Some(DType::F32), shape)])
    }
}

//! Maps (`ai.onnx.ml`), run by `builtin`.

use super::rules::{fact, wrong_count};
use crate::Reflect;
use crate::datum::{Form, Kind};
use crate::dim::{Dim, Shape};
use crate::error::{Result, dtype_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};
use crate::tensor::Tensor;

/// A map for each row of a matrix `[rows, keys]`, or one for a vector `[keys]`: a sequence of maps.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct ZipMap {
    /// A vector: `int64` or strings.
    pub keys: Tensor,
}

/// What a map has for each of `keys`, a vector; zero for keys that the map does not have.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct DictVectorizer {
    /// A vector: `int64` or strings.
    pub keys: Tensor,
}

/// What a map with `int64` keys has, as a row `[1, n]`: in ascending order of the keys, or, where
/// the row has a length, each at the place that its key says, and zero elsewhere.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct MapValues {
    pub length: Option<usize>,
}

impl Operator for MapValues {
    fn name(&self) -> &'static str {
        "MapValues"
    }

    signature! { (map) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let given = ctx.fact(0)?;
        if given.kind != Kind::from(Form::Map) {
            return Err(dtype_error("the input is not a map").with_got(given.kind));
        }
        let length = self.length.map_or(Dim::Unknown, Dim::Known);
        Ok(vec![fact(
            given.dtype,
            Some(Shape(vec![Dim::Known(1), length])),
        )])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for ZipMap {
    fn name(&self) -> &'static str {
        "ZipMap"
    }

    signature! { (data) -> (maps) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        if let Some(x) = ctx.shape(0)?
            && let Some(columns) = x.0.last().and_then(Dim::known)
            && columns != self.keys.len()
        {
            return Err(wrong_count("a row", self.keys.len(), columns));
        }
        Ok(vec![Fact {
            dtype: ctx.dtype(0)?,
            shape: None,
            kind: Form::MapSequence.into(),
        }])
    }

    fn on_values(&self) -> bool {
        true
    }
}

impl Operator for DictVectorizer {
    fn name(&self) -> &'static str {
        "DictVectorizer"
    }

    signature! { (map) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let given = ctx.fact(0)?;
        if given.kind != Kind::from(Form::Map) {
            return Err(dtype_error("the input is not a map").with_got(given.kind));
        }
        let shape = Shape::fixed(&[self.keys.len()]);
        Ok(vec![fact(given.dtype, Some(shape))])
    }

    fn on_values(&self) -> bool {
        true
    }
}

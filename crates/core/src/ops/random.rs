//! Random numbers.

use std::sync::Arc;

use super::rules::{FLOATS, fact};
use crate::Reflect;
use crate::dim::Shape;
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator, Precision};

/// What random numbers follow.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
pub enum Distribution {
    /// Numbers from `low` on, below `high`.
    Uniform {
        low: f32,
        high: f32,
    },
    Normal {
        mean: f32,
        deviation: f32,
    },
}

/// A tensor of random numbers of `shape`, or of the shape of the input where that is `None`. With a
/// seed every run gives the same numbers, and nodes of one seed give the same as each other.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Random {
    pub distribution: Distribution,
    /// A floating-point type; `None` for that of the input.
    pub dtype: Option<DType>,
    pub shape: Option<Vec<usize>>,
    pub seed: Option<u64>,
}

impl Operator for Random {
    fn name(&self) -> &'static str {
        match (self.distribution, &self.shape) {
            (Distribution::Uniform { .. }, Some(_)) => "RandomUniform",
            (Distribution::Uniform { .. }, None) => "RandomUniformLike",
            (Distribution::Normal { .. }, Some(_)) => "RandomNormal",
            (Distribution::Normal { .. }, None) => "RandomNormalLike",
        }
    }

    signature! { (optional like) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE.with_precision(Precision::Named)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        if let Some(shape) = &self.shape {
            FLOATS.check(0, self.dtype)?;
            return Ok(vec![fact(self.dtype, Some(Shape::fixed(shape)))]);
        }
        let like = ctx.fact(0)?;
        let dtype = self.dtype.or(like.dtype);
        FLOATS.check(0, dtype)?;
        Ok(vec![fact(dtype, like.shape.clone())])
    }

    fn shape_only(&self) -> bool {
        true
    }

    fn deterministic(&self) -> bool {
        self.seed.is_some()
    }

    fn in_precision(&self, dtype: DType) -> Option<Arc<dyn Operator>> {
        Some(Arc::new(Random {
            dtype: Some(dtype),
            ..self.clone()
        }))
    }
}

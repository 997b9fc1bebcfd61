//! Probabilities of classes from those of pairs.

use super::rules::{FLOATS, fact, unify};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::Result;
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};

/// Input `[rows, pairs]`: for each two of `classes` (0 and 1, 0 and 2, … 1 and 2, …) the probability
/// of the first. Output `[rows, classes]`: what fits them best, by the second method of Wu, Lin and
/// Weng 2004, as libsvm approximates it.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct PairwiseCoupling {
    pub classes: usize,
}

impl PairwiseCoupling {
    /// Pairs of different classes; of more classes than memory could hold pairs of, fewer than there are.
    pub fn pairs(&self) -> usize {
        self.classes.saturating_mul(self.classes.saturating_sub(1)) / 2
    }
}

impl Operator for PairwiseCoupling {
    fn name(&self) -> &'static str {
        "PairwiseCoupling"
    }

    signature! { (pairs) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &FLOATS)?;
        let rows = match ctx.shape_of_rank(0, 2)? {
            Some(x) => {
                let pairs = Dim::Known(self.pairs());
                unify(&x.0[1], &pairs, || "the number of pairs".to_string())?;
                x.0[0].clone()
            }
            None => Dim::Unknown,
        };
        let shape = Shape(vec![rows, Dim::Known(self.classes)]);
        Ok(vec![fact(dtype, Some(shape))])
    }
}

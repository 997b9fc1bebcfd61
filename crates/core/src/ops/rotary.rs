//! Rotary embedding.

use super::rules::{FLOATS, broadcasts_to, fact, unify};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};

/// Rotary embedding (Su et al. 2021, arXiv 2104.09864; RotaryEmbedding of ONNX's opset 23): turns pairs of numbers of the last
/// dimension by angles.
///
/// Inputs:
/// 0. x `[.., size]`;
/// 1. cosines `[.., n]`;
/// 2. sines `[.., n]`.
///
/// All are of one floating-point type. The dimensions of cosines and sines before the last one broadcast to those of x. The output has
/// x's shape. Of each row the first numbers turn, two for each pair: with the angle `c, s` of its pair, `a` becomes
/// `a · c - b · s` and `b` becomes `b · c + a · s`. Numbers behind the pairs stay as they are.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct RotaryEmbedding {
    /// The numbers of a pair stand beside each other. Otherwise the first of all pairs stand in front of the second of all pairs.
    pub interleaved: bool,
    pub angles: Angles,
    /// Whether numbers may stand behind the pairs. Otherwise angles for only a part of a row are an error.
    pub partial: bool,
}

/// What has an angle of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum Angles {
    /// Each pair.
    OfPairs,
    /// Each number of a pair: `a` turns by the angle at its place and `b` by the angle at its own.
    OfNumbers,
}

impl RotaryEmbedding {
    /// How many numbers of a row turn where it has `angles` angles.
    pub fn turned(&self, angles: usize) -> usize {
        match self.angles {
            Angles::OfPairs => angles.saturating_mul(2),
            Angles::OfNumbers => angles,
        }
    }

    /// `Shape` where `angles` angles are not for a row of `size` numbers.
    fn check(&self, size: &Dim, angles: &Dim) -> Result<()> {
        let Some(turned) = angles.known().map(|n| self.turned(n)) else {
            return Ok(());
        };
        let whole = |n: &usize| *n == turned || self.partial && *n > turned;
        if turned.is_multiple_of(2) && size.known().as_ref().is_none_or(whole) {
            return Ok(());
        }
        let expected = match self.partial {
            true => format!("angles for pairs of at most {size} numbers"),
            false => format!("angles for pairs of {size} numbers"),
        };
        Err(shape_error("the angles do not fit the numbers that turn")
            .with_expected(expected)
            .with_got(format!("angles for {turned} numbers")))
    }
}

impl Operator for RotaryEmbedding {
    fn name(&self) -> &'static str {
        "RotaryEmbedding"
    }

    signature! { (data, cosines, sines) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        ctx.require(3)?;
        let dtype = ctx.common_type(0..3)?;
        let x = ctx.shape_of_min_rank(0, 1)?;
        let cosines = ctx.shape_of_min_rank(1, 1)?.and_then(|s| s.0.last());
        let sines = ctx.shape_of_min_rank(2, 1)?.and_then(|s| s.0.last());
        let angles = match (cosines, sines) {
            (Some(c), Some(s)) => unify(s, c, || "the last dimension of the sines".to_string())?,
            (Some(n), None) | (None, Some(n)) => n.clone(),
            (None, None) => Dim::Unknown,
        };
        let size = x.and_then(|x| x.0.last()).unwrap_or(&Dim::Unknown);
        self.check(size, &angles)?;
        if let Some(x) = x {
            let mut whole = x.clone();
            whole.0.pop();
            for (i, what) in [(1, "cosines"), (2, "sines")] {
                let before = ctx.shape(i)?.map(|s| Shape(s.0[..s.rank() - 1].to_vec()));
                if let Some(before) = before {
                    let what = format!("the {what}, but for the last dimension,");
                    broadcasts_to(&before, &whole, &what)?;
                }
            }
        }
        Ok(vec![fact(dtype, x.cloned())])
    }
}

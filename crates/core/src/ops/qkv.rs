//! Queries, keys and values that a single product has made.

use super::index::longer;
use super::rotary::{Angles, RotaryEmbedding};
use super::rules::{FLOATS, INDICES, fact, unify, unify_shapes};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};

/// Takes queries, keys and values apart that stand behind each other in one tensor, turns queries and keys
/// ([`RotaryEmbedding`]), and writes keys and values on caches ([`TensorScatter`](super::TensorScatter)): what
/// com.microsoft's GroupQueryAttention with packed inputs does before it attends.
///
/// Inputs:
/// 0. packed `[batch, steps, (query_heads + 2 · key_heads) · size]`: the heads of the queries, then those of the keys, then those of the
///    values;
/// 1. cosines `[batch or 1, steps, pairs]`;
/// 2. sines, of the same shape;
/// 3. the cache of keys `[batch, key_heads, held, size]`;
/// 4. the cache of values, of the same shape;
/// 5. starts `[batch]`, `int64` or `int32`: the place of each sequence's first step in the caches;
/// 6. optional length, one number, known before the node runs: the places of the caches that the node gives, no fewer than `held`.
///    Places that neither the caches nor the steps have are zero.
///
/// The first five are of one floating-point type. Of each head of queries and keys the first `2 · pairs` numbers turn.
///
/// Outputs: queries `[batch, query_heads, steps, size]`, and the caches of keys and of values `[batch, key_heads, length, size]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct UnpackQkv {
    pub query_heads: usize,
    pub key_heads: usize,
    /// The numbers of a pair stand beside each other. Otherwise the first of all pairs stand in front of the second of all pairs.
    pub interleaved: bool,
}

impl UnpackQkv {
    /// The heads of queries, keys and values together.
    ///
    /// # Errors
    /// `Shape` where there are more than an index can count, or none of one kind.
    pub fn heads(&self) -> Result<usize> {
        let all = self.key_heads.checked_mul(2);
        let all = all.and_then(|n| n.checked_add(self.query_heads));
        all.filter(|_| self.key_heads > 0 && self.query_heads > 0)
            .ok_or_else(|| {
                shape_error("no such number of heads")
                    .with_expected("heads of queries and of keys, no more than an index counts")
                    .with_got(format!("{} and {}", self.query_heads, self.key_heads))
            })
    }

    /// How queries and keys turn.
    pub fn rotary(&self) -> RotaryEmbedding {
        RotaryEmbedding {
            interleaved: self.interleaved,
            angles: Angles::OfPairs,
            partial: true,
        }
    }

    /// The numbers of a head, by the last dimension of what is packed.
    fn size(&self, width: &Dim) -> Result<Dim> {
        let heads = self.heads()?;
        match width.known() {
            None => Ok(Dim::Unknown),
            Some(width) if width.is_multiple_of(heads) => Ok(Dim::Known(width / heads)),
            Some(width) => Err(shape_error("the packed numbers are not of so many heads")
                .with_expected(format!("a multiple of {heads}"))
                .with_got(width)),
        }
    }

    /// `Shape` where the angles are not for heads of `size` numbers.
    fn check(ctx: &InferContext, batch: &Dim, steps: &Dim, size: &Dim) -> Result<()> {
        let mut pairs = Dim::Unknown;
        for (i, what) in [(1, "cosines"), (2, "sines")] {
            let Some(shape) = ctx.shape_of_rank(i, 3)? else {
                continue;
            };
            let name = |dim: &str| format!("the {dim} of the {what}");
            if shape.0[0] != Dim::Known(1) {
                unify(&shape.0[0], batch, || name("batch"))?;
            }
            unify(&shape.0[1], steps, || name("steps"))?;
            pairs = unify(&shape.0[2], &pairs, || name("pairs"))?;
        }
        match (pairs.known(), size.known()) {
            (Some(pairs), Some(size)) if pairs > size / 2 => {
                Err(shape_error("more numbers turn than a head has")
                    .with_expected(format!("at most {} pairs", size / 2))
                    .with_got(pairs))
            }
            _ => Ok(()),
        }
    }
}

impl Operator for UnpackQkv {
    fn name(&self) -> &'static str {
        "UnpackQkv"
    }

    signature! {
        (
            packed, cosines, sines, key_cache, value_cache, starts, optional length
        ) -> (query, keys, values)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        ctx.require(6)?;
        ctx.typed(5, &INDICES)?;
        let dtype = ctx.common_type(0..5)?;
        let heads = |n| Dim::Known(n);
        let [mut batch, mut steps, mut size] = [Dim::Unknown, Dim::Unknown, Dim::Unknown];
        if let Some(packed) = ctx.shape_of_rank(0, 3)? {
            size = self.size(&packed.0[2])?;
            [batch, steps] = [packed.0[0].clone(), packed.0[1].clone()];
        }
        let mut cache = Shape(vec![batch, heads(self.key_heads), Dim::Unknown, size]);
        for (i, what) in [(3, "keys"), (4, "values")] {
            if let Some(shape) = ctx.shape_of_rank(i, 4)? {
                cache = unify_shapes(shape, &cache, || format!("the cache of {what}"))?;
            }
        }
        let [batch, _, held, size] = [0, 1, 2, 3].map(|i| cache.0[i].clone());
        UnpackQkv::check(ctx, &batch, &steps, &size)?;
        ctx.vector(5, &batch)?;
        let length = longer(&held, ctx, 6)?;
        if let (Some(steps), Some(length)) = (steps.known(), length.known())
            && steps > length
        {
            return Err(
                shape_error("there are more steps than the caches have places")
                    .with_expected(format!("at most {length}"))
                    .with_got(steps),
            );
        }
        cache.0[2] = length;
        let queries = Shape(vec![batch, heads(self.query_heads), steps, size]);
        Ok(vec![
            fact(dtype, Some(queries)),
            fact(dtype, Some(cache.clone())),
            fact(dtype, Some(cache)),
        ])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[6]
    }

    fn writes_on(&self, output: usize) -> Option<usize> {
        match output {
            1 => Some(3),
            2 => Some(4),
            _ => None,
        }
    }
}

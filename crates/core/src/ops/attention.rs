//! Attention.

use super::rules::{FLOATS, Types, broadcasts_to, fact, unify};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error, value_error};
use crate::fact::{Cost, Fact};
use crate::graph::{Flow, InferContext, Operator};

/// Scaled dot-product attention: `softmax(scale · query · keyᵀ + bias) · value` for each head (Vaswani et al. 2017; the
/// operator Attention of ONNX's opset 24).
///
/// Inputs:
/// 0. query `[batch, query heads, queries, size]`;
/// 1. key `[batch, key heads, keys, size]`;
/// 2. value `[batch, key heads, keys, value size]`;
/// 3. optional bias, added to the scores, which broadcasts to `[batch, query heads, queries, keys]`;
/// 4. optional offset, `int64` `[1]` or `[batch]`: how many keys stand before the first query, 0 where it is left out;
///    only with [`Align::Start`];
/// 5. optional lengths, `int64` `[batch]`: how many keys each batch has; those behind are padding;
/// 6. optional sinks `[query heads]`: for each head a score beside those of the keys, which takes its share of the softmax and
///    gives nothing.
///
/// Keys and values may be `int8`, both of them: each is the number that it is, and what they are steps of is in the queries and in what
/// reads the output. All others but offset and lengths are of one floating-point type; sums are in `float32`, those of `float64` in `float64`. The output
/// is `[batch, query heads, queries, value size]`. There are a whole number of query heads for each key head: query head
/// `h` reads key head `h / (query heads / key heads)`.
///
/// Query `i` stands at position `p = offset + i`. It sees key `j` where `j` is below the length of its batch,
/// `!causal || j <= p`, `left < 0 || j >= p - left`, and `right < 0 || j <= p + right`. A key that it does not see has the weight
/// zero. Keys and values that no query of a batch sees may hold anything. Where there are no keys at all the output is zero.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Attention {
    /// Multiplies the products of queries and keys.
    pub scale: f32,
    /// Scores become `cap · tanh(score / cap)` before the bias is added.
    pub softcap: Option<f32>,
    /// No query sees a key behind its own position.
    pub causal: bool,
    /// How many keys before its position a query sees; negative: all.
    pub left: i64,
    /// How many keys behind its position a query sees; negative: all.
    pub right: i64,
    pub align: Align,
    /// The output of a query whose scores are all minus infinity, because it sees no key or by its bias: zero where true, otherwise NaN,
    /// which is what a softmax gives.
    pub zeros: bool,
}

/// Where the first query stands among the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum Align {
    /// At the offset, input 4.
    Start,
    /// The last query stands at the last key: the offset is keys - queries.
    End,
}

impl Default for Attention {
    /// Every query sees every key, and products stay as they are.
    fn default() -> Attention {
        Attention {
            scale: 1.0,
            softcap: None,
            causal: false,
            left: -1,
            right: -1,
            align: Align::Start,
            zeros: false,
        }
    }
}

const POSITIONS: Types = Types::new("int64", |d| d == DType::I64);

/// Operations for each score beside its products: the exponential, and what is done with it.
const SCORE: f64 = 16.0;

/// How many elements a vector may have: one of two dimensions.
fn one_or(ctx: &InferContext, i: usize, batch: &Dim) -> Result<()> {
    match ctx.shape_of_rank(i, 1)?.map(|s| &s.0[0]) {
        None | Some(Dim::Known(1)) => Ok(()),
        Some(n) => unify(n, batch, || format!("the length of input {i}")).map(|_| ()),
    }
}

impl Attention {
    /// The number of queries for each key head.
    fn groups(query_heads: &Dim, key_heads: &Dim) -> Result<()> {
        let (Some(queries), Some(keys)) = (query_heads.known(), key_heads.known()) else {
            return Ok(());
        };
        if queries == 0 || (keys > 0 && queries.is_multiple_of(keys)) {
            return Ok(());
        }
        Err(
            shape_error("several query heads do not share each key head")
                .with_expected(format!("a multiple of {keys} query heads"))
                .with_got(queries),
        )
    }
}

impl Operator for Attention {
    fn name(&self) -> &'static str {
        "Attention"
    }

    signature! {
        (
            query, key, value, optional bias, optional offset, optional lengths, optional sinks
        ) -> (output)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &FLOATS)?;
        ctx.require(3)?;
        let stored = ctx.common_type([1, 2])?;
        let dtype = match stored {
            Some(DType::I8) => ctx.common_type([0, 3, 6])?,
            _ => ctx.common_type([0, 1, 2, 3, 6])?,
        };
        for i in [4, 5] {
            ctx.typed_optional(i, &POSITIONS)?;
        }
        if self.align == Align::End && ctx.optional(4).is_some() {
            return Err(value_error(
                "queries at the end of the keys have no other offset",
            ));
        }
        let unknown = Shape::unknown(4);
        let [query, key, value] = [0, 1, 2].map(|i| ctx.shape_of_rank(i, 4));
        let [query, key, value] = [query?, key?, value?].map(|s| s.unwrap_or(&unknown));
        let part = |what: &str, i: usize| format!("{what} of input {i}");
        let batch = unify(&key.0[0], &query.0[0], || part("the batch", 1))?;
        let batch = unify(&value.0[0], &batch, || part("the batch", 2))?;
        let key_heads = unify(&value.0[1], &key.0[1], || part("the heads", 2))?;
        let keys = unify(&value.0[2], &key.0[2], || part("the keys", 2))?;
        unify(&key.0[3], &query.0[3], || part("the size", 1))?;
        Attention::groups(&query.0[1], &key_heads)?;
        let (heads, queries) = (query.0[1].clone(), query.0[2].clone());
        if let Some(bias) = ctx.shape_optional(3) {
            let scores = Shape(vec![batch.clone(), heads.clone(), queries.clone(), keys]);
            broadcasts_to(bias, &scores, "the bias")?;
        }
        one_or(ctx, 4, &batch)?;
        ctx.vector(5, &batch)?;
        ctx.vector(6, &heads)?;
        let output = Shape(vec![batch, heads, queries, value.0[3].clone()]);
        Ok(vec![fact(dtype, Some(output))])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        let base = Cost::elementwise(inputs, outputs);
        let dim = |i: usize, d: usize| match inputs.get(i) {
            Some(Some(shape)) => shape.get(d).map_or(1.0, |&n| n as f64),
            _ => 1.0,
        };
        let scores = dim(0, 0) * dim(0, 1) * dim(0, 2) * dim(1, 2);
        Cost {
            flops: scores * (2.0 * (dim(0, 3) + dim(2, 3)) + SCORE),
            ..base
        }
    }
}

//! Arithmetic on quantised tensors whose scales are known when a model is read, in integers from end
//! to end ([`crate::fixed`]): what TFLite's quantised operators become.

use super::elementwise::UnaryKind;
use super::qlinear::Affine;
use super::rules::{BYTES, QUANTIZED, Types, broadcast, fact, same_as_first, unify};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, dtype_error, shape_error, value_error};
use crate::fact::Fact;
use crate::fixed::Factor;
use crate::graph::{Flow, InferContext, Operator};

/// 32-bit sums as a quantised type: scaled, moved to the zero point and clamped. Input: `int32`
/// `[.., c]`, or any integer type of at most 32 bits.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Requantize {
    /// One for all, or one for each channel of the last axis.
    pub factors: Vec<Factor>,
    pub zero_point: i32,
    /// The smallest and the largest result.
    pub range: [i32; 2],
    pub output: DType,
}

/// `float32` data as a quantised type, rounded with ties away from zero, which
/// [`QuantizeLinear`] takes to even.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct AffineQuantize {
    pub scale: f32,
    pub zero_point: i32,
    pub output: DType,
}

/// Replaces each element by one of a table. Inputs: `int8` or `uint8` data, table `[256]`. The table
/// is indexed by the byte, so that negative numbers find theirs in its second half.
#[derive(Clone, Debug, Default, PartialEq, Reflect)]
pub struct TableLookup {
    /// What the table was made of, for backends that have such functions of their own.
    pub of: Option<Tabulated>,
}

/// A function of the real numbers that bytes stand for.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
pub struct Tabulated {
    pub function: UnaryKind,
    pub from: Affine,
    pub to: Affine,
}

/// How [`QuantizedBinary`] combines two numbers without their zero points.
#[derive(Clone, Copy, Debug, PartialEq, Reflect)]
pub enum Combination {
    /// `(a << left_shift) * factors[0] + (b << left_shift) * factors[1]`.
    Sum {
        left_shift: u32,
        factors: [Factor; 2],
    },
    /// `(a << left_shift) * factors[0] - (b << left_shift) * factors[1]`.
    Difference {
        left_shift: u32,
        factors: [Factor; 2],
    },
    Product,
}

/// Combines two quantised tensors, broadcast. Inputs: two of `int8`, `uint8` or `int16`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct QuantizedBinary {
    pub zero_points: [i32; 2],
    pub combination: Combination,
    /// How the combination becomes the result, with a single factor.
    pub result: Requantize,
}

/// The softmax of `int8` or `uint8` over the last axis; the result has 256 steps from the type's
/// smallest number, which is zero, to one.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct QuantizedSoftmax {
    /// Brings a difference to 26 bits behind the point.
    pub factor: Factor,
    /// Smaller differences from the largest count as nothing.
    pub smallest: i32,
}

/// Bilinear resizing of `int8` or `uint8` images `[n, h, w, c]`, with the arithmetic of TFLite's
/// reference kernels: positions with ten bits behind the point for `int8`, `float32` for `uint8`.
/// Inputs: images, sizes `[2]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct QuantizedResize {
    pub align_corners: bool,
    pub half_pixel: bool,
}

/// Two neighbours of a place in the input, and the distance from the lower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbours<D> {
    pub lower: usize,
    pub upper: usize,
    pub distance: D,
}

impl QuantizedResize {
    /// Where the outputs of an axis of `uint8` images are. Neither length is zero.
    pub fn places(
        &self,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<f32>> + use<> {
        let half_pixel = self.half_pixel;
        let scale = match self.align_corners && output > 1 {
            true => (input - 1) as f32 / (output - 1) as f32,
            false => input as f32 / output as f32,
        };
        let place = move |o: usize| {
            let at = match half_pixel {
                true => (o as f32 + 0.5) * scale - 0.5,
                false => o as f32 * scale,
            };
            let lower = at.floor().max(0.0) as usize;
            Neighbours {
                lower: lower.min(input - 1),
                upper: (at.ceil().max(0.0) as usize).min(input - 1),
                distance: at - lower as f32,
            }
        };
        (0..output).map(place)
    }

    /// Where the outputs of an axis of `int8` images are; distances count 1024ths. Neither length is zero.
    pub fn fixed_places(
        &self,
        input: usize,
        output: usize,
    ) -> impl ExactSizeIterator<Item = Neighbours<i32>> + use<> {
        let half_pixel = self.half_pixel;
        let (from, to) = match self.align_corners && output > 1 {
            true => (input as i64 - 1, output as i64 - 1),
            false => (input as i64, output as i64),
        };
        let scale = ((from << 10) + to / 2) / to;
        let place = move |o: usize| {
            let at = match half_pixel {
                true => o as i64 * scale + scale / 2 - (1 << 9),
                false => o as i64 * scale,
            };
            let last = input as i64 - 1;
            let lower = (at / (1 << 10)).clamp(0, last);
            Neighbours {
                lower: lower as usize,
                upper: ((at + (1 << 10) - 1) / (1 << 10)).clamp(0, last) as usize,
                distance: (at - (lower << 10)) as i32,
            }
        };
        (0..output).map(place)
    }
}

impl Requantize {
    /// What becomes of a sum of channel `c`.
    #[inline(always)]
    pub fn apply(&self, c: usize, sum: i32) -> i32 {
        let factor = self.factors[if self.factors.len() == 1 { 0 } else { c }];
        let moved = factor.apply(sum).saturating_add(self.zero_point);
        moved.clamp(self.range[0], self.range[1])
    }

    /// The fact of a result of `shape`; `channels` is its last dimension.
    pub(crate) fn check(&self, shape: Option<Shape>) -> Result<Fact> {
        QUANTIZED.check(0, Some(self.output))?;
        if self.range[0] > self.range[1] || self.factors.is_empty() {
            return Err(shape_error("a range or a list of factors is empty"));
        }
        self.factors.iter().try_for_each(|factor| factor.check())?;
        if let (Some(channels), false) = (
            shape.as_ref().and_then(|s| s.0.last()),
            self.factors.len() == 1,
        ) {
            let factors = Dim::Known(self.factors.len());
            unify(&factors, channels, || "the number of factors".into())?;
        }
        Ok(fact(Some(self.output), shape))
    }
}

const NARROW: Types = Types::new("int8, uint8 or int16", |d| {
    matches!(d, DType::I8 | DType::U8 | DType::I16)
});

impl Operator for Requantize {
    fn name(&self) -> &'static str {
        "Requantize"
    }

    signature! { (sums) -> (output) }

    fn flow(&self) -> Flow {
        match self.factors.len() {
            0 | 1 => Flow::MAPPED,
            _ => Flow::OPAQUE,
        }
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &QUANTIZED)?;
        Ok(vec![self.check(ctx.shape(0)?.cloned())?])
    }
}

impl Operator for AffineQuantize {
    fn name(&self) -> &'static str {
        "AffineQuantize"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &SINGLE)?;
        QUANTIZED.check(0, Some(self.output))?;
        Ok(vec![fact(Some(self.output), ctx.shape(0)?.cloned())])
    }
}

pub(super) const SINGLE: Types = Types::new("float32", |d| d == DType::F32);

impl Operator for TableLookup {
    fn name(&self) -> &'static str {
        "TableLookup"
    }

    signature! { (data, table) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &BYTES)?;
        ctx.vector(1, &Dim::Known(256))?;
        Ok(vec![fact(ctx.dtype(1)?, ctx.shape(0)?.cloned())])
    }
}

impl Operator for QuantizedBinary {
    fn name(&self) -> &'static str {
        "QuantizedBinary"
    }

    signature! { (a, b) -> (output) }

    fn flow(&self) -> Flow {
        Flow::joined(false)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        for i in [0, 1] {
            ctx.typed(i, &NARROW)?;
        }
        if self.result.factors.len() != 1 {
            return Err(shape_error("two tensors are combined with one factor"));
        }
        let shape = match (ctx.shape(0)?, ctx.shape(1)?) {
            (Some(a), Some(b)) => Some(broadcast(a, b)?),
            _ => None,
        };
        Ok(vec![self.result.check(shape)?])
    }
}

impl Operator for QuantizedSoftmax {
    fn name(&self) -> &'static str {
        "QuantizedSoftmax"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &BYTES)?;
        if ctx.shape(0)?.is_some_and(|s| s.rank() == 0) {
            return Err(dtype_error("the softmax of a scalar"));
        }
        self.factor.check()?;
        if self.smallest > 0 {
            return Err(
                value_error("the smallest difference of a softmax is at most 0")
                    .with_got(self.smallest),
            );
        }
        same_as_first(ctx)
    }
}

impl Operator for QuantizedResize {
    fn name(&self) -> &'static str {
        "QuantizedResize"
    }

    signature! { (data, sizes) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.require(2)?;
        let dtype = ctx.typed(0, &BYTES)?;
        ctx.vector(1, &Dim::Known(2))?;
        let mut shape = match ctx.shape_of_rank(0, 4)? {
            Some(x) => x.clone(),
            None => Shape::unknown(4),
        };
        let asked = match ctx.ints(1)? {
            Some(sizes) => sizes
                .iter()
                .map(|&s| usize::try_from(s).ok().filter(|&s| s > 0).map(Dim::Known))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(|| shape_error("a size is not positive"))?,
            None => vec![Dim::Unknown; 2],
        };
        for (dim, asked) in shape.0[1..3].iter_mut().zip(asked) {
            *dim = asked;
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}

//! Weights and tables of 2, 4 or 8 bits that stay packed, with a scale for each block of neighbours.

use std::sync::Arc;

use super::axes::normalize_axis;
use super::matmul::matmul_cost;
use super::rules::{
    FLOATS, INDICES, QUANTIZED, Types, fact, times, too_large, unify, unify_shapes,
};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Result, shape_error, unsupported};
use crate::fact::{Cost, Fact};
use crate::graph::{Activation, Flow, InferContext, NodeView, Operator};

/// `activation(a · wᵀ + bias + addend) * factor` with packed weights `w`, `[n, k]`.
///
/// Inputs: `a` `[.., k]`; packed weights, `uint8`; a scale for each block, `n * blocks` of the type of `a`; optional
/// zero points, packed `uint8` (each row begins with a byte of its own) or as the scales; optional `int32` block of
/// each column, at least `k`; optional bias `[n]`; optional addend and optional factor, of the output's shape.
///
/// A row of weights is `blocks = k / block`, rounded up, of `block * bits / 8` bytes, lowest bits first. A weight is
/// `(number - zero) * scale`; without zero points zero is `2^(bits - 1)`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct MatMulNBits {
    pub k: usize,
    pub n: usize,
    pub bits: usize,
    pub block: usize,
    /// Whether a kernel may round `a` to `int8`: each block of a row to multiples of a 127th of its largest magnitude.
    pub int8: bool,
    pub activation: Activation,
}

/// Gather of a table with a scale for each block of neighbours along `quantize_axis`.
///
/// Inputs: the table, of a type of 2, 4 or 8 bits, or packed into `uint8` along its last dimension; indices; scales;
/// optional zero points of the table's type, or one for each block in the scales' type. The output has the scales' type. A
/// packed table has its blocks along its last dimension and is gathered along another; zero points of its type are packed in
/// the same way, and are `2^(bits - 1)` where there are none. Those of other tables are 0.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct GatherBlockQuantized {
    pub gather_axis: i64,
    pub quantize_axis: i64,
    pub block: usize,
    pub bits: usize,
}

/// How many numbers of `bits` bits a byte holds.
///
/// # Errors
/// `Unsupported` where they are not 2, 4 or 8 bits.
pub fn numbers_in_byte(bits: usize) -> Result<usize> {
    match bits {
        2 | 4 | 8 => Ok(8 / bits),
        _ => Err(unsupported(format!("packed numbers of {bits} bits")).with_expected("2, 4 or 8")),
    }
}

impl MatMulNBits {
    /// Blocks of a row, bytes of a block, and bytes of the packed zero points of a row.
    ///
    /// # Errors
    /// `Unsupported` where blocks are no whole bytes; `Shape` where the weights are too many.
    pub fn row(&self) -> Result<[usize; 3]> {
        let in_byte = numbers_in_byte(self.bits)?;
        if self.block == 0 || !self.block.is_multiple_of(in_byte) || self.k == 0 {
            return Err(unsupported(format!(
                "{} columns of {} bits in blocks of {}",
                self.k, self.bits, self.block
            )));
        }
        let row = [
            self.k.div_ceil(self.block),
            self.block / in_byte,
            self.k.div_ceil(self.block).div_ceil(in_byte),
        ];
        let rows = row[0]
            .checked_mul(row[1])
            .and_then(|n| n.checked_mul(self.n));
        rows.map(|_| row).ok_or_else(too_large)
    }
}

/// `Shape` where input `i` is there with another number of elements.
fn has_elements(ctx: &InferContext, i: usize, expected: usize) -> Result<()> {
    match ctx.shape_optional(i).and_then(Shape::elements) {
        Some(got) if got != expected => {
            let e = shape_error("an input that does not fit the packed weights");
            Err(e.with_input(i).with_expected(expected).with_got(got))
        }
        _ => Ok(()),
    }
}

pub(super) const PACKED: Types = Types::new("uint8", |d| d == DType::U8);
pub(super) const ZEROS: Types = Types::new("uint8 or a floating-point type", |d| {
    d == DType::U8 || d.is_float()
});
const ANY_ZEROS: Types = Types::new("the table's type or that of the scales", |_| true);
const BLOCK_OF_COLUMN: Types = Types::new("int32", |d| d == DType::I32);

impl Operator for MatMulNBits {
    fn name(&self) -> &'static str {
        "MatMulNBits"
    }

    signature! {
        (
            a, weights, scales, optional zero_points, optional block_of_column, optional bias,
            optional addend, optional factor
        ) -> (output)
    }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let [blocks, bytes, zero_bytes] = self.row()?;
        ctx.typed(0, &FLOATS)?;
        ctx.typed(1, &PACKED)?;
        ctx.input(2)?;
        let dtype = ctx.common_type([0, 2, 5, 6, 7])?;
        has_elements(ctx, 1, self.n * blocks * bytes)?;
        has_elements(ctx, 2, self.n * blocks)?;
        if let Some(zeros) = ctx.typed_optional(3, &ZEROS)? {
            let packed = zeros == DType::U8;
            if !packed {
                ctx.common_type([0, 3])?;
            }
            has_elements(ctx, 3, self.n * if packed { zero_bytes } else { blocks })?;
        }
        ctx.typed_optional(4, &BLOCK_OF_COLUMN)?;
        if let Some(got) = ctx.shape_optional(4).and_then(Shape::elements)
            && got < self.k
        {
            let e = shape_error("not every column has a block").with_input(4);
            return Err(e.with_expected(self.k).with_got(got));
        }
        ctx.vector(5, &Dim::Known(self.n))?;
        let Some(a) = ctx.shape_of_min_rank(0, 1)? else {
            return Ok(vec![fact(dtype, None)]);
        };
        let mut shape = a.clone();
        if let Some(last) = shape.0.last_mut() {
            unify(last, &Dim::Known(self.k), || {
                "the inner dimension of a product".into()
            })?;
            *last = Dim::Known(self.n);
        }
        for i in [6, 7] {
            if let Some(other) = ctx.shape_optional(i) {
                shape = unify_shapes(other, &shape, || "what is added or multiplied".into())
                    .map_err(|e| e.with_input(i))?;
            }
        }
        Ok(vec![fact(dtype, Some(shape))])
    }

    fn apart(&self, node: &NodeView, axis: usize) -> Option<Vec<usize>> {
        (axis + 1 < node.rank(0)?).then(|| vec![0, 6, 7])
    }

    fn cost(&self, inputs: &[Option<&[usize]>], outputs: &[&[usize]]) -> Cost {
        matmul_cost(inputs, outputs)
    }

    fn with_activation(&self, activation: Activation) -> Option<Arc<dyn Operator>> {
        let activated = || MatMulNBits {
            activation,
            ..self.clone()
        };
        (self.activation == Activation::None).then(|| Arc::new(activated()) as Arc<dyn Operator>)
    }

    fn addend(&self) -> Option<usize> {
        Some(6)
    }

    fn factor(&self) -> Option<usize> {
        Some(7)
    }
}

impl GatherBlockQuantized {
    /// Numbers that an element of a table of `dtype` holds.
    ///
    /// # Errors
    /// As of [`numbers_in_byte`].
    pub fn packed(&self, dtype: DType) -> Result<usize> {
        let in_byte = numbers_in_byte(self.bits)?;
        Ok(if dtype == DType::U8 { in_byte } else { 1 })
    }

    /// The gathered axis, and the axis of the blocks, of a table of some rank with `packed` numbers an element.
    ///
    /// # Errors
    /// `Shape` where the table lacks an axis; `Unsupported` where a packed table has other axes than it may have.
    pub fn axes(&self, rank: usize, packed: usize) -> Result<[usize; 2]> {
        let gathered = normalize_axis(self.gather_axis, rank)?;
        let quantized = normalize_axis(self.quantize_axis, rank)?;
        if packed > 1 && (quantized + 1 != rank || gathered == quantized) {
            return Err(unsupported(
                "a packed table whose blocks are not along its last dimension, or that is gathered along it",
            ));
        }
        Ok([gathered, quantized])
    }
}

impl Operator for GatherBlockQuantized {
    fn name(&self) -> &'static str {
        "GatherBlockQuantized"
    }

    signature! { (data, indices, scales, optional zero_points) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let data = ctx.typed(0, &QUANTIZED)?;
        ctx.typed(1, &INDICES)?;
        let dtype = ctx.typed(2, &FLOATS)?;
        let real = ctx
            .typed_optional(3, &ANY_ZEROS)?
            .is_some_and(DType::is_float);
        ctx.common_type(if real { [2, 3] } else { [0, 3] })?;
        if self.block == 0 {
            return Err(unsupported("blocks without elements"));
        }
        let (Some(data), Some(x)) = (data, ctx.shape(0)?) else {
            return Ok(vec![fact(dtype, None)]);
        };
        let packed = self.packed(data)?;
        let [gathered, quantized] = self.axes(x.rank(), packed)?;
        let mut numbers = x.clone();
        numbers.0[quantized] = times(&x.0[quantized], &Dim::Known(packed))?;
        let mut blocks = numbers.clone();
        blocks.0[quantized] = numbers.0[quantized].map(|n| Some(n.div_ceil(self.block)));
        let mut zeros = blocks.clone();
        if !real {
            zeros.0[quantized] = blocks.0[quantized].map(|n| Some(n.div_ceil(packed)));
        }
        for (i, expected) in [(2, &blocks), (3, &zeros)] {
            if let Some(got) = ctx.shape_optional(i) {
                unify_shapes(got, expected, || "the scales of the blocks".into())
                    .map_err(|e| e.with_input(i))?;
            }
        }
        let shape = ctx.shape(1)?.map(|indices| {
            Shape(
                [
                    &numbers.0[..gathered],
                    &indices.0,
                    &numbers.0[gathered + 1..],
                ]
                .concat(),
            )
        });
        Ok(vec![fact(dtype, shape)])
    }
}

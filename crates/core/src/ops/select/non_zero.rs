//! Where elements are not zero.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::Result;
use crate::fact::Fact;
use crate::fallible::{push, vec_with_room};
use crate::graph::{Flow, InferContext, Operator};
use crate::interrupt::Meter;
use crate::ops::rules::{InputValues, Types};
use crate::tensor::Tensor;

/// The indices of elements that are not zero, `int64[rank, n]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct NonZero;

impl NonZero {
    /// The output, row-major: for each dimension of the data the coordinates of all elements that
    /// are not zero, in order.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the work is to stop.
    pub fn positions(meter: &Meter, data: &Tensor) -> Result<Vec<i64>> {
        let mut hits = Vec::new();
        NonZero::hits(meter, data, &mut |i| push(&mut hits, i))?;
        let mut positions = vec_with_room(data.rank().saturating_mul(hits.len()))?;
        let mut inner = data.len();
        for &dim in data.shape() {
            // Without elements there are no hits, so nothing is divided by 0.
            inner = inner.checked_div(dim).unwrap_or(0);
            meter.pieces(hits.len(), 8, |piece| {
                positions.extend(hits[piece].iter().map(|&i| (i / inner % dim) as i64));
                Ok(())
            })?;
        }
        Ok(positions)
    }

    /// Shows `each` element that is not zero; of strings, not empty.
    fn hits(meter: &Meter, data: &Tensor, each: &mut dyn FnMut(usize) -> Result<()>) -> Result<()> {
        let mut chosen = |not_zero: &dyn Fn(usize) -> bool| {
            meter.pieces(data.len(), 8, |piece| {
                let mut hits = piece.filter(|&i| not_zero(i));
                hits.try_for_each(&mut *each)
            })
        };
        if let Ok(texts) = data.texts() {
            return chosen(&|i| !texts[i].is_empty());
        }
        let (dtype, bytes, size) = (data.dtype(), data.read()?, data.dtype().size());
        chosen(&|i| !is_zero(dtype, &bytes[i * size..][..size]))
    }
}

/// True for 0 and, among floating-point numbers, -0.
fn is_zero(dtype: DType, element: &[u8]) -> bool {
    let part = match dtype.is_complex() {
        true => element.len() / 2,
        false => element.len(),
    };
    let sign = if dtype.is_float() || dtype.is_complex() {
        0x7f
    } else {
        0xff
    };
    element
        .chunks_exact(part)
        .all(|number| match number.split_last() {
            Some((last, rest)) => last & sign == 0 && rest.iter().all(|&b| b == 0),
            None => true,
        })
}

const TESTED: Types = Types::new("a numeric type, bool, a complex type or string", |d| {
    !d.is_narrow()
});

impl Operator for NonZero {
    fn name(&self) -> &'static str {
        "NonZero"
    }

    signature! { (data) -> (indices) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &TESTED)?;
        let rank = ctx.shape(0)?.map_or(Dim::Unknown, |x| Dim::Known(x.rank()));
        let count = match ctx.value(0) {
            Some(data) => {
                let mut count = 0;
                NonZero::hits(&ctx.meter(), data, &mut |_| {
                    count += 1;
                    Ok(())
                })?;
                Dim::Known(count)
            }
            None => Dim::Unknown,
        };
        Ok(vec![Fact::new(DType::I64, Shape(vec![rank, count]))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }
}

//! Where elements are not zero.

use crate::ops::*;

/// The indices of elements that are not zero, `int64[rank, n]`.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct NonZero;

impl NonZero {
    /// The output, row-major: for each dimension of the data the coordinates of all elements that
    /// are not zero, in order.
    ///
    /// # Errors
    /// `DType` where the elements cannot be read.
    pub fn positions(data: &Tensor) -> Result<Vec<i64>> {
        let hits = NonZero::hits(data);
        let mut positions = Vec::with_capacity(data.rank().saturating_mul(hits.len()));
        let mut inner = data.len();
        for &dim in data.shape() {
            // Without elements there are no hits, so nothing is divided by 0.
            inner = inner.checked_div(dim).unwrap_or(0);
            positions.extend(hits.iter().map(|&i| (i / inner % dim) as i64));
        }
        Ok(positions)
    }

    /// The elements that are not zero; of strings, not empty.
    fn hits(data: &Tensor) -> Vec<usize> {
        let chosen =
            |not_zero: &dyn Fn(usize) -> bool| (0..data.len()).filter(|&i| not_zero(i)).collect();
        if let Ok(texts) = data.texts() {
            return chosen(&|i| !texts[i].is_empty());
        }
        let (dtype, bytes, size) = (data.dtype(), data.bytes(), data.dtype().size());
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

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &TESTED)?;
        let rank = ctx.shape(0)?.map_or(Dim::Unknown, |x| Dim::Known(x.rank()));
        let count = ctx
            .value(0)
            .map_or(Dim::Unknown, |t| Dim::Known(NonZero::hits(t).len()));
        Ok(vec![Fact::new(DType::I64, Shape(vec![rank, count]))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }
}

//! Slices that a condition chooses.

use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::fallible::push;
use crate::graph::{Flow, InferContext, Operator};
use crate::interrupt::Meter;
use crate::ops::axes::normalize_axis;
use crate::ops::rules::{BOOL, InputValues, fact, missing_value, volume};

/// Inputs: data, condition `bool[n]`. Without an axis the data is flattened.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Compress {
    pub axis: Option<i64>,
}

impl Compress {
    /// The indices that are kept of a dimension (of the flattened data without an axis).
    ///
    /// # Errors
    /// `Shape` where the condition is longer than `dim`, `InvalidValue` where it is not known, `Limit` where memory is
    /// short, `Aborted` where the work is to stop.
    pub fn selected(
        &self,
        meter: &Meter,
        dim: usize,
        values: &dyn InputValues,
    ) -> Result<Vec<usize>> {
        let condition = values.value(1).ok_or_else(|| missing_value(1))?;
        if condition.len() > dim {
            return Err(shape_error("the condition is longer than the axis")
                .with_expected(format!("at most {dim}"))
                .with_got(condition.len()));
        }
        let (condition, mut kept) = (condition.as_slice::<u8>()?, Vec::new());
        meter.pieces(condition.len(), 2, |mut piece| {
            piece.try_for_each(|i| match condition[i] {
                0 => Ok(()),
                _ => push(&mut kept, i),
            })
        })?;
        Ok(kept)
    }
}

impl Operator for Compress {
    fn name(&self) -> &'static str {
        "Compress"
    }

    signature! { (data, condition) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &BOOL)?;
        ctx.shape_of_rank(1, 1)?;
        let count = |whole: &Dim| match (ctx.value(1), whole) {
            (None, _) => Ok(Dim::Unknown),
            (Some(_), Dim::Known(n)) => Ok(Dim::Known(self.selected(&ctx.meter(), *n, ctx)?.len())),
            (Some(c), _) => Ok(Dim::Known(self.selected(&ctx.meter(), c.len(), ctx)?.len())),
        };
        let shape = match (self.axis, ctx.shape(0)?) {
            (None, x) => Some(Shape(vec![match x {
                Some(x) => count(&volume(&x.0)?)?,
                None => count(&Dim::Unknown)?,
            }])),
            (Some(_), None) => None,
            (Some(axis), Some(x)) => {
                let axis = normalize_axis(axis, x.rank())?;
                let mut shape = x.clone();
                shape.0[axis] = count(&x.0[axis])?;
                Some(shape)
            }
        };
        Ok(vec![fact(dtype, shape)])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}

//! Slices that a condition chooses.

use crate::ops::*;

/// Inputs: data, condition `bool[n]`. Without an axis the data is flattened.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Compress {
    pub axis: Option<i64>,
}

impl Compress {
    /// The indices that are kept of a dimension (of the flattened data without an axis).
    ///
    /// # Errors
    /// `Shape` where the condition is longer than `dim`, `InvalidValue` where it is not known.
    pub fn selected(&self, dim: usize, values: &dyn InputValues) -> Result<Vec<usize>> {
        let condition = values.need_ints(1)?;
        if condition.len() > dim {
            return Err(shape_error("the condition is longer than the axis")
                .with_expected(format!("at most {dim}"))
                .with_got(condition.len()));
        }
        Ok((0..condition.len())
            .filter(|&i| condition[i] != 0)
            .collect())
    }
}

impl Operator for Compress {
    fn name(&self) -> &'static str {
        "Compress"
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.dtype(0)?;
        ctx.typed(1, &BOOL)?;
        ctx.shape_of_rank(1, 1)?;
        let count = |whole: &Dim| match (ctx.value(1), whole) {
            (None, _) => Ok(Dim::Unknown),
            (Some(_), Dim::Known(n)) => Ok(Dim::Known(self.selected(*n, ctx)?.len())),
            (Some(c), _) => Ok(Dim::Known(self.selected(c.len(), ctx)?.len())),
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

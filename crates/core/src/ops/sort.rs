//! Operators that order elements.

use super::axes::normalize_axis;
use super::rules::{INDICES, InputValues, NUMBERS, fact, missing_value, size};
use crate::Reflect;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Result, shape_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};

/// Inputs: x, k. Outputs: values, `int64` indices.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct TopK {
    pub axis: i64,
    pub largest: bool,
    pub sorted: bool,
}

impl TopK {
    /// How many elements are taken.
    ///
    /// # Errors
    /// `InvalidValue` where it is negative or not known.
    pub fn k(&self, values: &dyn InputValues) -> Result<usize> {
        let k = values.int(1)?.ok_or_else(|| missing_value(1))?;
        size(k, "the number of elements to take")
    }
}

impl Operator for TopK {
    fn name(&self) -> &'static str {
        "TopK"
    }

    signature! { (data, k) -> (values, indices) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let dtype = ctx.typed(0, &NUMBERS)?;
        ctx.typed(1, &INDICES)?;
        ctx.scalar(1)?;
        let shape = match ctx.shape(0)? {
            Some(x) => {
                let axis = normalize_axis(self.axis, x.rank())?;
                let mut shape = x.clone();
                shape.0[axis] = match (ctx.value(1), &x.0[axis]) {
                    (None, _) => Dim::Unknown,
                    (Some(_), dim) => {
                        let k = self.k(ctx)?;
                        if dim.known().is_some_and(|n| k > n) {
                            return Err(shape_error("more elements are taken than there are")
                                .with_expected(format!("at most {dim}"))
                                .with_got(k));
                        }
                        Dim::Known(k)
                    }
                };
                Some(shape)
            }
            None => None,
        };
        let indices = fact(Some(DType::I64), shape.clone());
        Ok(vec![fact(dtype, shape), indices])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[1]
    }
}

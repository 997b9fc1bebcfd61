//! Elements of another type.

use crate::Reflect;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Result, dtype_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, NodeView, Operator, Precision};
use crate::narrow::Narrowing;
use crate::ops::rules::{NOT_COMPLEX, fact};

/// Converts the element type. Numbers become text in decimal form, as short as tells them apart;
/// text that is no number is an error.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct Cast {
    pub to: DType,
    pub narrowing: Narrowing,
}

impl Cast {
    /// A conversion as ONNX does it by default.
    pub fn new(to: DType) -> Cast {
        Cast {
            to,
            narrowing: Narrowing::default(),
        }
    }
}

/// Converts the first input to the element type of the second, as [`Cast`] does.
#[derive(Clone, Debug, Default, PartialEq, Reflect)]
pub struct CastLike {
    pub narrowing: Narrowing,
}

/// Gives the elements another type of as many bits, whatever these bits mean there.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub struct BitCast {
    pub to: DType,
}

impl Operator for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED.with_precision(Precision::Rounding)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NOT_COMPLEX)?;
        NOT_COMPLEX.check(0, Some(self.to))?;
        Ok(vec![fact(Some(self.to), ctx.shape(0)?.cloned())])
    }

    fn elements(&self, _: &InferContext, elements: &[Option<Vec<Dim>>]) -> Option<Vec<Dim>> {
        elements.first()?.clone()
    }

    fn passes_on(&self, node: &NodeView) -> bool {
        node.input(0).is_some_and(|x| x.fact.dtype == Some(self.to))
    }
}

impl Operator for CastLike {
    fn name(&self) -> &'static str {
        "CastLike"
    }

    signature! { (data, like) -> (output) }

    fn flow(&self) -> Flow {
        Flow::MAPPED.with_precision(Precision::Rounding)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &NOT_COMPLEX)?;
        let to = ctx.typed(1, &NOT_COMPLEX)?;
        Ok(vec![fact(to, ctx.shape(0)?.cloned())])
    }
}

impl Operator for BitCast {
    fn name(&self) -> &'static str {
        "BitCast"
    }

    signature! { (data) -> (output) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE.with_precision(Precision::Bits)
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        let bits = |d: DType| (d != DType::String).then_some(d.bits());
        if let Some(from) = ctx.dtype(0)?
            && (bits(from) != bits(self.to) || bits(from).is_none())
        {
            return Err(dtype_error("the bits of one element type are no other's")
                .with_expected(format!("elements of as many bits as {}", self.to))
                .with_got(from));
        }
        Ok(vec![fact(Some(self.to), ctx.shape(0)?.cloned())])
    }
}

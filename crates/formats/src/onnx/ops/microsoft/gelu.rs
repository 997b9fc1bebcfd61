//! Gelu in its forms, some with a bias.

use kilim_core::error::Result;
use kilim_core::ops::UnaryKind;

use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;

pub static OPERATORS: Family = OpTable(&[
    ("BiasGelu", |b| biased(b, UnaryKind::Gelu { tanh: false })),
    ("FastGelu", |b| biased(b, UnaryKind::Gelu { tanh: true })),
    ("Gelu", |b| biased(b, UnaryKind::Gelu { tanh: false })),
    ("QuickGelu", |b| {
        let alpha = b.float_or("alpha", 1.702)?;
        let x = b.input(0)?;
        let y = b.unary(UnaryKind::Swish { alpha }, x)?;
        b.bind(0, y)
    }),
]);

/// Inputs: x, optional bias that is added before.
fn biased(b: &mut NodeBuilder, kind: UnaryKind) -> Result<()> {
    let mut x = b.input(0)?;
    if let Some(bias) = b.optional(1)? {
        x = b.add(x, bias)?;
    }
    let y = b.unary(kind, x)?;
    b.bind(0, y)
}

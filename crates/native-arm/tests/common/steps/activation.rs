//! Functions of one number, which models have as tables, and another scale.

use kilim_core::backend::Backend;
use kilim_core::ops::{TableLookup, Tabulated, UnaryKind};
use kilim_core::{DType, Tensor};
use kilim_native_arm::AclBackend;

use super::{BYTES, Checks, Extent, affine, scales};
use crate::common::Given::{Constant, Fed};
use crate::common::of_type;
use crate::common::real::{Quanta, quanta};

pub const FUNCTIONS: [UnaryKind; 9] = [
    UnaryKind::Relu,
    UnaryKind::Sigmoid,
    UnaryKind::HardSwish,
    UnaryKind::Clip { min: 0.0, max: 6.0 },
    UnaryKind::Clip {
        min: -1.0,
        max: 1.0,
    },
    UnaryKind::Clip {
        min: f64::NEG_INFINITY,
        max: 2.0,
    },
    UnaryKind::LeakyRelu { alpha: 0.1 },
    UnaryKind::Identity,
    UnaryKind::Tanh,
];

fn applied(kind: UnaryKind, x: f64) -> f64 {
    match kind {
        UnaryKind::Relu => x.max(0.0),
        UnaryKind::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        UnaryKind::Tanh => x.tanh(),
        UnaryKind::HardSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        UnaryKind::Clip { min, max } => x.clamp(min, max),
        UnaryKind::LeakyRelu { alpha } if x < 0.0 => f64::from(alpha) * x,
        _ => x,
    }
}

/// The one scale and zero point that ACL gives the results of some functions.
fn own(kind: UnaryKind, dtype: DType) -> Option<Quanta> {
    match (kind, dtype) {
        (UnaryKind::Sigmoid, DType::U8) => Some(quanta(1.0 / 256.0, 0)),
        (UnaryKind::Sigmoid, _) => Some(quanta(1.0 / 256.0, -128)),
        (UnaryKind::Tanh, DType::U8) => Some(quanta(1.0 / 128.0, 128)),
        (UnaryKind::Tanh, _) => Some(quanta(1.0 / 128.0, 0)),
        _ => None,
    }
}

pub fn activations(acl: &AclBackend, functions: &[UnaryKind], extent: Extent) {
    let old = acl.describe().device.contains("v20.08");
    let mut checks = Checks::on(acl);
    for &dtype in extent.of(&BYTES) {
        for &kind in functions {
            if old && matches!(kind, UnaryKind::LeakyRelu { .. }) {
                kilim_test_support::skip_part("this release has no LeakyRelu of bytes");
                continue;
            }
            // The function that changes scales changes types, too.
            let others = BYTES
                .iter()
                .filter(|&&y| y == dtype || kind == UnaryKind::Identity);
            for &output in others {
                activation(&mut checks, extent, kind, dtype, output);
            }
        }
    }
    checks.finish();
}

fn activation(checks: &mut Checks, extent: Extent, kind: UnaryKind, dtype: DType, output: DType) {
    let (inputs, outputs) = (scales(dtype), scales(output));
    for (&[from, ..], &[.., to]) in extent.of(&inputs).iter().zip(&outputs) {
        for shape in extent.of(&[vec![285], vec![2, 5, 3, 16]]) {
            let to = own(kind, output).unwrap_or(to);
            let of = Tabulated {
                function: kind,
                from: affine(from),
                to: affine(to),
            };
            let real = |given: &[Tensor]| {
                let x = from.real(&given[0]).into_iter();
                x.map(|v| to.steps(applied(kind, v))).collect()
            };
            let name = format!(
                "{kind:?} of {dtype} to {output} {shape:?} zero {}",
                from.zero
            );
            // What is in the table is not read.
            let table = Constant(of_type(output, &[256], 1));
            let inputs = [Fed(of_type(dtype, shape, 37)), table];
            let op = TableLookup { of: Some(of) };
            checks.check(&name, op, &inputs, (output, shape), real);
        }
    }
}

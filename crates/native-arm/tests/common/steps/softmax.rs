//! Shares of exponentials.

use kilim_core::fixed::Factor;
use kilim_core::ops::QuantizedSoftmax;
use kilim_core::{DType, Tensor};
use kilim_native_arm::AclBackend;

use super::{BYTES, Checks, Extent};
use crate::common::Given::Fed;
use crate::common::of_type;
use crate::common::real::{self, quanta};

pub fn softmaxes(acl: &AclBackend, extent: Extent) {
    let mut checks = Checks::on(acl);
    for &dtype in extent.of(&BYTES) {
        for &(shape, scale) in extent.of(&[
            ([5, 10], 0.05f32),
            ([3, 17], 0.2),
            ([1, 256], 0.02),
            ([7, 1001], 0.1),
            ([2, 3], 0.0078),
        ]) {
            let op = QuantizedSoftmax {
                factor: Factor::new(f64::from(scale) * f64::from(1 << 26)).unwrap(),
                smallest: i32::MIN / 2,
            };
            let y = quanta(1.0 / 256.0, if dtype == DType::I8 { -128 } else { 0 });
            let real = |given: &[Tensor]| {
                let x = quanta(scale, 0).real(&given[0]);
                let shares = real::softmax(&x, shape[1]);
                shares.into_iter().map(|v| y.steps(v)).collect()
            };
            let name = format!("softmax of {dtype} {shape:?} {scale}");
            let inputs = [Fed(of_type(dtype, &shape, 37))];
            checks.check(&name, op, &inputs, (dtype, &shape), real);
        }
    }
    checks.finish();
}

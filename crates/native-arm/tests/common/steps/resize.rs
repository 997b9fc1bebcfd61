//! Pictures between whose pixels is interpolated.

use kilim_core::Tensor;
use kilim_core::ops::QuantizedResize;
use kilim_native_arm::AclBackend;

use super::{BYTES, Checks, Extent};
use crate::common::Given::{Constant, Fed};
use crate::common::{of_type, real};

pub fn resizes(acl: &AclBackend, extent: Extent) {
    let mut checks = Checks::on(acl);
    for &dtype in extent.of(&BYTES) {
        for &(x, y) in extent.of(&[
            ([1, 6, 6, 8], [12, 12]),
            ([2, 5, 7, 3], [9, 10]),
            ([1, 9, 11, 16], [4, 5]),
        ]) {
            for (align_corners, half_pixel) in [(false, false), (true, false), (false, true)] {
                let op = QuantizedResize {
                    align_corners,
                    half_pixel,
                };
                let sizes = y.map(|v| v as i64);
                let inputs = [
                    Fed(of_type(dtype, &x, 37)),
                    Constant(Tensor::from_slice(&[2], &sizes).unwrap()),
                ];
                let real = |given: &[Tensor]| {
                    let x_real = given[0].to_f64s().unwrap();
                    real::bilinear(&x_real, x, y, align_corners, half_pixel)
                };
                let name = format!("{dtype} {x:?} to {y:?}, {align_corners} {half_pixel}");
                let shape = [x[0], y[0], y[1], x[3]];
                checks.check(&name, op, &inputs, (dtype, &shape), real);
            }
        }
    }
    checks.finish();
}

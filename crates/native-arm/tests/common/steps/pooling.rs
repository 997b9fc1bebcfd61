//! Averages of windows.

use kilim_core::Tensor;
use kilim_core::ops::{Activation, AveragePool, Padding, Window};
use kilim_native_arm::AclBackend;

use super::{BYTES, Checks, Extent, geometry};
use crate::common::Given::Fed;
use crate::common::{of_type, real};

pub fn averages(acl: &AclBackend, extent: Extent) {
    let mut checks = Checks::on(acl);
    for &dtype in extent.of(&BYTES) {
        for &(x, g) in extent.of(&[
            ([2, 7, 9, 8], geometry(3, 1, 1, 1)),
            ([1, 8, 8, 33], geometry(2, 2, 0, 1)),
            ([2, 9, 7, 16], geometry(3, 2, 1, 1)),
            ([1, 8, 8, 64], geometry(8, 1, 0, 1)),
            ([3, 25, 25, 5], geometry(25, 1, 0, 1)),
        ]) {
            let op = AveragePool {
                window: Window {
                    kernel: vec![g.kernel; 2],
                    strides: vec![g.stride; 2],
                    dilations: vec![1, 1],
                    padding: Padding::Explicit(vec![g.pad; 4]),
                    ceil_mode: false,
                },
                count_include_pad: false,
                channels_last: true,
                activation: Activation::None,
            };
            let y = [x[0], g.output(x[1]), g.output(x[2]), x[3]];
            let real = |given: &[Tensor]| real::average(&given[0].to_f64s().unwrap(), x, g);
            let name = format!("average of {dtype} {x:?} {}", g.kernel);
            let inputs = [Fed(of_type(dtype, &x, 37))];
            checks.check(&name, op, &inputs, (dtype, &y), real);
        }
    }
    checks.finish();
}

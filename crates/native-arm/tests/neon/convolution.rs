//! Convolutions.

use kilim_core::DType;
use kilim_core::ops::{ConvTranspose, Padding};

use crate::common::Given::{Constant, Fed};
use crate::common::{conv, noise, run};
use crate::{difference, neon};

#[test]
fn grouped_convolution_is_refused_in_acl_words() {
    let Some(neon) = neon() else { return };
    let inputs = [
        Fed(noise(&[1, 4, 5, 5], 1)),
        Constant(noise(&[6, 2, 3, 3], 2)),
    ];
    let reason = run(&neon, conv(2, false), &inputs, (DType::F32, &[1, 6, 5, 5])).unwrap_err();
    assert!(reason.starts_with("the ARM Compute Library: "), "{reason}");
}

#[test]
fn transposed_convolution() {
    for channels_last in [false, true] {
        let (x, y): ([usize; 4], [usize; 4]) = match channels_last {
            false => ([1, 5, 6, 7], [1, 3, 11, 13]),
            true => ([1, 6, 7, 5], [1, 11, 13, 3]),
        };
        let op = ConvTranspose {
            strides: vec![2, 2],
            dilations: vec![1, 1],
            padding: Padding::Explicit(vec![1, 1, 1, 1]),
            output_padding: Vec::new(),
            output_shape: None,
            groups: 1,
            channels_last,
            activation: Default::default(),
        };
        let inputs = [
            Fed(noise(&x, 1)),
            Constant(noise(&[5, 3, 3, 3], 2)),
            Constant(noise(&[3], 3)),
        ];
        let d = difference(op, &inputs, (DType::F32, &y));
        assert!(d.is_none_or(|d| d < 1e-5), "{d:?}");
    }
}

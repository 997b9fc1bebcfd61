//! Convolutions.

use kilim_core::DType;

use crate::common::Given::{Constant, Fed};
use crate::common::{conv, conv_transpose, noise, run};
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
        let op = conv_transpose(2, channels_last);
        let inputs = [
            Fed(noise(&x, 1)),
            Constant(noise(&[5, 3, 3, 3], 2)),
            Constant(noise(&[3], 3)),
        ];
        let d = difference(op, &inputs, (DType::F32, &y));
        assert!(d.is_none_or(|d| d < 1e-5), "{d:?}");
    }
}

//! Elements that are moved and compared.

use kilim_core::ops::{Concat, Transpose};
use kilim_core::{DType, Tensor};

use crate::common::Given::Fed;
use crate::common::{bytes, max_pool, window};
use crate::difference;

#[test]
fn bytes_are_moved_and_compared() {
    for channels_last in [true, false] {
        let (x, y) = match channels_last {
            true => ([2, 7, 9, 5], [2, 4, 5, 5]),
            false => ([2, 5, 7, 9], [2, 5, 4, 5]),
        };
        // All below zero, so that padding that counted would show.
        let below: Vec<i8> = (0..630).map(|i| -1 - (i * 37 % 120) as i8).collect();
        let op = max_pool(window(3, 2, 1), channels_last);
        let x = Tensor::from_slice(&x, &below).unwrap();
        let d = difference(op, &[Fed(x)], (DType::I8, &y));
        assert!(d.is_none_or(|d| d == 0.0), "{channels_last}: {d:?}");
    }
    let parts = [Fed(bytes(&[2, 3, 4], 37)), Fed(bytes(&[2, 5, 4], 91))];
    let d = difference(Concat { axis: 1 }, &parts, (DType::I8, &[2, 8, 4]));
    assert!(d.is_none_or(|d| d == 0.0), "{d:?}");
    let op = Transpose {
        perm: vec![0, 2, 3, 1],
    };
    let x = bytes(&[2, 3, 4, 5], 37);
    let d = difference(op, &[Fed(x)], (DType::I8, &[2, 4, 5, 3]));
    assert!(d.is_none_or(|d| d == 0.0), "{d:?}");
}

//! What is only moved is what it was.

use kilim_core::ops::{Concat, Transpose};

use super::{To, check};
use crate::common::Given::Fed;
use crate::common::noise;

#[test]
fn elements_are_moved() {
    for (axis, second, y) in [
        (0, [3, 3, 5], [5, 3, 5]),
        (1, [2, 4, 5], [2, 7, 5]),
        (2, [2, 3, 9], [2, 3, 14]),
    ] {
        let inputs = [Fed(noise(&[2, 3, 5], 1)), Fed(noise(&second, 2))];
        check("Concat", Concat { axis }, &inputs, &y, 0.0, To::Result);
    }
    for (perm, y) in [
        (vec![0, 2, 3, 1], [2, 5, 7, 3]),
        (vec![3, 1, 0, 2], [7, 3, 2, 5]),
    ] {
        let what = format!("Transpose {perm:?}");
        check(
            &what,
            Transpose { perm },
            &[Fed(noise(&[2, 3, 5, 7], 1))],
            &y,
            0.0,
            To::Result,
        );
    }
}

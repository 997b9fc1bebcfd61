//! Updates of caches.

use kilim_core::Tensor;
use kilim_core::ops::TensorScatter;

use super::harness::*;

#[test]
fn updates_of_caches() {
    if gpu().is_none() {
        return;
    }
    // Elements behind the axis that are read four at once, and one by one.
    for inner in [8, 3] {
        for axis in [1, 2, -2] {
            for circular in [false, true] {
                let op = TensorScatter { axis, circular };
                let (mut whole, mut part) = ([2, 6, 6, inner], [2, 6, 6, inner]);
                let axis = if axis == 1 { 1 } else { 2 };
                part[axis] = 4;
                whole[axis] = 7;
                let cache = Given::Fed(random(&whole, 1));
                let update = Given::Fed(random(&part, 2));
                agree(op.clone(), &[cache.clone(), update.clone()], 1, 0.0);
                let starts = if circular { [5i64, 20] } else { [0, 3] };
                let starts = Given::Fed(Tensor::from_slice(&[2], &starts).unwrap());
                agree(op.clone(), &[cache.clone(), update.clone(), starts], 1, 0.0);
                if !circular {
                    // The second update ends behind the cache.
                    let starts = Given::Fed(Tensor::from_slice(&[2], &[0i64, 5]).unwrap());
                    let length = Given::Constant(Tensor::from_slice(&[1], &[9i64]).unwrap());
                    agree(op, &[cache, update, starts, length], 1, 0.0);
                }
            }
        }
    }
}

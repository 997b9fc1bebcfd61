//! Matrix products.

use kilim_core::DType;
use kilim_core::ops::{Activation, Gemm, MatMul};

use crate::common;
use crate::common::Given::{Constant, Fed};
use crate::common::{noise, run};
use crate::{difference, has_matmul, neon};

#[test]
fn a_computed_factor_is_read_in_every_run() {
    let inputs = [Fed(noise(&[5, 33], 1)), Fed(noise(&[33, 20], 2))];
    // Both factors change sign, the product does not: feed one constant factor as well.
    let d = difference(MatMul::default(), &inputs, (DType::F32, &[5, 20]));
    assert!(d.is_none_or(|d| d < 1e-5), "{d:?}");
    let inputs = [Constant(noise(&[5, 33], 1)), Fed(noise(&[33, 20], 2))];
    let d = difference(MatMul::default(), &inputs, (DType::F32, &[5, 20]));
    assert!(d.is_none_or(|d| d < 1e-5), "{d:?}");
}

#[test]
fn stacks_and_transposed_factors_are_multiplied() {
    let Some(neon) = neon() else { return };
    let product = |transpose_b, alpha| MatMul {
        transpose_b,
        alpha,
        ..MatMul::default()
    };
    let cases = [
        (
            product(false, None),
            vec![2, 3, 5, 7],
            vec![2, 3, 7, 6],
            vec![2, 3, 5, 6],
        ),
        (
            product(true, Some(0.25)),
            vec![6, 5, 8],
            vec![6, 9, 8],
            vec![6, 5, 9],
        ),
        (product(true, None), vec![5, 7], vec![6, 7], vec![5, 6]),
    ];
    for (op, a, b, y) in cases {
        let inputs = [Fed(noise(&a, 1)), Fed(noise(&b, 2))];
        match has_matmul(&neon) {
            true => {
                let d = common::difference(&neon, op, &inputs, (DType::F32, &y));
                assert!(d < 1e-5, "{a:?} {b:?}: {d}");
            }
            false => {
                let reason = run(&neon, op, &inputs, (DType::F32, &y)).unwrap_err();
                assert!(
                    reason.contains("this release of ACL has no MatMul"),
                    "{reason}"
                );
            }
        }
    }
    let transposed = Gemm {
        alpha: 1.0,
        beta: 1.0,
        transpose_a: true,
        transpose_b: false,
        activation: Activation::None,
    };
    let inputs = [Fed(noise(&[7, 5], 1)), Fed(noise(&[7, 6], 2))];
    if has_matmul(&neon) {
        let d = common::difference(&neon, transposed, &inputs, (DType::F32, &[5, 6]));
        assert!(d < 1e-5, "{d}");
        // One stack for all of another is refused by ACL itself.
        let inputs = [Fed(noise(&[1, 5, 7], 1)), Fed(noise(&[3, 7, 6], 2))];
        let reason = run(
            &neon,
            product(false, None),
            &inputs,
            (DType::F32, &[3, 5, 6]),
        );
        let reason = reason.unwrap_err();
        assert!(reason.starts_with("the ARM Compute Library: "), "{reason}");
    }
}

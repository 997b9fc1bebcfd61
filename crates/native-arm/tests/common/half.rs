//! Nodes in float16 against float64. How far a result may be from it follows from how often it is rounded.

use kilim_core::{DType, Operator};
use kilim_native_arm::AclBackend;

use super::{Given, ask, floats_in, given_in, run};

/// The error of one rounding, relative to the number: half the distance of two halves.
pub const UNIT: f64 = 1.0 / 2048.0;
/// The error of one rounding of the smallest numbers: half the distance of two of them.
const SMALLEST: f64 = 1.0 / 33_554_432.0;

/// What the roundings of a result are relative to.
#[derive(Clone, Copy)]
pub enum To {
    Result,
    /// The sum of the magnitudes of what is summed: the same operator on the magnitudes of its inputs.
    Terms,
    /// A number that no intermediate result exceeds.
    AtMost(f64),
}

/// How often the sum of so many products is rounded, each of them and each addition. For long sums, how often in
/// effect: their errors are as likely up as down, so that they grow as the root of their number (Higham and Mary,
/// A new approach to probabilistic rounding error analysis, 2019; with a factor of 4, seven sums in 10000 exceed it
/// at most, if every single error is as large as it can be).
pub fn sum_of(terms: usize) -> f64 {
    let n = terms as f64;
    n.min(4.0 * n.sqrt()) + 2.0
}

/// Runs a node in float16 on ACL, which must have it so, and compares with float64. What is given is rounded to halves
/// first.
pub fn check(
    acl: &AclBackend,
    what: &str,
    op: impl Operator + Clone,
    inputs: &[Given],
    y: &[usize],
    roundings: f64,
    to: To,
) {
    let halves = given_in(DType::F16, inputs);
    let output = (DType::F16, y);
    if let Err(reason) = ask(acl, &op, &halves, output) {
        panic!("{what} is refused: {reason}");
    }
    let got = run(acl, op.clone(), &halves, output).unwrap();
    let cpu = kilim_simd_cpu::backend();
    let exact = (DType::F64, y);
    let want = run(&cpu, op.clone(), &given_in(DType::F64, &halves), exact).unwrap();
    let terms = match to {
        To::Terms => Some(
            run(&cpu, op, &floats_in(DType::F64, &halves, f64::abs), exact)
                .unwrap()
                .remove(0),
        ),
        _ => None,
    };
    let terms = terms.map(|t| t.to_f64s().unwrap());
    for (got, want) in got.iter().zip(&want) {
        assert_eq!(got.dtype(), DType::F16);
        let (got, want) = (got.to_f64s().unwrap(), want.to_f64s().unwrap());
        assert!(want.iter().any(|&w| w != 0.0), "{what}: nothing but zeros");
        let mut worst = (0.0, 0);
        for (i, (g, w)) in got.iter().zip(&want).enumerate() {
            let scale = match (&terms, to) {
                (Some(terms), _) => terms[i].abs(),
                (None, To::AtMost(largest)) => largest,
                (None, _) => w.abs(),
            };
            let allowed = roundings * (UNIT * scale + SMALLEST);
            let off = match g == w || g.is_nan() && w.is_nan() {
                true => 0.0,
                false => (g - w).abs() / allowed,
            };
            if off.is_nan() || off > worst.0 {
                worst = (off, i);
            }
        }
        println!("{what}: {:.2} of what may be", worst.0);
        let (off, at) = worst;
        assert!(
            off <= 1.0,
            "{what}: {} instead of {} at {at}, {off:.2} of what may be",
            got[at],
            want[at]
        );
    }
}

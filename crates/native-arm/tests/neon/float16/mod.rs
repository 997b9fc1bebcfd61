//! float16, in a build of ACL that has it: a file for each kind of arithmetic. What is expected is computed in
//! float64 from the same halves, and how far a result may be from it follows from how often it was rounded.

mod functions;
mod moved;
mod products;
mod rows;
mod sessions;
mod windows;

use kilim_core::backend::Backend;
use kilim_core::{DType, Operator};
use kilim_native_arm::AclBackend;

pub use crate::common::half::{self, To, UNIT, sum_of};
use crate::common::{Given, ask, given_in};
use crate::neon;

/// ACL where it has float16; `None`, which skips the test, where it has not and was not asked for it.
pub fn half() -> Option<AclBackend> {
    let neon = neon()?;
    if neon.describe().f16() {
        return Some(neon);
    }
    let device = &neon.describe().device;
    assert!(
        std::env::var_os("KILIM_HALF").is_none(),
        "no float16 on {device}"
    );
    kilim_test_support::skip(format_args!("no float16 on {device}"));
    None
}

/// What ACL computes otherwise in float16, and only there, is refused for a reason.
pub fn refused(op: impl Operator, inputs: &[Given], y: &[usize], why: &str) {
    let Some(acl) = half() else { return };
    let given = given_in(DType::F16, inputs);
    let reason = ask(&acl, &op, &given, (DType::F16, y)).unwrap_err();
    assert!(reason.contains(why), "{reason}");
    ask(&acl, &op, inputs, (DType::F32, y)).unwrap();
}

/// Calls [`half::check`] where ACL has float16.
pub fn check(
    what: &str,
    op: impl Operator + Clone,
    inputs: &[Given],
    y: &[usize],
    roundings: f64,
    to: To,
) {
    if let Some(acl) = half() {
        half::check(&acl, what, op, inputs, y, roundings, to);
    }
}

//! What a node gives on ACL and on `cpu`, where numbers may be none.

use kilim_core::backend::Backend;
use kilim_core::{DType, Operator};
use kilim_native_arm::AclBackend;

use crate::common::{Given, ask, given_in, run};
use crate::neon;

/// Runs a node on ACL and on `cpu`, which must agree on what is no finite number and be near each
/// other elsewhere; or ACL is not asked.
pub fn agrees(
    what: &str,
    op: impl Operator + Clone,
    inputs: &[Given],
    y: &[usize],
) -> Result<(), String> {
    let Some(neon) = neon() else { return Ok(()) };
    in_type(DType::F32, &neon, what, op.clone(), inputs, y)?;
    match neon.describe().f16() {
        true => in_type(DType::F16, &neon, what, op, inputs, y),
        false => Ok(()),
    }
}

/// Compares a node on ACL in `dtype` with `cpu`, which computes in `float32`.
fn in_type(
    dtype: DType,
    neon: &AclBackend,
    what: &str,
    op: impl Operator + Clone,
    inputs: &[Given],
    y: &[usize],
) -> Result<(), String> {
    let given = given_in(dtype, inputs);
    if let Err(reason) = ask(neon, &op, &given, (dtype, y)) {
        println!("{what} in {dtype}: refused: {reason}");
        return Ok(());
    }
    let got = run(neon, op.clone(), &given, (dtype, y))?;
    let cpu = kilim_simd_cpu::backend();
    let want = run(&cpu, op, &given_in(DType::F32, &given), (DType::F32, y))?;
    for (got, want) in got.iter().zip(&want) {
        let (got, want) = (got.to_f64s().unwrap(), want.to_f64s().unwrap());
        let mut pairs = got.iter().zip(&want);
        if let Some(at) = pairs.position(|(&g, &w)| !near(dtype, g, w)) {
            return Err(format!(
                "{what} in {dtype}: {} instead of {} at {at}",
                got[at], want[at]
            ));
        }
    }
    println!("{what} in {dtype}: agrees");
    Ok(())
}

/// Whether two numbers are none, infinite or near each other. How near those of `float16` are is seen in `float16/`.
fn near(dtype: DType, g: f64, w: f64) -> bool {
    let (least, relative, largest) = match dtype {
        DType::F16 => (2e-2, 2e-2, f64::from(half::f16::MAX)),
        _ => (1e-5, 1e-4, f64::INFINITY),
    };
    let beyond = g.is_infinite() && g.signum() == w.signum() && w.abs() > largest;
    g == w || g.is_nan() && w.is_nan() || beyond || (g - w).abs() <= least + relative * w.abs()
}

/// Fails with all of the differences.
pub fn check(results: Vec<Result<(), String>>) {
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "ACL differs:\n{}", wrong.join("\n"));
}

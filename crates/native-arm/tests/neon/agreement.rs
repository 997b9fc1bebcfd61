//! What a node gives on ACL and on `cpu`, where numbers may be none.

use kilim_core::{DType, Operator};

use crate::common::{Given, run};
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
    let got = match run(&neon, op.clone(), inputs, (DType::F32, y)) {
        Ok(got) => got,
        Err(reason) => {
            println!("{what}: refused: {reason}");
            return Ok(());
        }
    };
    let want = run(&kilim_simd_cpu::backend(), op, inputs, (DType::F32, y)).unwrap();
    let near = |(g, w): (f32, f32)| {
        g == w || g.is_nan() && w.is_nan() || (g - w).abs() <= 1e-5 + 1e-4 * w.abs()
    };
    for (got, want) in got.iter().zip(&want) {
        let (got, want) = (
            got.as_slice::<f32>().unwrap(),
            want.as_slice::<f32>().unwrap(),
        );
        let mut pairs = got.iter().copied().zip(want.iter().copied());
        if let Some(at) = pairs.position(|pair| !near(pair)) {
            return Err(format!(
                "{what}: {} instead of {} at {at}",
                got[at], want[at]
            ));
        }
    }
    println!("{what}: agrees");
    Ok(())
}

/// Fails with all of the differences.
pub fn check(results: Vec<Result<(), String>>) {
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "ACL differs:\n{}", wrong.join("\n"));
}

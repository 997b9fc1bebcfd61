//! What a kernel keeps is on the ledger of its session, so that limits hold for it.

use std::sync::Arc;

use kilim_core::backend::{NodeSpec, TensorSpec};
use kilim_core::ops::{
    AspectPolicy, Compress, CoordinateMode, NearestMode, NonZero, QuantizedResize, Resize,
    ResizeMode, StringSplit,
};
use kilim_core::{DType, ErrorCode, Interrupt, Limits, Operator, Tensor};
use kilim_host::build_alone;

use super::memory::held;

/// Entries of the tables.
const LONG: usize = 50_000;
/// Bytes that a kernel may keep whatever its sizes are.
pub const SLACK: isize = 4 << 10;

fn resize(mode: ResizeMode) -> Arc<dyn Operator> {
    Arc::new(Resize {
        mode,
        coordinates: CoordinateMode::HalfPixel,
        antialias: false,
        exclude_outside: false,
        extrapolation: 0.0,
        axes: None,
        policy: AspectPolicy::Stretch,
    })
}

fn known(tensor: Tensor) -> Option<TensorSpec> {
    Some(TensorSpec::of(&tensor))
}

fn long(dtype: DType) -> Tensor {
    Tensor::filled(
        &[LONG],
        &Tensor::from_raw(dtype, &[1], &vec![1; dtype.size()]).unwrap(),
    )
    .unwrap()
}

type Case = (Arc<dyn Operator>, Vec<Option<TensorSpec>>, Vec<TensorSpec>);

/// Nodes whose kernels keep something for each place of a long axis.
fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let sizes = || known(Tensor::from_slice(&[1], &[LONG as i64]).unwrap());
    for mode in [
        ResizeMode::Nearest(NearestMode::Floor),
        ResizeMode::Linear,
        ResizeMode::Cubic { a: -0.5 },
    ] {
        let inputs = vec![Some(TensorSpec::new(DType::F32, &[3])), None, None, sizes()];
        let output = TensorSpec::new(DType::F32, &[LONG]);
        cases.push((resize(mode), inputs, vec![output]));
    }
    for dtype in [DType::I8, DType::U8] {
        let op = QuantizedResize {
            half_pixel: false,
            align_corners: false,
        };
        let to = known(Tensor::from_slice(&[2], &[2, LONG as i32]).unwrap());
        let inputs = vec![Some(TensorSpec::new(dtype, &[1, 2, LONG / 2, 1])), to];
        let output = TensorSpec::new(dtype, &[1, 2, LONG, 1]);
        cases.push((Arc::new(op), inputs, vec![output]));
    }
    let positions = TensorSpec::new(DType::I64, &[1, LONG]);
    cases.push((
        Arc::new(NonZero),
        vec![known(long(DType::F32))],
        vec![positions],
    ));
    let chosen = TensorSpec::new(DType::F32, &[LONG]);
    cases.push((
        Arc::new(Compress { axis: None }),
        vec![Some(chosen.clone()), known(long(DType::Bool))],
        vec![chosen],
    ));
    let texts = Tensor::from_texts(&[LONG], vec![Arc::from("a"); LONG]).unwrap();
    let parts = TensorSpec::new(DType::String, &[LONG, 1]);
    let counts = TensorSpec::new(DType::I64, &[LONG]);
    let split = StringSplit {
        delimiter: String::new(),
        most: None,
    };
    cases.push((Arc::new(split), vec![known(texts)], vec![parts, counts]));
    cases
}

#[test]
fn tables_are_counted_and_limited() {
    let backend = kilim_simd_cpu::backend();
    for (op, inputs, outputs) in cases() {
        let node = NodeSpec {
            name: "long",
            op: &*op,
            inputs: &inputs,
            outputs: &outputs,
        };
        // What is filled at its first use is made before memory is measured.
        for value in inputs.iter().flatten().filter_map(|i| i.value.as_ref()) {
            value.read().unwrap();
        }
        let build = |limits| build_alone(&backend, &node, &limits, &Interrupt::NEVER);
        let before = held();
        let built = build(Limits::default()).unwrap();
        let (kept, counted) = (held() - before, built.counted as isize);
        assert!(
            counted >= LONG as isize,
            "{op:?}: {counted} bytes are counted"
        );
        // A text has its letters elsewhere.
        let letters = if op.is::<StringSplit>() {
            2 * counted
        } else {
            0
        };
        assert!(
            kept <= counted + letters + SLACK,
            "{op:?}: {kept} bytes are kept, {counted} are counted"
        );
        let error = build(Limits {
            output_bytes: LONG,
            ..Limits::default()
        });
        assert_eq!(
            error.err().map(|e| e.code()),
            Some(ErrorCode::Limit),
            "{op:?}"
        );
    }
}

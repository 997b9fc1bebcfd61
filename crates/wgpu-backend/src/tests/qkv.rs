//! Queries, keys and values taken apart, with their caches.

use std::sync::Arc;

use kilim_core::backend::Backend;
use kilim_core::ops::{Fact, UnpackQkv};
use kilim_core::{
    DType, Datum, Dim, ErrorCode, Graph, Keep, Result, RunOptions, Session, SessionOptions, Shape,
    Tensor,
};

use super::harness::*;
use crate::WgpuBackend;
use crate::device::gpu::Gpu;
use crate::device::selection::Selection;

#[test]
fn heads_are_taken_apart() {
    if gpu().is_none() {
        return;
    }
    for interleaved in [false, true] {
        // Batches, those of the angles, steps, heads of queries and of keys, numbers of a head, pairs, places of the caches.
        for (batch, of_angles, steps, heads, size, pairs, held, longer) in [
            (1, [1, 1], 1, [3, 1], 8, 4, 6, None),
            (2, [2, 1], 3, [4, 2], 7, 2, 5, None),
            (2, [1, 2], 4, [2, 2], 5, 0, 4, Some(9)),
            (3, [3, 3], 0, [1, 1], 4, 2, 2, Some(2)),
            (1, [1, 1], 2, [5, 1], 70, 33, 0, Some(3)),
        ] {
            let op = UnpackQkv {
                query_heads: heads[0],
                key_heads: heads[1],
                interleaved,
            };
            let width = (heads[0] + 2 * heads[1]) * size;
            let cache = [batch, heads[1], held, size];
            let last = longer.unwrap_or(held) - steps;
            let starts: Vec<i64> = (0..batch).map(|b| (last * b / batch) as i64).collect();
            let mut inputs = vec![
                Given::Fed(random(&[batch, steps, width], 1)),
                Given::Fed(random(&[of_angles[0], steps, pairs], 2)),
                Given::Fed(random(&[of_angles[1], steps, pairs], 3)),
                Given::Fed(random(&cache, 4)),
                Given::Fed(random(&cache, 5)),
                Given::Fed(Tensor::from_slice(&[batch], &starts).unwrap()),
            ];
            if let Some(places) = longer {
                let places = Tensor::from_slice(&[1], &[places as i64]).unwrap();
                inputs.push(Given::Constant(places));
            }
            agree(op, &inputs, 3, 1e-6);
        }
    }
}

const HEADS: [usize; 2] = [4, 2];
const SIZE: usize = 6;

/// Packed numbers of any number of steps, and caches that go from run to run.
fn open(backend: Arc<dyn Backend>) -> Session {
    let mut g = Graph::new("heads");
    let symbol = |name: &str| Dim::Symbol(name.into());
    let [one, size] = [1, SIZE].map(Dim::Known);
    let width = Dim::Known((HEADS[0] + 2 * HEADS[1]) * SIZE);
    let mut input = |name: &str, dims: Vec<Dim>| {
        let fact = Fact::new(DType::F32, Shape(dims));
        g.add_input(name, fact)
    };
    let packed = input("packed", vec![one.clone(), symbol("steps"), width]);
    let angles = |name| vec![one.clone(), symbol(name), Dim::Known(SIZE / 2)];
    let angles = [("cosines", "steps"), ("sines", "steps")].map(|(n, s)| input(n, angles(s)));
    let cache = vec![one.clone(), Dim::Known(HEADS[1]), symbol("room"), size];
    let caches = ["keys", "values"].map(|name| input(name, cache.clone()));
    let start = g.add_input("start", Fact::fixed(DType::I64, &[1]));
    let op = UnpackQkv {
        query_heads: HEADS[0],
        key_heads: HEADS[1],
        interleaved: false,
    };
    let inputs = [packed, angles[0], angles[1], caches[0], caches[1], start];
    let outputs = [0, 1, 2].map(|i| g.add_value(format!("unpacked:{i}"), Fact::default()));
    g.push("unpacked", op, &inputs.map(Some), &outputs);
    g.outputs.extend(outputs);
    let evaluator = Arc::new(kilim_simd_cpu::backend());
    let options = SessionOptions {
        strict: true,
        ..SessionOptions::default()
    };
    pollster::block_on(Session::new(g, vec![backend], evaluator, options)).unwrap()
}

/// Runs `steps` steps from place `start` on; gives the queries, and the caches, which stay where they are.
fn run(
    session: &mut Session,
    steps: usize,
    start: usize,
    caches: [Datum; 2],
) -> Result<(Tensor, [Datum; 2])> {
    let width = (HEADS[0] + 2 * HEADS[1]) * SIZE;
    let seed = 7 * start as u32;
    let packed = random(&[1, steps, width], seed + 1);
    let angles = [2, 3].map(|own| random(&[1, steps, SIZE / 2], seed + own));
    let start = Tensor::from_slice(&[1], &[start as i64]).unwrap();
    let [cosines, sines] = angles.map(Datum::from);
    let [keys, values] = caches;
    let inputs = vec![
        ("packed", packed.into()),
        ("cosines", cosines),
        ("sines", sines),
        ("keys", keys),
        ("values", values),
        ("start", start.into()),
    ];
    let options = RunOptions {
        keep: Keep::new(["unpacked:1", "unpacked:2"]),
        ..RunOptions::default()
    };
    let outputs = pollster::block_on(session.run_owned(inputs, &options))?;
    let [(_, queries), (_, keys), (_, values)] = <[_; 3]>::try_from(outputs).unwrap();
    Ok((queries.tensor()?.clone(), [keys, values]))
}

fn empty(room: usize) -> [Datum; 2] {
    [0, 1].map(|_| {
        Tensor::zeros(DType::F32, &[1, HEADS[1], room, SIZE])
            .unwrap()
            .into()
    })
}

fn numbers(datum: &Datum) -> Vec<f64> {
    let tensor = match datum {
        Datum::Device(tensor) => pollster::block_on(tensor.read()).unwrap(),
        other => other.tensor().unwrap().clone(),
    };
    tensor.to_f64s().unwrap()
}

#[test]
fn both_caches_stay_where_they_are() {
    let gpu = match pollster::block_on(Gpu::open(&Selection::default())) {
        Ok(gpu) => Arc::new(WgpuBackend::on(gpu, true)),
        Err(e) => return kilim_test_support::skip(e),
    };
    let cpu = Arc::new(kilim_simd_cpu::backend());
    let (mut own, mut other) = (open(gpu), open(cpu));
    assert_eq!(
        own.written_on(),
        [("unpacked:1", "keys"), ("unpacked:2", "values")]
    );
    let (mut got, mut want) = (empty(12), empty(12));
    let mut held = None;
    let mut start = 0;
    for steps in [3, 1, 1, 2, 1, 1] {
        let (queries, caches) = run(&mut own, steps, start, got).unwrap();
        let (wanted, from) = run(&mut other, steps, start, want).unwrap();
        close(&queries, &wanted.to_f64s().unwrap(), 1e-6);
        // Beside the first run, in which the caches come from the host, one launch does it all; what others hold is copied.
        assert_eq!(
            own.report().backends[0].launches,
            1,
            "{steps} steps from {start}"
        );
        if start == 4 {
            held = Some((caches.clone(), from.clone()));
        }
        (got, want, start) = (caches, from, start + steps);
    }
    let (earlier, wanted) = held.unwrap();
    for (got, want) in got.iter().zip(&want).chain(earlier.iter().zip(&wanted)) {
        let (got, want) = (numbers(got), numbers(want));
        let far = got.iter().zip(&want).any(|(g, w)| (g - w).abs() > 1e-6);
        assert!(!far, "{got:?} instead of {want:?}");
    }
    assert_ne!(numbers(&earlier[0]), numbers(&got[0]));
}

#[test]
fn steps_behind_the_caches_are_an_error() {
    let gpu = match pollster::block_on(Gpu::open(&Selection::default())) {
        Ok(gpu) => Arc::new(WgpuBackend::on(gpu, true)),
        Err(e) => return kilim_test_support::skip(e),
    };
    let mut own = open(gpu);
    for (steps, start) in [(2, 3), (1, 4)] {
        let error = run(&mut own, steps, start, empty(4)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
    }
    run(&mut own, 2, 2, empty(4)).unwrap();
}

//! Inputs that are found to be wrong while a run computes are its error, on every device.

use kilim::core::Operator;
use kilim::core::ops::{Activation, MatMulNBits, TensorScatter};
use kilim_tests::machine::gpu_beside_others;

use crate::*;

/// Runs `op` with each of the values for its last input; the others are as given. Says of each whether it was taken.
#[track_caller]
fn taken(backend: &str, op: impl Operator, given: &[Tensor], last: &[Tensor]) -> Vec<bool> {
    let mut graph = Graph::new("node");
    let inputs = given.iter().chain(&last[..1]).enumerate();
    let inputs: Vec<_> = inputs
        .map(|(i, t)| graph.add_input(format!("x{i}"), Fact::of(t)))
        .collect();
    let y = graph.apply("y", op, &inputs);
    graph.outputs.push(y);
    let mut options = LoadOptions {
        backends: vec![BackendId::from(backend), BackendId::from("cpu")],
        ..LoadOptions::default()
    };
    options.placement = kilim::Placement::Fixed;
    let mut session = pollster::block_on(Runtime::shared().session(graph, options)).unwrap();
    let mut take = |last: &Tensor| {
        let all = given.iter().chain([last]).enumerate();
        let names: Vec<_> = all.map(|(i, t)| (format!("x{i}"), t.clone())).collect();
        let feeds: Vec<_> = names.iter().map(|(n, t)| (n.as_str(), t.clone())).collect();
        let out = run(&mut session, &feeds);
        let node = session.report().nodes.last().cloned().unwrap();
        assert_eq!(node.backend, backend);
        match out {
            Ok(_) => true,
            Err(e) => {
                assert_eq!(e.code(), ErrorCode::InvalidValue, "{backend}: {e}");
                false
            }
        }
    };
    last.iter().map(&mut take).collect()
}

fn backends() -> impl Iterator<Item = &'static str> {
    let gpu = gpu_beside_others().map(|_| "wgpu");
    std::iter::once("cpu").chain(gpu)
}

#[test]
fn an_update_past_a_cache() {
    let given = [f32s(&[2, 5, 3], &[0.5; 30]), f32s(&[2, 2, 3], &[1.0; 12])];
    let starts = [[0, 3], [0, 4], [-1, 0], [1 << 40, 0], [3, 0]].map(|s| i64s(&s));
    for backend in backends() {
        let op = TensorScatter {
            axis: 1,
            circular: false,
        };
        let taken = taken(backend, op, &given, &starts);
        assert_eq!(taken, [true, false, false, false, true], "{backend}");
    }
}

#[test]
fn a_block_that_is_not_there() {
    let (k, n) = (32, 3);
    let given = [
        f32s(&[1, k], &[0.5; 32]),
        Tensor::from_slice(&[n, 2, 8], &[3u8; 48]).unwrap(),
        f32s(&[n, 2], &[1.0; 6]),
        Tensor::from_slice(&[n], &[8u8; 3]).unwrap(),
    ];
    let groups = [1, 2, -1, 0].map(|last| {
        let mut groups = [0i32; 32];
        groups[31] = last;
        Tensor::from_slice(&[k], &groups).unwrap()
    });
    for backend in backends() {
        let op = MatMulNBits {
            k,
            n,
            bits: 4,
            block: 16,
            int8: false,
            activation: Activation::None,
        };
        let taken = taken(backend, op, &given, &groups);
        assert_eq!(taken, [true, false, false, true], "{backend}");
    }
}

//! Whole sessions in float16: models of it, and nodes that mixed precision chooses.

use std::sync::Arc;

use kilim_core::backend::{Backend, LocalFuture};
use kilim_core::ops::{Activation, Conv, LayerNorm, MatMul, Reshape, Unary, UnaryKind};
use kilim_core::report::{NodeReport, PrecisionReport};
use kilim_core::session::{MixedPrecision, RunOptions, SessionOptions};
use kilim_core::{DType, Fact, Graph, Placement, Session, Tensor};

use super::{UNIT, half};
use crate::common::{conv, max_pool, noise, of_numbers, poll, window};

fn cpu() -> Arc<dyn Backend> {
    Arc::new(kilim_simd_cpu::backend())
}

fn now<T>(future: impl Future<Output = T>) -> T {
    let boxed: LocalFuture<T> = Box::pin(future);
    poll(boxed)
}

fn session(graph: Graph, backends: &[Arc<dyn Backend>], options: SessionOptions) -> Session {
    // As they are preferred, however small they are.
    let options = SessionOptions {
        placement: Placement::Fixed,
        ..options
    };
    now(Session::new(graph, backends.to_vec(), cpu(), options)).unwrap()
}

fn run(session: &mut Session, x: &Tensor) -> Vec<f64> {
    let out = now(session.run(&[("x", x.clone())], &RunOptions::default())).unwrap();
    out[0].1.to_f64s().unwrap()
}

/// The largest difference, as a share of the largest magnitude in `want`.
fn apart(got: &[f64], want: &[f64]) -> f64 {
    let scale = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let each = got.iter().zip(want).map(|(g, w)| (g - w).abs() / scale);
    each.fold(0.0, f64::max)
}

fn of(dtype: DType, tensor: &Tensor) -> Tensor {
    // Halves in every type.
    let halves = of_numbers(
        DType::F16,
        tensor.shape(),
        tensor.to_f64s().unwrap().into_iter(),
    );
    of_numbers(dtype, tensor.shape(), halves.to_f64s().unwrap().into_iter())
}

/// Two convolutions, the maximum of windows, a product.
fn network(dtype: DType) -> Graph {
    let mut g = Graph::new("network");
    let x = g.add_input("x", Fact::fixed(dtype, &[2, 3, 8, 8]));
    let constant = |g: &mut Graph, name: &str, shape: &[usize], seed| {
        g.add_constant(name, of(dtype, &noise(shape, seed)))
    };
    let convolution = Conv {
        activation: Activation::Relu,
        ..conv(1, false)
    };
    let w = constant(&mut g, "w", &[8, 3, 3, 3], 1);
    let b = constant(&mut g, "b", &[8], 2);
    let first = g.apply("first", convolution.clone(), &[x, w, b]);
    let pool = g.apply("pool", max_pool(window(2, 2, 0), false), &[first]);
    let w = constant(&mut g, "v", &[8, 8, 3, 3], 3);
    let second = g.apply("second", convolution, &[pool, w]);
    let shape = g.add_constant("shape", Tensor::from_slice(&[2], &[2i64, 128]).unwrap());
    let flat = g.apply("flat", Reshape { allow_zero: false }, &[second, shape]);
    let w = constant(&mut g, "u", &[128, 10], 4);
    let product = g.apply("product", MatMul::default(), &[flat, w]);
    g.outputs.push(product);
    g
}

#[test]
fn models_of_halves_stay_in_them() {
    let Some(acl) = half() else { return };
    let acl: Arc<dyn Backend> = Arc::new(acl);
    let x = of(DType::F16, &noise(&[2, 3, 8, 8], 9));
    let mut s = session(network(DType::F16), &[acl], SessionOptions::default());
    let nodes = s.report().nodes;
    let computed: Vec<&NodeReport> = nodes.iter().filter(|n| n.backend == "acl_neon").collect();
    let ops: Vec<&str> = computed.iter().map(|n| n.op.as_str()).collect();
    for op in ["Conv", "MaxPool", "MatMul"] {
        assert!(ops.contains(&op), "{ops:?}");
    }
    assert!(
        computed.iter().all(|n| n.outputs[0].dtype == "float16"),
        "{computed:?}"
    );
    let got = run(&mut s, &x);
    let mut exact = session(network(DType::F64), &[cpu()], SessionOptions::default());
    let want = run(&mut exact, &of(DType::F64, &x));
    // The errors of so many products, one on top of the other, are as likely up as down.
    let roundings = (27.0f64 + 72.0 + 128.0).sqrt();
    let apart = apart(&got, &want);
    println!("apart by {apart:.1e} of the largest");
    assert!(apart > 0.0 && apart <= roundings * UNIT, "{apart}");
}

/// What ACL has in float16, what it has in float32 alone, and what it leaves to `cpu`.
fn mixture() -> Graph {
    let mut g = Graph::new("mixture");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4, 16]));
    let w = g.add_constant("w", noise(&[16, 24], 1));
    let first = g.apply("first", MatMul::default(), &[x, w]);
    let scale = g.add_constant("scale", noise(&[24], 2));
    let layer = LayerNorm {
        axis: -1,
        epsilon: 1e-5,
    };
    let normal = g.apply("normal", layer, &[first, scale]);
    let elu = g.apply("elu", Unary(UnaryKind::Elu { alpha: 1.0 }), &[normal]);
    let w = g.add_constant("v", noise(&[24, 8], 3));
    let second = g.apply("second", MatMul::default(), &[elu, w]);
    g.outputs.push(second);
    g
}

fn mixed(backends: &[Arc<dyn Backend>]) -> (Session, PrecisionReport) {
    let sample = |seed| vec![("x".to_string(), noise(&[4, 16], seed))];
    let options = SessionOptions {
        mixed_precision: Some(MixedPrecision {
            tolerance: 1e-2,
            samples: vec![sample(5), sample(6)],
        }),
        ..SessionOptions::default()
    };
    let s = session(mixture(), backends, options);
    let precision = s.report().precision.unwrap();
    (s, precision)
}

fn reason<'a>(precision: &'a PrecisionReport, node: &str) -> &'a str {
    let single = precision.single.iter().find(|s| s.node == node);
    &single
        .unwrap_or_else(|| panic!("{node}: {precision:?}"))
        .reason
}

#[test]
fn mixed_precision_has_products_in_halves() {
    let Some(acl) = half() else { return };
    let acl: Arc<dyn Backend> = Arc::new(acl);
    let (mut s, precision) = mixed(&[acl.clone(), cpu()]);
    assert_eq!(precision.nodes, ["first", "second"], "{precision:?}");
    assert!(
        precision.error > 0.0 && precision.error <= 1e-2,
        "{precision:?}"
    );
    // ACL takes it, but would compute it in float32.
    let why = reason(&precision, "elu");
    assert!(
        why.starts_with("acl_neon: ") && why.contains("loses digits"),
        "{why}"
    );
    assert!(
        reason(&precision, "normal").starts_with("cpu: "),
        "{precision:?}"
    );
    for n in &s.report().nodes {
        let halves = n.outputs[0].dtype == "float16";
        if ["first", "second"].contains(&n.name.as_str()) {
            assert!(n.backend == "acl_neon" && halves, "{n:?}");
        }
    }
    let x = noise(&[4, 16], 7);
    let got = run(&mut s, &x);
    let mut single = session(mixture(), &[acl, cpu()], SessionOptions::default());
    let apart = apart(&got, &run(&mut single, &x));
    assert!(apart > 0.0 && apart <= 2e-2, "{apart}");
}

#[test]
fn without_kernels_for_halves_that_is_the_reason() {
    let Some(acl) = crate::neon() else { return };
    if acl.describe().f16() {
        return;
    }
    let (_, precision) = mixed(&[Arc::new(acl), cpu()]);
    assert!(precision.nodes.is_empty(), "{precision:?}");
    let why = reason(&precision, "first");
    assert!(
        why.contains("acl_neon: no float16 on CPU, ARM Compute Library"),
        "{why}"
    );
}

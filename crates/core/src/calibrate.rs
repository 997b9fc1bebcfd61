//! Measures the constants of the cost model, once per device.

use std::sync::Arc;

use crate::backend::{Backend, Memory, Speed};
use crate::dtype::DType;
use crate::error::{ErrorCode, Result};
use crate::fact::Fact;
use crate::graph::Graph;
use crate::ops::{MatMul, Unary, UnaryKind};
use crate::partition::Placement;
use crate::session::{RunOptions, Session, SessionOptions};
use crate::tensor::Tensor;

/// Elements of the large tensors: 8 MiB of `f32`, more than caches hold.
const LARGE: usize = 1 << 21;
/// Rows and columns of the matrices.
const SIDE: usize = 384;
/// Nodes of the long chains; the short ones have one.
const CHAIN: usize = 9;
/// Seconds that one figure is measured for, at least.
const ENOUGH: f64 = 0.05;

/// Measures a device with small graphs that a session runs on it: a chain of products, and one of
/// negations, or of Relu or Abs where it runs no negation. Takes about a second. What cannot be measured
/// stays as the backend says. `clock` gives seconds since some moment.
///
/// # Errors
/// `NoBackend` where the device runs none of these operators in `f32`; whatever it says of itself when
/// it fails.
pub async fn measure(backend: &Arc<dyn Backend>, clock: fn() -> f64) -> Result<Speed> {
    let mut speed = backend.describe().speed;
    let passes = passes(&mut speed, backend, clock).await;
    let product = product(&mut speed, backend, clock).await;
    let mut refused = None;
    let mut measured = false;
    for result in [passes, product] {
        match result {
            Ok(()) => measured = true,
            Err(e) if e.code() == ErrorCode::NoBackend => refused = refused.or(Some(e)),
            Err(e) => return Err(e),
        }
    }
    match refused {
        Some(e) if !measured => Err(e),
        _ => Ok(speed),
    }
}

/// Operators that read a tensor and write another, with next to nothing to compute.
const PASSES: [UnaryKind; 3] = [UnaryKind::Neg, UnaryKind::Relu, UnaryKind::Abs];

/// What was measured; where the difference drowned in noise, what the backend says.
fn or(measured: f64, said: f64) -> f64 {
    let possible = measured.is_finite() && measured > 0.0;
    if possible { measured } else { said }
}

/// Measures memory, the start of kernels and transfers.
async fn passes(speed: &mut Speed, backend: &Arc<dyn Backend>, clock: fn() -> f64) -> Result<()> {
    let mut refused = None;
    for kind in PASSES {
        match chain(kind, 16, 1)?.time(backend, clock).await {
            Ok(small) => return passes_of(kind, small, speed, backend, clock).await,
            Err(e) if e.code() == ErrorCode::NoBackend => refused = refused.or(Some(e)),
            Err(e) => return Err(e),
        }
    }
    refused.map_or(Ok(()), Err)
}

async fn passes_of(
    kind: UnaryKind,
    small: f64,
    speed: &mut Speed,
    backend: &Arc<dyn Backend>,
    clock: fn() -> f64,
) -> Result<()> {
    let many = chain(kind, 16, 1 + 8 * CHAIN)?.time(backend, clock).await?;
    let large = chain(kind, LARGE, 1)?.time(backend, clock).await?;
    let larger = chain(kind, LARGE, CHAIN)?.time(backend, clock).await?;
    speed.kernel_start = or((many - small) / (8 * CHAIN) as f64, speed.kernel_start);
    let steps = (CHAIN - 1) as f64;
    let per_pass = or((larger - large) / steps - speed.kernel_start, f64::NAN);
    let bytes = (LARGE * size_of::<f32>()) as f64;
    speed.bytes_per_second = or(2.0 * bytes / per_pass, speed.bytes_per_second);
    if backend.describe().memory == Memory::Device {
        // One way there and one back in every run.
        let there_and_back = small - speed.kernel_start;
        speed.transfer_start = or(there_and_back / 2.0, speed.transfer_start);
        let rate = 2.0 * bytes / (large - small - per_pass);
        speed.transfer_bytes_per_second = or(rate, speed.transfer_bytes_per_second);
    }
    Ok(())
}

/// Measures arithmetic.
async fn product(speed: &mut Speed, backend: &Arc<dyn Backend>, clock: fn() -> f64) -> Result<()> {
    let product = products(1)?.time(backend, clock).await?;
    let chain = products(CHAIN)?.time(backend, clock).await?;
    let steps = (CHAIN - 1) as f64;
    let per_product = or((chain - product) / steps - speed.kernel_start, f64::NAN);
    let flops = 2.0 * (SIDE as f64).powi(3);
    speed.flops_per_second = or(flops / per_product, speed.flops_per_second);
    Ok(())
}

/// A graph to be timed, and its input.
struct Probe {
    graph: Graph,
    input: Tensor,
}

fn chain(kind: UnaryKind, elements: usize, count: usize) -> Result<Probe> {
    let mut graph = Graph::new("passes");
    let mut x = graph.add_input("x", Fact::fixed(DType::F32, &[elements]));
    for i in 0..count {
        x = graph.apply(format!("pass {i}"), Unary(kind), &[x]);
    }
    graph.outputs.push(x);
    let input = Tensor::zeros(DType::F32, &[elements])?;
    Ok(Probe { graph, input })
}

fn products(count: usize) -> Result<Probe> {
    let shape = [SIDE, SIDE];
    let mut graph = Graph::new("products");
    let mut x = graph.add_input("x", Fact::fixed(DType::F32, &shape));
    let weights = graph.add_constant("weights", Tensor::zeros(DType::F32, &shape)?);
    for i in 0..count {
        x = graph.apply(format!("product {i}"), MatMul::default(), &[x, weights]);
    }
    graph.outputs.push(x);
    let input = Tensor::zeros(DType::F32, &shape)?;
    Ok(Probe { graph, input })
}

impl Probe {
    /// Seconds of a run: the best mean of three batches.
    async fn time(self, backend: &Arc<dyn Backend>, clock: fn() -> f64) -> Result<f64> {
        let options = SessionOptions {
            placement: Placement::Fixed,
            optimise: false,
            ..SessionOptions::default()
        };
        let backends = vec![backend.clone()];
        let mut session = Session::new(self.graph, backends, backend.clone(), options).await?;
        let feeds = [("x", self.input)];
        let options = RunOptions::default();
        session.run(&feeds, &options).await?;
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            let start = clock();
            let mut runs = 0;
            let mut passed = 0.0;
            while passed < ENOUGH && runs < 10_000 {
                session.run(&feeds, &options).await?;
                runs += 1;
                passed = clock() - start;
            }
            best = best.min(passed / f64::from(runs));
        }
        Ok(best)
    }
}

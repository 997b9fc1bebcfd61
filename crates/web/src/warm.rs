//! Warming up the CPU's kernels.
//!
//! A browser runs WebAssembly in a quick and slow compilation first and replaces each function by an
//! optimised one, on another thread, once it has run for some milliseconds. A small network that
//! passes through the hot kernels, run while the first model has yet to be read, has the optimised
//! ones ready by its first run.

use std::sync::atomic::{AtomicBool, Ordering};

use kilim::core::ops::{Activation, Conv, Padding};
use kilim::{BackendId, DType, Fact, Graph, Result, RunOptions, Runtime, SessionOptions, Tensor};
use wasm_bindgen::prelude::wasm_bindgen;

/// Runs of the network: enough to reach the browser's threshold, which counts what was executed.
const RUNS: usize = 2;

/// A convolution of the network: input and output channels, kernel, stride, groups.
const LAYERS: [(usize, usize, usize, usize, usize); 5] = [
    (3, 32, 3, 2, 1),
    (32, 32, 3, 1, 32),
    (32, 64, 1, 1, 1),
    (64, 64, 3, 1, 1),
    (64, 32, 5, 2, 1),
];

fn network() -> Result<Graph> {
    let mut graph = Graph::new("warm-up");
    let mut x = graph.add_input("x", Fact::fixed(DType::F32, &[1, 24, 24, 3]));
    for (i, (c, m, kernel, stride, groups)) in LAYERS.into_iter().enumerate() {
        let weights = Tensor::zeros(DType::F32, &[m, c / groups, kernel, kernel])?;
        let weights = graph.add_constant(format!("weights{i}"), weights);
        let bias = graph.add_constant(format!("bias{i}"), Tensor::zeros(DType::F32, &[m])?);
        let op = Conv {
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            padding: Padding::Explicit(vec![kernel / 2; 4]),
            groups,
            channels_last: true,
            activation: Activation::Relu,
        };
        x = graph.apply(format!("conv{i}"), op, &[x, weights, bias]);
    }
    graph.outputs.push(x);
    Ok(graph)
}

/// Warms up, the first time that it is called in a worker. Nothing depends on it, so whatever goes
/// wrong is left for the model to meet.
#[wasm_bindgen(js_name = warmUp)]
pub async fn warm_up() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::Relaxed) {
        let _ = kernels().await;
    }
}

async fn kernels() -> Result<()> {
    let options = SessionOptions {
        backends: vec![BackendId::from("cpu")],
        ..SessionOptions::default()
    };
    let mut session = Runtime::shared().session(network()?, options).await?;
    let x = Tensor::zeros(DType::F32, &[1, 24, 24, 3])?;
    for _ in 0..RUNS {
        session
            .run(&[("x", x.clone())], &RunOptions::default())
            .await?;
    }
    Ok(())
}

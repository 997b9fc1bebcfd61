//! What sessions hold: the arena's plan ([`bounds`]), sharing it ([`sharing`]), thrift ([`thrift`]), sizes
//! that change ([`plans`]), and tensors that are copied ([`layouts`]).

#![cfg(not(target_arch = "wasm32"))]

mod bounds;
mod layouts;
mod plans;
mod sharing;
mod thrift;

use kilim::core::Interrupt;
use kilim::core::backend::ContextConfig;
use kilim::core::ops::{
    Activation, Binary, BinaryKind, Conv, MatMul, Padding, TopK, Unary, UnaryKind,
};
use kilim::{
    BackendId, DType, Dim, ErrorCode, Fact, Graph, LoadOptions, MemoryMode, Result, RunOptions,
    Runtime, Session, Shape, Sharing, Tensor, VerifyOptions,
};
use kilim_test_support::{material, skip, skip_part};
use kilim_tests::machine::{cpu, gpu_beside_others};

fn options() -> LoadOptions {
    LoadOptions {
        backends: vec![BackendId::from("cpu")],
        ..LoadOptions::default()
    }
}

fn thrifty() -> LoadOptions {
    let mut options = options();
    options.context = ContextConfig {
        memory: MemoryMode::Limit,
        ..ContextConfig::default()
    };
    options
}

fn sharing(sharing: Sharing) -> LoadOptions {
    let mut options = options();
    options.sharing = sharing;
    options
}

fn session(graph: Graph, options: LoadOptions) -> Result<Session> {
    pollster::block_on(Runtime::shared().session(graph, options))
}

fn run(session: &mut Session, x: &Tensor) -> Result<Tensor> {
    let inputs = [("x", x.clone())];
    let out = pollster::block_on(session.run(&inputs, &RunOptions::default()))?;
    Ok(out.into_iter().next().expect("an output").1)
}

fn arena(session: &Session) -> usize {
    session.report().backends[0].arena_bytes
}

/// Weights that differ from element to element.
fn weights(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count)
        .map(|i| ((i * 7919) % 1009) as f32 / 1009.0 - 0.5)
        .collect();
    Tensor::from_slice(shape, &data).unwrap()
}

/// A convolution of 3x3, which leaves the size as it is.
fn convolution() -> Conv {
    Conv {
        strides: vec![1; 2],
        dilations: vec![1; 2],
        padding: Padding::Explicit(vec![1; 4]),
        groups: 1,
        channels_last: false,
        activation: Activation::Relu,
    }
}

/// Three convolutions of 3x3 with `channels` channels on an image of `size` x `size`, which the
/// fast kernels compute with transformed weights.
fn convolutions(channels: usize, size: Dim) -> Graph {
    let mut g = Graph::new("convolutions");
    let dims = [Dim::Known(1), Dim::Known(channels), size.clone(), size];
    let mut x = g.add_input("x", Fact::new(DType::F32, Shape(dims.to_vec())));
    for i in 0..3 {
        let w = g.add_constant(format!("w{i}"), weights(&[channels, channels, 3, 3]));
        x = g.apply(format!("conv{i}"), convolution(), &[x, w]);
    }
    g.outputs.push(x);
    g
}

fn weight_bytes(channels: usize) -> usize {
    3 * channels * channels * 9 * 4
}

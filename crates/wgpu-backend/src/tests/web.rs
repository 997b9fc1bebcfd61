//! A kernel of each family in a browser, where reading back is asynchronous and WebGPU validates.

use kilim_core::ops::{
    Activation, Attention, Binary, BinaryKind, CellActivation, Concat, Conv, Direction, Gather,
    Gru, Lstm, MatMul, Padding, Recurrent, Rnn, Softmax, SoftmaxKind, Transpose, Unary, UnaryKind,
};
use kilim_core::{Interrupt, Tensor};
use wasm_bindgen_test::*;

use super::harness::*;
use super::shaders::ALL;
use crate::device::pipelines::{self, Key};
use crate::shaders::{Choice, Program, Variant};

wasm_bindgen_test_configure!(run_in_dedicated_worker);

fn constant(shape: &[usize], seed: u32) -> Given {
    Given::Constant(random(shape, seed))
}

fn fed_random(shape: &[usize], seed: u32) -> Given {
    Given::Fed(random(shape, seed))
}

#[wasm_bindgen_test]
async fn kernels_agree_with_the_cpu() {
    if !open_here().await {
        return;
    }
    let x = fed_random(&[2, 6, 8, 8], 1);
    agree_later(Unary(UnaryKind::Erf), &[x.clone()], 1, 1e-5).await;
    agree_later(
        Binary::new(BinaryKind::Mul),
        &[x.clone(), constant(&[6, 1, 1], 2)],
        1,
        1e-6,
    )
    .await;
    let conv = |groups, channels_last| Conv {
        strides: vec![1, 1],
        dilations: vec![1, 1],
        padding: Padding::SameUpper,
        groups,
        channels_last,
        activation: Activation::Relu,
    };
    let weights = constant(&[8, 6, 3, 3], 3);
    agree_later(
        conv(1, false),
        &[x.clone(), weights, constant(&[8], 4)],
        1,
        1e-5,
    )
    .await;
    let last = fed_random(&[2, 8, 8, 8], 1);
    agree_later(
        conv(8, true),
        &[last, constant(&[8, 1, 3, 3], 3), constant(&[8], 4)],
        1,
        1e-5,
    )
    .await;
    agree_later(
        MatMul::default(),
        &[fed_random(&[2, 5, 12], 1), constant(&[12, 20], 2)],
        1,
        1e-5,
    )
    .await;
    agree_later(
        MatMul::default(),
        &[fed_random(&[1, 12], 1), fed_random(&[12, 9], 2)],
        1,
        1e-5,
    )
    .await;
    let softmax = Softmax {
        kind: SoftmaxKind::Softmax,
        axis: -1,
        beta: 1.0,
    };
    agree_later(softmax, &[fed_random(&[3, 70], 1)], 1, 1e-5).await;
    let attention = Attention {
        causal: true,
        zeros: true,
        ..Attention::default()
    };
    let lengths = Tensor::from_slice(&[2], &[40i64, 7]).unwrap();
    let given = [
        fed_random(&[2, 6, 9, 20], 1),
        fed_random(&[2, 2, 45, 20], 2),
        fed_random(&[2, 2, 45, 36], 3),
        fed_random(&[9, 45], 4),
        i64s(&[36, -2]),
        Given::Fed(lengths),
        fed_random(&[6], 5),
    ];
    agree_later(attention, &given, 1, 1e-5).await;
    agree_later(
        Transpose {
            perm: vec![0, 2, 3, 1],
        },
        &[x.clone()],
        1,
        0.0,
    )
    .await;
    let joined: Vec<Given> = (0..8).map(|i| fed_random(&[2, 3], i)).collect();
    agree_later(Concat { axis: 1 }, &joined, 1, 0.0).await;
    agree_later(Gather { axis: 1 }, &[x, i64s(&[5, -1, 0])], 1, 0.0).await;
}

#[wasm_bindgen_test]
async fn recurrent_layers_run_in_both_directions() {
    if !open_here().await {
        return;
    }
    for direction in [
        Direction::Forward,
        Direction::Reverse,
        Direction::Bidirectional,
    ] {
        let d = direction.count();
        use CellActivation::{Sigmoid, Tanh};
        let cell = |each: &[CellActivation]| Recurrent {
            hidden: 6,
            direction,
            activations: each.repeat(d),
            clip: None,
            batch_first: false,
        };
        let given = |gates: usize| {
            [
                fed_random(&[1, 3, 5], 1),
                constant(&[d, gates * 6, 5], 2),
                constant(&[d, gates * 6, 6], 3),
                constant(&[d, 2 * gates * 6], 4),
            ]
        };
        let rnn = Rnn {
            cell: cell(&[Tanh]),
        };
        agree_later(rnn, &given(1), 2, 1e-5).await;
        let gru = Gru {
            cell: cell(&[Sigmoid, Tanh]),
            linear_before_reset: false,
        };
        agree_later(gru, &given(3), 2, 1e-5).await;
        let lstm = Lstm {
            cell: cell(&[Sigmoid, Tanh, Tanh]),
            input_forget: false,
            cell_clip: None,
            rounds_state: false,
        };
        agree_later(lstm, &given(4), 3, 1e-5).await;
    }
}

/// Sessions may load and read at the same time.
#[wasm_bindgen_test]
async fn two_at_once() {
    if !open_here().await {
        return;
    }
    let one = async {
        let op = Unary(UnaryKind::Softplus);
        agree_later(op, &[fed_random(&[40], 1)], 1, 1e-5).await
    };
    let other = async {
        let op = Unary(UnaryKind::Mish);
        agree_later(op, &[fed_random(&[41], 1)], 1, 1e-5).await
    };
    let (mut one, mut other) = (Box::pin(one), Box::pin(other));
    let (mut done, mut gone) = (false, false);
    std::future::poll_fn(|cx| {
        use std::future::Future;
        done = done || one.as_mut().poll(cx).is_ready();
        gone = gone || other.as_mut().poll(cx).is_ready();
        match done && gone {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
}

/// Every shader with every value of every choice, not in every combination: those are validated
/// natively.
#[wasm_bindgen_test]
async fn the_browser_compiles_every_shader() {
    if !open_here().await {
        return;
    }
    let Some(backend) = gpu() else { return };
    let shared = backend.shared();
    let gpu = &shared.gpu;
    for shader in ALL {
        let mut cold = Vec::new();
        let cases = shader.cases().flat_map(|case| {
            let first = case[0].choices().unwrap();
            case.into_iter()
                .filter(move |v| differences(*v, &first) < 2)
        });
        for variant in cases {
            let source = variant.source(&[]).unwrap();
            let bindings = source.matches("@binding").count();
            let key = Key {
                program: Program::File(variant),
                read_only: vec![false; bindings - 1],
            };
            cold.push(gpu.pipelines.get(gpu, &key).unwrap());
        }
        pipelines::warm(gpu, &cold, &Interrupt::NEVER)
            .await
            .unwrap_or_else(|e| panic!("{}: {e}", shader.path));
    }
}

fn differences(variant: Variant, first: &[Choice]) -> usize {
    let choices = variant.choices().unwrap();
    choices.iter().zip(first).filter(|(a, b)| a != b).count()
}

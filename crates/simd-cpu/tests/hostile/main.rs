//! Whatever a model says, a kernel gives a result or an error: operators with odd attributes meet inputs of odd
//! sizes. Debug builds panic on overflow, so that unchecked products of sizes are found, on 64 bits and on 32.

#![cfg(not(target_arch = "wasm32"))]

mod memory;
mod node;
mod tables;

use std::panic::{AssertUnwindSafe, catch_unwind};

use kilim_core::testing::odd::{Odd, SMALL};
use kilim_core::testing::{Random, content, operators};
use kilim_core::{Backend, Limits};
use kilim_host::build_alone;

use node::{Node, patience};
use tables::SLACK;

/// Nodes of each operator.
const TRIES: usize = 3000;

/// What came of the nodes.
#[derive(Debug, Default)]
struct Seen {
    built: usize,
    refused: usize,
    results: usize,
    errors: usize,
}

fn try_node(backend: &kilim_simd_cpu::CpuBackend, mut node: Node, odd: &mut Odd, seen: &mut Seen) {
    if backend.supports(&node.spec()).is_err() {
        return;
    }
    let before = memory::held();
    match build_alone(backend, &node.spec(), &Limits::default(), &patience()) {
        Ok(alone) => {
            seen.built += 1;
            let kept = memory::held() - before;
            let counted = alone.counted as isize;
            assert!(
                kept <= counted + SLACK,
                "{kept} bytes are kept, {counted} are counted"
            );
        }
        Err(_) => seen.refused += 1,
    }
    if node.is_small() && node.fill(&mut odd.0).is_ok() {
        // Values decide about support, too.
        if backend.supports(&node.spec()).is_ok() {
            match backend.evaluate(&node.spec(), &patience()) {
                Some(Ok(_)) => seen.results += 1,
                _ => seen.errors += 1,
            }
        }
    }
}

#[test]
fn every_kernel_gives_a_result_or_an_error() {
    let backend = kilim_simd_cpu::backend();
    let odd = &mut Odd(Random(11));
    let mut seen = Seen::default();
    let mut panics = Vec::new();
    for known in operators() {
        for _ in 0..TRIES {
            let op = (known.build)(&content(&known.schema, odd));
            let mut shown = format!("{op:?}");
            let tried = catch_unwind(AssertUnwindSafe(|| {
                if let Some(node) = Node::of(op, &SMALL, &mut odd.0) {
                    shown += &format!(" of {:?} to {:?}", node.inputs, node.outputs);
                    try_node(&backend, node, odd, &mut seen);
                }
            }));
            if tried.is_err() {
                panics.push(shown);
            }
        }
    }
    assert!(panics.is_empty(), "{} panics: {panics:#?}", panics.len());
    assert!(seen.built > 2_000 && seen.results > 1_000, "{seen:?}");
    println!("{seen:?}");
}

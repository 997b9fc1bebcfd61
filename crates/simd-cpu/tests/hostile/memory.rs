//! Where memory is short, a kernel gives an error: an allocator refuses what is large, from each such request of a node
//! on.
//!
//! Memory that cannot be refused ends the program, so that the nodes are tried in a program of their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use kilim_core::testing::odd::Odd;
use kilim_core::testing::{Random, content, operators};
use kilim_core::{Backend, Limits, Result};
use kilim_host::build_alone;
use kilim_simd_cpu::CpuBackend;

use super::node::{Node, patience};

/// Bytes of an allocation that is refused. What a node needs whatever its sizes are is far smaller.
const LARGE: usize = 16 << 10;
/// Dimensions: a few of them make a large tensor, or one a large list.
const SIZES: [usize; 8] = [1, 1, 3, 8, 30, 100, 100, 3000];
/// Large requests of a node that are refused in turn.
const REQUESTS: usize = 8;
/// Nodes of each operator.
const TRIES: usize = 6000;
/// The first node of a program, and how many it tries.
const FROM: &str = "KILIM_SHORT_OF_MEMORY_FROM";
const COUNT: &str = "KILIM_SHORT_OF_MEMORY_COUNT";
/// Faults after which the search ends.
const FAULTS: usize = 40;

struct Short;

/// Large requests that are still granted.
static GRANTED: AtomicUsize = AtomicUsize::new(usize::MAX);
static REFUSED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Bytes that this thread has allocated and not freed.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated more than it has freed.
pub fn held() -> isize {
    HELD.get()
}

fn note(more: usize, fewer: usize) {
    // A thread that ends has no such variable any more.
    let _ = HELD.try_with(|held| held.set(held.get() + more as isize - fewer as isize));
}

fn refuses(bytes: usize) -> bool {
    let granted = GRANTED.load(Ordering::Relaxed);
    if bytes <= LARGE || granted == usize::MAX {
        return false;
    }
    GRANTED.store(granted.saturating_sub(1), Ordering::Relaxed);
    REFUSED.fetch_add(usize::from(granted == 0), Ordering::Relaxed);
    granted == 0
}

#[global_allocator]
static ALLOCATOR: Short = Short;

// SAFETY: the system's allocator, or null, which says that memory is short.
unsafe impl GlobalAlloc for Short {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match refuses(layout.size()) {
            true => null_mut(),
            false => {
                note(layout.size(), 0);
                // SAFETY: `layout` is not empty, as `alloc` demands.
                unsafe { System.alloc(layout) }
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match refuses(layout.size()) {
            true => null_mut(),
            false => {
                note(layout.size(), 0);
                // SAFETY: `layout` is not empty, as `alloc_zeroed` demands.
                unsafe { System.alloc_zeroed(layout) }
            }
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        match bytes > layout.size() && refuses(bytes) {
            true => null_mut(),
            false => {
                note(bytes, layout.size());
                // SAFETY: `memory` came from this allocator, so from the system's, with `layout`; `bytes` is possible
                // with its alignment.
                unsafe { System.realloc(memory, layout, bytes) }
            }
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        note(0, layout.size());
        // SAFETY: `memory` came from this allocator, so from the system's, with `layout`.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Does something while memory is short after `granted` large requests. Gives the result, and how many more there were.
fn short<T>(granted: usize, work: impl FnOnce() -> T) -> (T, usize) {
    REFUSED.store(0, Ordering::Relaxed);
    GRANTED.store(granted, Ordering::Relaxed);
    let result = work();
    GRANTED.store(usize::MAX, Ordering::Relaxed);
    (result, REFUSED.load(Ordering::Relaxed))
}

/// Does something again and again, while each of its large requests is the first to be refused. Gives how many were.
///
/// # Panics
/// Where a result comes of refused memory.
fn each_refused(work: impl Fn() -> Result<()>) -> usize {
    let mut times = 0;
    while times < REQUESTS {
        let (result, refused) = short(times, &work);
        if refused == 0 {
            break;
        }
        assert!(result.is_err(), "a part is missing");
        times += 1;
    }
    times
}

/// Builds and runs a node. Gives how often memory was refused.
fn try_node(backend: &CpuBackend, mut node: Node, odd: &mut Odd) -> usize {
    if backend.supports(&node.spec()).is_err() {
        return 0;
    }
    let limits = Limits::default();
    let mut times =
        each_refused(|| build_alone(backend, &node.spec(), &limits, &patience()).map(drop));
    if node.is_small() && node.fill(&mut odd.0).is_ok() && backend.supports(&node.spec()).is_ok() {
        times += each_refused(|| {
            let ran = backend.evaluate(&node.spec(), &patience());
            ran.map_or(Ok(()), |ran| ran.map(drop))
        });
    }
    times
}

/// Tries the nodes that the environment asks for; names each before.
#[test]
#[ignore = "a part of the test below"]
fn nodes() {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let from: usize = number(FROM).unwrap_or(0);
    let count: usize = number(COUNT).unwrap_or(usize::MAX);
    let backend = kilim_simd_cpu::backend();
    let operators = operators();
    let mut refused = 0;
    for n in (from..operators.len() * TRIES).take(count) {
        let known = &operators[n / TRIES];
        let odd = &mut Odd(Random((n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let op = (known.build)(&content(&known.schema, odd));
        let mut shown = format!("{op:?}");
        let Some(node) = Node::of(op, &SIZES, &mut odd.0) else {
            continue;
        };
        println!("\nnode {n}");
        if count == 1 {
            let shapes = |s: &kilim_core::backend::TensorSpec| format!("{}{:?}", s.dtype, s.shape);
            let inputs: Vec<_> = node.inputs.iter().map(|i| i.as_ref().map(shapes)).collect();
            let outputs: Vec<_> = node.outputs.iter().map(shapes).collect();
            shown.truncate(500);
            println!("\nshown {shown} of {inputs:?} to {outputs:?}");
        }
        refused += try_node(&backend, node, odd);
    }
    println!("\nrefused {refused}");
}

/// What a program said: the last line of each kind.
#[derive(Default)]
struct Said {
    node: Option<usize>,
    shown: String,
    refused: Option<usize>,
}

fn program(from: usize, count: usize) -> Said {
    let program = std::env::current_exe().expect("a program");
    let mut child = Command::new(program)
        .args(["--exact", "memory::nodes", "--ignored", "--nocapture"])
        .args(["--test-threads", "1"])
        .env(FROM, from.to_string())
        .env(COUNT, count.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a program starts");
    let mut said = Said::default();
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for line in lines.map_while(Result::ok) {
        match line.split_once(' ') {
            Some(("node", n)) => said.node = n.parse().ok(),
            Some(("shown", text)) => said.shown = text.to_string(),
            Some(("refused", n)) => said.refused = n.parse().ok(),
            _ => {}
        }
    }
    child.wait().expect("a program ends");
    said
}

#[test]
fn memory_that_is_short_is_an_error() {
    let mut faults = Vec::new();
    let mut from = 0;
    let refused = loop {
        let said = program(from, usize::MAX);
        match (said.refused, said.node) {
            (Some(refused), _) => break refused,
            (None, Some(node)) if faults.len() < FAULTS => {
                faults.push(format!("{node}: {}", program(node, 1).shown));
                from = node + 1;
            }
            _ => break 0,
        }
    };
    assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
    assert!(refused > 400, "memory was refused {refused} times");
}

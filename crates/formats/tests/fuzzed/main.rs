//! Every importer reads the inputs that fuzzing begins with and those that it found: each is a graph or an error, in memory that is bounded.
//! `cargo xtask fuzz --importers` looks for more.

#![cfg(not(target_arch = "wasm32"))]

mod input;
mod seeds;
mod small;
mod zip;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use input::{FORMATS, Input, MEMORY, import};
use kilim_formats::ImporterRegistry;
use kilim_test_support::allocations::{Counting, most_during};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test, as all threads of a program count together.
#[test]
fn inputs_of_fuzzing_are_graphs_or_errors_in_bounded_memory() {
    let registry = ImporterRegistry::default();
    let known: BTreeSet<&str> = registry.formats().collect();
    let fuzzed: BTreeSet<&str> = FORMATS.into_iter().map(|(format, _)| format).collect();
    assert_eq!(known, fuzzed, "the formats");
    let mut wrong = Vec::new();
    for of in FORMATS {
        let seeds = seeds::seeds(of.0);
        assert!(!seeds.is_empty(), "{} has no seeds", of.0);
        let mut graphs = 0;
        for (name, bytes) in seeds.iter().chain(&seeds::kept(of.0)) {
            let read = || import(&registry, of, &Input::read(bytes)).is_ok();
            let (most, read) = most_during(|| catch_unwind(AssertUnwindSafe(read)));
            if read.is_err() || most > MEMORY {
                let what = if read.is_err() { ", a panic" } else { "" };
                wrong.push(format!("{}: {name}: {most} bytes{what}", of.0));
            }
            graphs += usize::from(seeds.contains_key(name) && read.is_ok_and(|graph| graph));
        }
        // Seeds that are refused lead nowhere.
        assert!(2 * graphs > seeds.len(), "{}: {graphs} graphs", of.0);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

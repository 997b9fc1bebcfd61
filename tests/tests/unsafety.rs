//! Where `unsafe` stands: in these places and nowhere else.

#![cfg(not(target_arch = "wasm32"))]

use std::fs;
use std::path::{Path, PathBuf};

/// Folders and files below `crates/`, with what needs it there.
const PLACES: &[(&str, &str)] = &[
    ("simd-cpu/src", "SIMD kernels"),
    (
        "native-arm/src",
        "the interface of the ARM Compute Library's shim",
    ),
    ("plugin-abi/src", "the C interface of backends in libraries"),
    ("plugin/src", "the same from the host's side"),
    (
        "host/src/threads/pool.rs",
        "work that is borrowed by threads",
    ),
    ("host/src/work", "outputs that threads share in parts"),
    ("host/src/kernel/io.rs", "tensors in one arena"),
    ("host/src/kernel/widen.rs", "tensors in scratch memory"),
    ("host/src/executable/mod.rs", "views into the arena"),
    ("host/src/backend/prepared.rs", "a node's tensors, alone"),
    ("core/src/memory/host.rs", "the memory of arenas"),
    ("core/src/tensor/bytes.rs", "aligned bytes"),
    ("core/src/user_memory.rs", "memory of the user's"),
    (
        "core/src/backend/command_queue.rs",
        "command queues by their handles",
    ),
    ("web/src/memory.rs", "the allocator of the web build"),
    // What a driver compiled is handed back to it unchecked.
    ("core/src/backend/mod.rs", "caches of drivers"),
    ("wgpu-backend/src/backend.rs", "caches of drivers"),
    ("wgpu-backend/src/device/pipelines.rs", "caches of drivers"),
    ("kilim/src/cache.rs", "caches of drivers"),
    ("cli/src/model.rs", "caches of drivers"),
    ("web/src/session.rs", "caches of drivers"),
    ("web/src/backend/mod.rs", "caches of drivers"),
];

/// The Rust files below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Whether a file's code has the keyword; tests, which end a file or are files of their own, do not count.
fn has_unsafe(text: &str) -> bool {
    let product = text.split("#[cfg(test)]\nmod tests {").next();
    let mut lines = product.unwrap_or_default().lines();
    lines.any(|line| {
        let code = line.split("//").next().unwrap_or_default();
        let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == "unsafe")
    })
}

#[test]
fn unsafe_stands_where_it_is_written_down() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut used = vec![false; PLACES.len()];
    let mut elsewhere = Vec::new();
    for entry in fs::read_dir(&crates).expect("the crates are there") {
        let mut files = Vec::new();
        sources(&entry.expect("an entry").path().join("src"), &mut files);
        for file in files {
            let own = file.strip_prefix(&crates).expect("it is below");
            let is_test = own.iter().any(|part| part == "tests" || part == "tests.rs");
            let text = fs::read_to_string(&file).expect("a file is text");
            if is_test || !has_unsafe(&text) {
                continue;
            }
            match PLACES.iter().position(|(place, _)| own.starts_with(place)) {
                Some(place) => used[place] = true,
                None => elsewhere.push(own.display().to_string()),
            }
        }
    }
    assert!(elsewhere.is_empty(), "`unsafe` in {elsewhere:#?}");
    let unused: Vec<_> = PLACES.iter().zip(used).filter(|(_, used)| !used).collect();
    assert!(unused.is_empty(), "no `unsafe` in {unused:#?}");
}

#[test]
fn the_keyword_is_found() {
    assert!(has_unsafe("    unsafe { f() }"));
    assert!(has_unsafe("#[unsafe(no_mangle)]"));
    assert!(has_unsafe("pub unsafe fn f() {}"));
    assert!(!has_unsafe("// unsafe\nlet unsafely = 1;"));
}

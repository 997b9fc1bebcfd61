//! Sets `threads` where the target can have them: natively, and in WebAssembly with shared memory.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(threads)");
    let read = |name: &str| std::env::var(name).unwrap_or_default();
    let wasm = read("CARGO_CFG_TARGET_FAMILY")
        .split(',')
        .any(|f| f == "wasm");
    let atomics = read("CARGO_CFG_TARGET_FEATURE")
        .split(',')
        .any(|f| f == "atomics");
    if !wasm || atomics {
        println!("cargo::rustc-cfg=threads");
    }
}

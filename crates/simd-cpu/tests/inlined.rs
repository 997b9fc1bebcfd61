//! Vector operations are instructions where kernels run, not calls. A closure that the compiler does not inline has none of
//! the instruction sets of the function around it: each operation in it becomes a call, with its vectors in memory.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::collections::HashSet;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

/// Intrinsics of AVX and AVX2, and of AVX-512.
const INTRINSICS: [&str; 2] = ["_mm256_", "_mm512_"];
/// What functions with these instruction sets are called. How much is inlined into these is the compiler's choice.
const WITH_THE_SET: [&str; 2] = ["run_avx", "run_vnni"];
/// A dependency with kernels of its own for AVX.
const NOT_OURS: &str = "rustfft";
/// A call is this byte and the distance from its end, in four bytes.
const CALL: u8 = 0xe8;

#[test]
fn vector_operations_are_inlined() {
    std::hint::black_box(kilim_simd_cpu::kernels());
    let path = std::env::current_exe().expect("the path of this test");
    let bytes = std::fs::read(path).expect("the file of this test");
    let file = object::File::parse(&*bytes).expect("an executable");
    let text = file.section_by_name(".text").expect("code");
    let (start, code) = (text.address(), text.data().expect("code"));
    let here = Some(text.index());
    let functions = || {
        let symbols = file.symbols();
        symbols.filter(|s| s.kind() == SymbolKind::Text && s.section_index() == here)
    };
    let of = |name: &str, part: &str| name.contains(part);

    let intrinsics: HashSet<u64> = functions()
        .filter(|f| {
            f.name()
                .is_ok_and(|name| INTRINSICS.iter().any(|i| of(name, i)))
        })
        .map(|f| f.address())
        .collect();
    let (mut kernels, mut callers) = (0, Vec::new());
    for function in functions() {
        let name = function.name().expect("a name");
        if WITH_THE_SET.iter().any(|part| of(name, part)) {
            kernels += 1;
            continue;
        }
        if of(name, NOT_OURS) {
            continue;
        }
        let first = (function.address() - start) as usize;
        let own = &code[first..first + function.size() as usize];
        let calls = own.windows(5).enumerate().filter(|(i, window)| {
            let distance = i32::from_le_bytes([window[1], window[2], window[3], window[4]]);
            let end = function.address() + *i as u64 + 5;
            window[0] == CALL && intrinsics.contains(&end.wrapping_add_signed(distance.into()))
        });
        match calls.count() {
            0 => {}
            n => callers.push(format!("{n} calls in {name}")),
        }
    }
    assert!(kernels > 10, "no kernels are in this test");
    assert!(callers.is_empty(), "not inlined: {callers:#?}");
}

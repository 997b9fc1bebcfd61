//! WebAssembly simd128.

use std::arch::wasm32::*;

use super::Pairs;
use crate::isa::{with_memory, with_token};

#[derive(Clone, Copy)]
pub(crate) struct Wasm;

impl Pairs for Wasm {
    const LANES: usize = 4;
    const TILE_ROWS: usize = 4;
    const TILE_VECTORS: usize = 3;
    // Browsers have 15 registers of x86. A product takes one, three columns three, and a row one.
    const TILE_SUMS: usize = 9;
    type V = v128;

    with_token! {
        fn splat(x: i32) -> v128 { i32x4_splat(x) }
        fn add(a: v128, b: v128) -> v128 { i32x4_add(a, b) }
        fn dot(a: v128, b: v128, sum: v128) -> v128 { i32x4_add(sum, i32x4_dot_i16x8(a, b)) }
    }

    with_memory! {
        unsafe fn load(p: *const i32) -> v128 { v128_load(p.cast()) }
        unsafe fn load_words(p: *const i16) -> v128 { i32x4_load_extend_i16x4(p) }
        unsafe fn store(p: *mut i32, v: v128) { v128_store(p.cast(), v) }
    }
}

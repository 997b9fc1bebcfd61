//! Every kernel on the machine's GPU against plain expectations or the CPU backend. Without a GPU
//! these tests say so and pass; the shaders are validated in any case.

mod harness;
mod shaders;
#[cfg(target_arch = "wasm32")]
mod web;

#[cfg(not(target_arch = "wasm32"))]
mod attention;
#[cfg(not(target_arch = "wasm32"))]
mod caches;
#[cfg(not(target_arch = "wasm32"))]
mod casts;
#[cfg(not(target_arch = "wasm32"))]
mod convolution;
#[cfg(not(target_arch = "wasm32"))]
mod elementwise;
#[cfg(not(target_arch = "wasm32"))]
mod executables;
#[cfg(not(target_arch = "wasm32"))]
mod half;
#[cfg(not(target_arch = "wasm32"))]
mod integers;
#[cfg(not(target_arch = "wasm32"))]
mod matmul;
#[cfg(not(target_arch = "wasm32"))]
mod movement;
#[cfg(not(target_arch = "wasm32"))]
mod normed;
#[cfg(not(target_arch = "wasm32"))]
mod packed;
#[cfg(not(target_arch = "wasm32"))]
mod platforms;
#[cfg(not(target_arch = "wasm32"))]
mod qkv;
#[cfg(not(target_arch = "wasm32"))]
mod quantized;
#[cfg(not(target_arch = "wasm32"))]
mod recovery;
#[cfg(not(target_arch = "wasm32"))]
mod recurrent;
#[cfg(not(target_arch = "wasm32"))]
mod reductions;

//! The backend `wgpu`: operators as WGSL compute shaders over Vulkan, Metal and Direct3D 12
//! natively and over WebGPU in a browser.
//!
//! A node is *lowered* to dispatches ([`lowering`]) without touching the device: the same lowering
//! answers whether a node is supported and builds its kernels, so the two cannot disagree.

mod backend;
mod context;
mod device;
mod executable;
mod kernels;
mod lowering;
mod shaders;
#[cfg(test)]
mod tests;

pub use backend::WgpuBackend;
#[cfg(target_arch = "wasm32")]
pub use executable::exported::handles;

//! The backend `wgpu`: operators as WGSL compute shaders over Vulkan, Metal and Direct3D 12
//! natively and over WebGPU in a browser.
//!
//! A node is *lowered* to dispatches ([`lower`]) without touching the device: the same lowering
//! answers whether a node is supported and builds its kernels, so the two cannot disagree.

mod allocator;
mod backend;
mod binder;
mod binding;
mod constants;
mod context;
mod executable;
mod faults;
mod gpu;
mod kernels;
mod lower;
mod params;
mod pipelines;
mod preprocess;
mod profile;
mod shaders;
mod storage;
#[cfg(test)]
mod tests;
mod transfer;
mod walk;

pub use backend::WgpuBackend;

//! The ARM Compute Library (ACL) as backends: `acl_neon` on the CPU, `acl_cl` on OpenCL devices.
//!
//! ACL is a C++ library whose ABI changes with every release, so a small library of our own,
//! `libkilim_acl.so` (`shim/`), is built against the release that a board has and opened when the
//! backend is. Without it, or without ACL, the backend says so and everything else goes on.
//!
//! A node becomes one or more [`Call`](call::Call)s of ACL functions (`operators/`). Whether ACL runs
//! them is ACL's own answer: its `validate` is asked with these very tensors, and its reason is handed
//! on. Tensors are in host memory, in the arena that the `cpu` backend's executables keep.
//!
//! The crate is empty but on AArch64 Linux and Android. `docs/arm.md` tells how to build all of it.
#![cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]

mod backend;
mod call;
mod ffi;
mod kernel;
mod library;
mod operators;

pub use backend::AclBackend;

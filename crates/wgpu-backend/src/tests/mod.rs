//! Every kernel on the machine's GPU against plain expectations. Without a GPU these tests say so
//! and pass; the shaders are validated in any case.

mod elementwise;
mod harness;
mod movement;
mod products;
mod reductions;
mod shaders;

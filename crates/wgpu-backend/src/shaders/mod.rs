//! The shader files and their variants. The build script makes a module of each file in `shaders/`: a
//! `Launch` has a field for each definition and each buffer of the file, and its `Params`. Shapes are
//! parameters, never definitions. A variant is compiled once for a device.

mod call;
pub(crate) mod preprocess;
mod user;
mod variant;
mod words;

pub(crate) use call::{Call, Operand, Program, Target};
pub(crate) use user::UserShader;
#[cfg(all(test, target_arch = "wasm32"))]
pub(crate) use variant::Choice;
pub(crate) use variant::File;
#[cfg(test)]
pub(crate) use variant::Variant;
pub(crate) use words::Words;

/// Workgroups along one dimension of a dispatch, at most.
pub(crate) const MOST_GROUPS: usize = 65535;

include!(concat!(env!("OUT_DIR"), "/entries.rs"));

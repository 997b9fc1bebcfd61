//! The shaders of operators that the session brings.

use std::fmt::Write;
use std::sync::Arc;

/// A user's WGSL, and the declarations that go in front of it.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct UserShader {
    pub text: Arc<str>,
    /// The declaration of the uniform; empty where there is none.
    pub parameters: String,
    /// The name and WGSL element type of each storage buffer.
    pub buffers: Vec<(String, &'static str)>,
}

impl UserShader {
    /// The whole module. Buffers in the arena are all bound for writing: WebGPU does not bind parts
    /// of one buffer in two ways.
    pub fn source(&self, read_only: &[bool]) -> String {
        let mut source = self.parameters.clone();
        for (i, ((name, element), read_only)) in self.buffers.iter().zip(read_only).enumerate() {
            let access = if *read_only { "read" } else { "read_write" };
            // Writing to a string cannot fail.
            let _ = writeln!(
                source,
                "@group(0) @binding({}) var<storage, {access}> {name}: array<{element}>;",
                i + 1
            );
        }
        source + &self.text
    }
}

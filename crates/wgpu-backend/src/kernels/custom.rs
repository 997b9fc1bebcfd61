//! Operators that the session brings, with a shader of their own.

use std::fmt::Write;
use std::sync::Arc;

use kilim_core::DType;
use kilim_core::ops::{Custom, ShaderNumber, ShaderTensor};

use super::Kernels;
use crate::lower::{Dispatch, Lowering, Lowers, Operand, refuse};
use crate::params::Params;
use crate::storage;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Custom>(custom);
}

/// A user's WGSL, and the declarations that go in front of it.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct UserShader {
    text: Arc<str>,
    parameters: String,
    /// The name and WGSL element type of each storage buffer.
    buffers: Vec<(String, &'static str)>,
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

fn custom(op: &Custom, l: &mut Lowering) -> Lowers {
    let kernel = op.shader(l.node)?;
    let outputs = (0..l.node.outputs.len()).map(ShaderTensor::Output);
    for wanted in outputs {
        if !kernel.bindings.iter().any(|(_, t)| *t == wanted) {
            return refuse(format!("the shader does not bind {wanted:?}"));
        }
    }
    let mut operands = Vec::with_capacity(kernel.bindings.len());
    let mut buffers = Vec::with_capacity(kernel.bindings.len());
    for (name, tensor) in kernel.bindings {
        let (operand, dtype) = match tensor {
            ShaderTensor::Input(i) => (Operand::Input(i), l.input(i)?.dtype),
            ShaderTensor::Output(i) => (Operand::Output(i), l.output(i)?.dtype),
        };
        if operands.contains(&operand) {
            return refuse(format!("the shader binds {tensor:?} twice"));
        }
        operands.push(operand);
        buffers.push((name, element(dtype)?));
    }
    let (parameters, params) = parameters(&kernel.parameters);
    l.lowered.dispatches.push(Dispatch {
        shader: "custom",
        text: Some(Arc::new(UserShader {
            text: kernel.source,
            parameters,
            buffers,
        })),
        defines: Vec::new(),
        operands,
        params,
        groups: kernel.workgroups,
    });
    Ok(())
}

/// The declaration of the uniform, and its words.
fn parameters(list: &[(String, ShaderNumber)]) -> (String, Params) {
    let mut params = Params::new();
    let mut fields = String::new();
    for (name, number) in list {
        let (kind, word) = match *number {
            ShaderNumber::U32(n) => ("u32", n),
            ShaderNumber::I32(n) => ("i32", n as u32),
            ShaderNumber::F32(x) => ("f32", x.to_bits()),
        };
        // Writing to a string cannot fail.
        let _ = write!(fields, "{name}: {kind}, ");
        params.words.push(word);
    }
    if list.is_empty() {
        return (String::new(), params);
    }
    let declaration = format!(
        "struct Params {{ {fields}}}\n@group(0) @binding(0) var<uniform> params: Params;\n"
    );
    (declaration, params)
}

/// How a shader reads the elements of a tensor as the device holds them.
fn element(dtype: DType) -> Lowers<&'static str> {
    Ok(match dtype {
        DType::F16 | DType::BF16 => "u32",
        other => match (storage::words(other), storage::scalar(other)) {
            (Some(1), scalar) => scalar.map_or("u32", |s| s.name),
            (Some(_), _) => "vec2<u32>",
            (None, _) => return refuse(format!("the GPU does not hold {other} tensors")),
        },
    })
}

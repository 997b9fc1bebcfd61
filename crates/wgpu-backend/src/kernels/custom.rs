//! Operators that the session brings, with a shader of their own.

use std::fmt::Write;
use std::sync::Arc;

use kilim_core::DType;
use kilim_core::ops::{Custom, ShaderNumber, ShaderTensor};

use crate::device::storage;
use crate::kernels::Kernels;
use crate::lowering::{Dispatch, Lowering, Lowers, refuse};
use crate::shaders::{Call, Operand, Program, UserShader, Word, Words};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<Custom>(custom);
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
    let shader = UserShader {
        text: kernel.source,
        parameters,
        buffers,
    };
    l.lowered.dispatches.push(Dispatch {
        call: Call {
            program: Program::User(Arc::new(shader)),
            operands,
            params,
        },
        groups: kernel.workgroups,
    });
    Ok(())
}

/// The declaration of the uniform, and its words.
fn parameters(list: &[(String, ShaderNumber)]) -> (String, Words) {
    let mut params = Words::default();
    let mut fields = String::new();
    for (name, number) in list {
        let (kind, word) = match *number {
            ShaderNumber::U32(n) => ("u32", n),
            ShaderNumber::I32(n) => ("i32", n as u32),
            ShaderNumber::F32(x) => ("f32", x.to_bits()),
        };
        // Writing to a string cannot fail.
        let _ = write!(fields, "{name}: {kind}, ");
        params.raw(&[word]);
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
            (Some(1), scalar) => match scalar.map(|s| s.word) {
                Some(Word::F32) => "f32",
                Some(Word::I32) => "i32",
                Some(Word::U32) | None => "u32",
            },
            (Some(_), _) => "vec2<u32>",
            (None, _) => return refuse(format!("the GPU does not hold {other} tensors")),
        },
    })
}

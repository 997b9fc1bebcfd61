//! A backend in Rust: Neg, and an operator of its own, `com.example::Cube`, both on float32.
//!
//!     cargo build -p backend_cube
//!     kilim run model.onnx --backends cube,cpu --plugin-path target/debug

use std::ffi::CStr;

use kilim_plugin_abi::FLOAT32;
use kilim_plugin_abi::guest::{
    Build, Data, Failure, Guest, Kernel, Node, OperatorDef, OptionDef, OptionKind, OutputInfo,
    Result,
};

struct Cube;

/// A function of each element.
fn pointwise(f: impl Fn(f32) -> f32 + Send + 'static) -> Result<Box<dyn Kernel>> {
    Ok(Box::new(
        move |inputs: &[Option<&Data>], outputs: &mut [Data]| {
            let [Some(x)] = inputs else {
                return Err(Failure::device("the input is missing"));
            };
            for (y, x) in outputs[0].f32s_mut().iter_mut().zip(x.f32s()) {
                *y = f(*x);
            }
            Ok(())
        },
    ))
}

impl Guest for Cube {
    fn open() -> Result<Cube> {
        Ok(Cube)
    }

    fn device(&self) -> &CStr {
        c"a sample in Rust"
    }

    fn kernel(&self, node: &Node) -> Result<Box<dyn Kernel>> {
        if node.inputs.iter().flatten().any(|t| t.dtype != FLOAT32) {
            return Err(Failure::unsupported("only float32"));
        }
        match (node.domain, node.op) {
            ("", "Neg") => pointwise(|x| -x),
            ("com.example", "Cube") => pointwise(|x| x * x * x),
            _ => Err(Failure::unsupported("only Neg and com.example::Cube")),
        }
    }

    fn operators() -> &'static [OperatorDef] {
        &[OperatorDef {
            domain: c"com.example",
            name: c"Cube",
            infer: like_the_input,
        }]
    }

    fn options() -> &'static [OptionDef] {
        &[OptionDef {
            name: c"limit",
            kind: OptionKind::Number,
            initial: c"1e30",
            meaning: c"the largest magnitude that a cube has",
        }]
    }

    fn kernel_with(&self, node: &Node, build: &mut Build) -> Result<Box<dyn Kernel>> {
        let limit = build.settings.number("limit");
        let limit = limit.map_or(f32::MAX, |n| n.abs() as f32);
        match (node.domain, node.op) {
            ("com.example", "Cube") => pointwise(move |x| (x * x * x).clamp(-limit, limit)),
            _ => self.kernel(node),
        }
    }
}

fn like_the_input(node: &Node) -> Result<Vec<OutputInfo>> {
    let [Some(x)] = node.inputs[..] else {
        return Err(Failure::unsupported("Cube has one input"));
    };
    let Some(shape) = x.shape else {
        return Err(Failure::unsupported("the rank of the input is unknown"));
    };
    Ok(vec![OutputInfo {
        dtype: x.dtype,
        shape: shape.to_vec(),
    }])
}

kilim_plugin_abi::export_backend!(Cube);

//! Operators that a user brings: on host memory, as WGSL, and what goes wrong with them.

#![cfg(not(target_arch = "wasm32"))]

use std::sync::Arc;

use kilim::core::error::value_error;
use kilim::core::ops::{CustomOperator, CustomOperators, ShaderKernel, ShaderNumber, ShaderTensor};
use kilim::{BackendId, ErrorCode, LoadOptions, Result, RunOptions, Runtime, Session, Tensor};
use kilim_tests::machine::gpu;
use kilim_tests::onnx::{Node, Value, model};

/// `y = relu(scale(x) + x)` with `scale` of another domain.
fn scaled() -> Vec<u8> {
    let nodes = [
        Node {
            domain: "com.example",
            op: "Scale",
            inputs: &["x"],
            outputs: &["s"],
            attributes: &[
                ("factor", Value::Float(3.0)),
                ("mode", Value::Text("plain")),
            ],
        },
        Node {
            domain: "",
            op: "Add",
            inputs: &["s", "x"],
            outputs: &["a"],
            attributes: &[],
        },
        Node {
            domain: "",
            op: "Relu",
            inputs: &["a"],
            outputs: &["y"],
            attributes: &[],
        },
    ];
    model(&nodes, &[("x", &["n", "3"])], &[("y", &["n", "3"])])
}

fn definition() -> CustomOperator {
    CustomOperator::new("com.example", "Scale", |_, ctx| {
        Ok(vec![ctx.fact(0)?.clone()])
    })
}

fn host() -> CustomOperator {
    definition().host(|attributes, inputs, outputs| {
        assert_eq!(attributes.text("mode"), Some("plain"));
        let factor = attributes.float_or("factor", 1.0) as f32;
        let [Some(x)] = inputs else {
            return Err(value_error("one input"));
        };
        let x = x.elements::<f32>()?;
        for (y, x) in outputs[0].elements::<f32>()?.iter_mut().zip(x) {
            *y = factor * x;
        }
        Ok(())
    })
}

const WGSL: &str = "
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < params.count) {
        y[id.x] = x[id.x] * params.factor;
    }
}
";

fn shader(text: &str) -> CustomOperator {
    let text = text.to_string();
    definition().shader(move |attributes, node| {
        let count = node.outputs[0].elements() as u32;
        let factor = attributes.float_or("factor", 1.0) as f32;
        Ok(ShaderKernel {
            source: text.clone().into(),
            bindings: vec![
                ("x".to_string(), ShaderTensor::Input(0)),
                ("y".to_string(), ShaderTensor::Output(0)),
            ],
            parameters: vec![
                ("count".to_string(), ShaderNumber::U32(count)),
                ("factor".to_string(), ShaderNumber::F32(factor)),
            ],
            workgroups: [count.div_ceil(64), 1, 1],
        })
    })
}

fn load(backends: &[&str], operator: Option<CustomOperator>) -> Result<Session> {
    let mut operators = CustomOperators::default();
    operator.into_iter().for_each(|o| operators.add(o));
    let options = LoadOptions {
        backends: backends.iter().map(|b| BackendId::from(*b)).collect(),
        operators,
        ..LoadOptions::default()
    };
    pollster::block_on(Runtime::shared().load(scaled(), options))
}

fn run(session: &mut Session) -> Result<Vec<f32>> {
    let x = Tensor::from_slice(&[2, 3], &[1.0f32, -2.0, 0.5, 4.0, -0.25, 8.0])?;
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default()))?;
    Ok(out[0].1.as_slice::<f32>()?.to_vec())
}

const WANT: [f32; 6] = [4.0, 0.0, 2.0, 16.0, 0.0, 32.0];

fn placed(session: &Session) -> Option<String> {
    let nodes = session.report().nodes;
    let found = nodes.into_iter().find(|n| n.op == "Scale");
    found.map(|n| n.backend)
}

#[test]
fn an_unknown_operator_is_listed_unless_the_session_brings_it() {
    let error = load(&["cpu"], None).err().unwrap();
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert!(error.message().contains("com.example::Scale"), "{error}");
    let mut session = load(&["cpu"], Some(host())).unwrap();
    assert_eq!(run(&mut session).unwrap(), WANT);
    assert_eq!(placed(&session).as_deref(), Some("cpu"));
}

#[test]
fn what_a_kernel_says_names_its_node() {
    let broken = definition().host(|_, _, _| Err(value_error("out of its domain")));
    let mut session = load(&["cpu"], Some(broken)).unwrap();
    let error = run(&mut session).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    assert_eq!((error.node(), error.op()), (Some("s"), Some("Scale")));
    let typed = definition().host(|_, _, outputs| outputs[0].elements::<i64>().map(|_| ()));
    let error = run(&mut load(&["cpu"], Some(typed)).unwrap()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::DType);
}

#[test]
fn an_operator_without_a_kernel_for_any_backend_is_refused_with_reasons() {
    let mut session = load(&["cpu"], Some(definition())).unwrap();
    let error = run(&mut session).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert!(error.message().contains("host memory"), "{error}");
}

#[test]
fn equal_nodes_are_computed_once_and_others_are_not() {
    let twin = |factor| Node {
        domain: "com.example",
        op: "Scale",
        inputs: &["x"],
        outputs: if factor == 0 { &["a"] } else { &["b"] },
        attributes: if factor == 0 {
            &[
                ("factor", Value::Float(3.0)),
                ("mode", Value::Text("plain")),
            ]
        } else {
            &[
                ("factor", Value::Float(4.0)),
                ("mode", Value::Text("plain")),
            ]
        },
    };
    let sum = Node {
        domain: "",
        op: "Sub",
        inputs: &["b", "a"],
        outputs: &["y"],
        attributes: &[],
    };
    let bytes = model(
        &[twin(0), twin(1), sum],
        &[("x", &["2", "3"])],
        &[("y", &["2", "3"])],
    );
    let mut operators = CustomOperators::default();
    operators.add(Arc::new(host()));
    let options = LoadOptions {
        backends: vec![BackendId::from("cpu")],
        operators,
        ..LoadOptions::default()
    };
    let mut session = pollster::block_on(Runtime::shared().load(bytes, options)).unwrap();
    assert_eq!(
        run(&mut session).unwrap(),
        [1.0, -2.0, 0.5, 4.0, -0.25, 8.0]
    );
}

#[test]
fn a_shader_runs_on_the_gpu() {
    if gpu().is_none() {
        return;
    }
    let mut session = load(&["wgpu"], Some(shader(WGSL))).unwrap();
    assert_eq!(run(&mut session).unwrap(), WANT);
    assert_eq!(placed(&session).as_deref(), Some("wgpu"));
}

#[test]
fn a_shader_that_is_wrong_is_an_error_and_the_device_goes_on() {
    if gpu().is_none() {
        return;
    }
    let garbled = "@compute @workgroup_size(64) fn main() { y[0] = no_such_thing; }";
    let mut session = load(&["wgpu"], Some(shader(garbled))).unwrap();
    let error = run(&mut session).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    assert_eq!((error.node(), error.op()), (Some("s"), Some("Scale")));
    let mut session = load(&["wgpu"], Some(shader(WGSL))).unwrap();
    assert_eq!(run(&mut session).unwrap(), WANT);
}

#[test]
fn a_wrong_shader_of_one_session_is_no_concern_of_another() {
    if gpu().is_none() {
        return;
    }
    let garbled = "@compute @workgroup_size(64) fn main() { y[0] = no_such_thing; }";
    let wrong = std::thread::spawn(move || {
        for _ in 0..40 {
            let mut session = load(&["wgpu"], Some(shader(garbled))).unwrap();
            assert_eq!(run(&mut session).unwrap_err().node(), Some("s"));
        }
    });
    for i in 0..40 {
        // A text that was not seen before is compiled.
        let text = format!("{WGSL}\n// {i}");
        let mut session = load(&["wgpu"], Some(shader(&text))).unwrap();
        assert_eq!(run(&mut session).unwrap(), WANT);
    }
    wrong.join().unwrap();
}

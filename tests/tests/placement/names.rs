//! Names that the options give: of backends, of nodes and operators, of dimensions. One that nothing has
//! is a typed error, with what may have been meant.

use kilim::{Dim, Error, Result, Shape, VerifyOptions};

use crate::*;

/// `y = exp(-x)` with `x` of `[N, 2]`.
fn open() -> Graph {
    let mut g = Graph::new("open");
    let shape = Shape(vec![Dim::Symbol("N".into()), Dim::Known(2)]);
    let x = g.add_input("x", Fact::new(DType::F32, shape));
    let neg = g.apply("negated", Unary(UnaryKind::Neg), &[x]);
    let exp = g.apply("raised", Unary(UnaryKind::Exp), &[neg]);
    g.outputs.push(exp);
    g
}

fn opened(graph: Graph, options: LoadOptions) -> Result<kilim::Session> {
    pollster::block_on(Runtime::shared().session(graph, options))
}

fn refused(graph: Graph, options: LoadOptions) -> Error {
    opened(graph, options).err().unwrap()
}

fn pinned(graph: Graph, pin: &str) -> Result<kilim::Session> {
    let mut options = on(&["cpu"]);
    options.pins = vec![pin.parse().unwrap()];
    opened(graph, options)
}

#[test]
fn a_pin_that_no_node_has_is_an_error() {
    for (pin, hint) in [
        ("op:Nge=cpu", Some("did you mean `Neg`?")),
        ("op:Convolution=cpu", None),
        ("op:neg=cpu", Some("did you mean `Neg`?")),
        ("node:negate=cpu", Some("did you mean `negated`?")),
        ("node:Neg=cpu", None),
    ] {
        let error = pinned(open(), pin).err().expect(pin);
        assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
        assert_eq!(error.hint(), hint, "{pin}: {error}");
        let known = if pin.starts_with("op:") {
            "Exp, Neg"
        } else {
            "negated, raised"
        };
        assert_eq!(error.expected(), Some(known), "{pin}: {error}");
    }
    let mut options = on(&["cpu"]);
    options.precisions = vec!["op:Conv=float16".parse().unwrap()];
    let error = refused(open(), options);
    assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
    assert!(error.message().contains("`Conv`"), "{error}");
    for pin in ["op:Neg=cpu", "node:raised=cpu"] {
        assert!(pinned(open(), pin).is_ok(), "{pin}");
    }
    // Neg is in a branch of If, the others are in the body of Loop.
    let inside = ["op:Neg=cpu", "op:Add=cpu", "node:size=cpu"];
    for pin in inside {
        assert!(pinned(controlled(), pin).is_ok(), "{pin}");
    }
}

#[test]
fn a_dimension_that_no_input_has_is_an_error() {
    let fixed = |graph: Graph, name: &str| {
        let mut options = on(&["cpu"]);
        options.dims = [(name.to_string(), 3)].into();
        opened(graph, options)
    };
    let error = fixed(open(), "n").err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    assert_eq!(error.expected(), Some("N"));
    assert_eq!(error.hint(), Some("did you mean `N`?"));
    let mut numbers = open();
    numbers.fix_dims(&[("N".to_string(), 4)].into()).unwrap();
    let error = fixed(numbers, "N").err().unwrap();
    assert_eq!(error.expected(), None, "{error}");
    assert!(
        error.to_string().ends_with("is fixed in the model"),
        "{error}"
    );
}

#[test]
fn verify_compares_a_model_with_a_dimension_fixed() {
    let mut options = on(&["cpu"]);
    options.keep_weights = true;
    options.dims = [("N".to_string(), 3)].into();
    let mut session = opened(open(), options).unwrap();
    let x = Tensor::from_slice(&[3, 2], &[0.5f32; 6]).unwrap();
    let inputs = [("x", x.into())];
    let how = VerifyOptions::default();
    let found = pollster::block_on(kilim::verify(&mut session, &inputs, &how)).unwrap();
    assert!(found.passed(), "{found:?}");
    assert_eq!(found.nodes.len(), 2, "{found:?}");
}

/// Measuring takes sessions of parts of a graph whose dimensions are fixed.
#[test]
fn mixed_precision_is_measured_with_a_dimension_fixed() {
    let mut options = on(&["cpu"]);
    options.dims = [("N".to_string(), 3)].into();
    let x = Tensor::from_slice(&[3, 2], &[0.5f32; 6]).unwrap();
    options.mixed_precision = Some(kilim::core::session::MixedPrecision {
        tolerance: 1e-2,
        samples: vec![vec![("x".to_string(), x)]],
    });
    let session = opened(open(), options).unwrap();
    assert!(session.report().precision.is_some());
}

#[test]
fn backends_answer_to_the_names_of_the_web() {
    let named = || {
        let mut options = on(&["wasm"]);
        options.dims = [("N".to_string(), 1)].into();
        options
    };
    let mut options = named();
    options.pins = vec!["op:Neg=wasm".parse().unwrap()];
    options.configs.set(&"wasm:timers=on".parse().unwrap());
    options.keep_weights = true;
    let mut session = opened(open(), options).unwrap();
    let nodes = session.report().nodes;
    assert_eq!(nodes.len(), 2);
    assert!(nodes.iter().all(|n| n.backend == "cpu"), "{nodes:?}");
    let x = Tensor::from_slice(&[1, 2], &[0.5f32; 2]).unwrap();
    pollster::block_on(session.run(&[("x", x.clone())], &RunOptions::default())).unwrap();
    assert!(!session.times().is_empty());
    let how = VerifyOptions {
        reference: "wasm".into(),
        candidate: Some("wasm".into()),
        ..VerifyOptions::default()
    };
    let found = pollster::block_on(kilim::verify(&mut session, &[("x", x.into())], &how)).unwrap();
    assert_eq!(found.reference, "cpu");
    assert!(found.passed());
    let runtime = Runtime::shared();
    assert_eq!(runtime.resolve(&"webgpu".into()).as_str(), "wgpu");

    // A backend that is really called so goes before the alias.
    let own = StandIn::new(backend("cpu").unwrap(), "wasm");
    let runtime = Runtime::default().with_backend(Arc::new(own));
    let session = pollster::block_on(runtime.session(open(), named())).unwrap();
    assert_eq!(session.report().nodes[0].backend, "wasm");
}

#[test]
fn the_backend_that_may_be_meant_is_named() {
    let error = refused(open(), on(&["cpus"]));
    assert_eq!(error.code(), ErrorCode::NoBackend);
    assert_eq!(error.hint(), Some("did you mean `cpu`?"), "{error}");
    let own = StandIn::new(backend("cpu").unwrap(), "device");
    let runtime = Runtime::default().with_backend(Arc::new(own));
    let error = pollster::block_on(runtime.session(open(), on(&["devise"])));
    let error = error.err().unwrap();
    assert_eq!(error.hint(), Some("did you mean `device`?"), "{error}");
    assert!(
        error.expected().unwrap().ends_with("cpu, device"),
        "{error}"
    );
    let mut options = on(&["cpu"]);
    options.configs.set(&"cpus:timers=on".parse().unwrap());
    let error = refused(open(), options);
    assert_eq!(error.hint(), Some("did you mean `cpu`?"), "{error}");
}

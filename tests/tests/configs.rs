//! What users ask of single backends.

#![cfg(not(target_arch = "wasm32"))]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kilim::core::backend::{
    BackendConfig, ContextConfig, DataLayout, DeviceOption, DeviceOptions, LocalFuture, OptionKind,
    Quantized,
};
use kilim::core::ops::{Activation, Conv, Padding, Unary, UnaryKind};
use kilim::core::{Backend, Session, SessionOptions};
use kilim::{
    BackendRegistry, DType, Dim, Error, ErrorCode, Fact, Graph, LoadOptions, Result, RunOptions,
    Runtime, Shape, Tensor,
};
use kilim_tests::machine::cpu;
use kilim_tests::stand_in::StandIn;

fn weights(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|i| (i % 7) as f32 - 3.0).collect();
    Tensor::from_slice(shape, &data).unwrap()
}

/// Two convolutions of an image whose width is open.
fn convolutions() -> Graph {
    let mut g = Graph::new("convolutions");
    let dims = [1, 4, 8].map(Dim::Known);
    let dims = dims.into_iter().chain([Dim::Symbol("width".into())]);
    let mut x = g.add_input("x", Fact::new(DType::F32, Shape(dims.collect())));
    for i in 0..2 {
        let w = g.add_constant(format!("w{i}"), weights(&[4, 4, 3, 3]));
        let conv = Conv {
            strides: vec![1; 2],
            dilations: vec![1; 2],
            padding: Padding::Explicit(vec![1; 4]),
            groups: 1,
            channels_last: false,
            activation: Activation::None,
        };
        x = g.apply(format!("conv{i}"), conv, &[x, w]);
    }
    g.outputs.push(x);
    g
}

fn session(settings: &[&str]) -> Result<Session> {
    on(vec![cpu()], settings)
}

fn on(backends: Vec<Arc<dyn Backend>>, settings: &[&str]) -> Result<Session> {
    made(convolutions(), backends, settings)
}

fn made(graph: Graph, backends: Vec<Arc<dyn Backend>>, settings: &[&str]) -> Result<Session> {
    let mut options = SessionOptions::default();
    for setting in settings {
        options.configs.set(&setting.parse()?);
    }
    pollster::block_on(Session::new(graph, backends, cpu(), options))
}

fn run(session: &mut Session, width: usize) -> Result<Tensor> {
    let inputs = [("x", weights(&[1, 4, 8, width]))];
    let out = pollster::block_on(session.run(&inputs, &RunOptions::default()))?;
    Ok(out.into_iter().next().unwrap().1)
}

fn in_channels_last(session: &Session) -> Vec<bool> {
    let nodes = session.graph().nodes.iter();
    let convs = nodes.filter_map(|n| n.op.downcast_ref::<Conv>());
    convs.map(|c| c.channels_last).collect()
}

#[test]
fn spatial_operators_have_the_layout_that_the_user_wants() {
    let mut usual = session(&[]).unwrap();
    let mut asked = session(&["cpu:layout=NCHW"]).unwrap();
    assert_eq!(in_channels_last(&usual), [true, true]);
    assert_eq!(in_channels_last(&asked), [false, false]);
    assert_eq!(run(&mut asked, 8).unwrap(), run(&mut usual, 8).unwrap());
}

#[test]
fn a_backend_that_is_best_in_channels_first_gets_it() {
    let first = StandIn::new(cpu(), "first")
        .offering(|config| config.layouts = vec![DataLayout::ChannelsFirst]);
    let s = on(vec![Arc::new(first)], &[]).unwrap();
    assert_eq!(in_channels_last(&s), [false, false]);
}

#[test]
fn nodes_are_timed_only_where_that_is_asked_for() {
    let mut usual = session(&[]).unwrap();
    let mut timed = session(&["cpu:timers=on"]).unwrap();
    run(&mut usual, 8).unwrap();
    run(&mut timed, 8).unwrap();
    assert!(usual.times().is_empty());
    let convs: Vec<_> = timed
        .times()
        .into_iter()
        .filter(|t| t.op == "Conv")
        .collect();
    assert_eq!(convs.len(), 2);
    assert!(
        convs.iter().all(|t| t.backend == "cpu" && t.seconds > 0.0),
        "{convs:?}"
    );
}

#[test]
fn shapes_may_be_held_to_the_first() {
    let mut s = session(&["cpu:dynamic=off"]).unwrap();
    run(&mut s, 8).unwrap();
    run(&mut s, 8).unwrap();
    let error = run(&mut s, 9).unwrap_err();
    assert_eq!(error.code(), ErrorCode::State);
    let mut s = session(&[]).unwrap();
    run(&mut s, 8).unwrap();
    run(&mut s, 9).unwrap();
}

#[test]
fn the_backend_is_told() {
    let told: Arc<Mutex<Option<BackendConfig>>> = Arc::default();
    let heard = told.clone();
    let stand_in = StandIn::new(cpu(), "asked")
        .on_context(move |config| *heard.lock().unwrap() = Some(config.backend.clone()));
    on(
        vec![Arc::new(stand_in)],
        &["asked:layout=NCHW", "asked:timers=on"],
    )
    .unwrap();
    let told = told.lock().unwrap().clone().unwrap();
    assert_eq!(told.layouts[0], DataLayout::ChannelsFirst);
    assert!(told.timers && told.dynamic_tensors);
}

/// A backend that shares nothing between runs has a context for each of those that are under way.
#[test]
fn every_context_of_a_session_is_told_the_same() {
    let told: Arc<Mutex<Vec<ContextConfig>>> = Arc::default();
    let heard = told.clone();
    let stand_in = Arc::new(
        StandIn::new(cpu(), "asked").on_context(move |c| heard.lock().unwrap().push(c.clone())),
    );
    let mut options = SessionOptions::default();
    options.configs.entry("asked").timers = true;
    options.context.threads = Some(2);
    options
        .tuning
        .of(&stand_in.describe().key())
        .insert("class", "algorithm");
    let session = Session::new(convolutions(), vec![stand_in], cpu(), options);
    let mut session = pollster::block_on(session).unwrap();
    let inputs = [("x", weights(&[1, 4, 8, 8]).into())];
    let run = session.run_async(&inputs, &RunOptions::default()).unwrap();
    run.wait().unwrap();
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2);
    for config in &*told {
        assert!(config.backend.timers);
        assert_eq!(config.threads, Some(2));
        assert_eq!(config.tuned.save(), "class\talgorithm\n");
    }
}

#[test]
fn a_backend_may_be_another_one_for_its_config() {
    let exact = || StandIn::new(cpu(), "own").taking(|_| false);
    let offer = |config: &mut BackendConfig| config.quantized = Quantized::Native;
    let native = Arc::new(StandIn::new(cpu(), "own").offering(offer));
    let own = exact().offering(offer).configured(move |config| {
        let native = native.clone() as Arc<dyn Backend>;
        (config.quantized == Quantized::Native).then_some(native)
    });
    let own: Arc<dyn Backend> = Arc::new(own);
    let on_own = |settings: &[&str]| {
        let mut session = on(vec![own.clone(), cpu()], settings).unwrap();
        run(&mut session, 8).unwrap();
        session.report().nodes.iter().any(|n| n.backend == "own")
    };
    assert!(!on_own(&[]) && !on_own(&["own:quantized=exact"]));
    assert!(on_own(&["own:quantized=native"]));
    let exact = on(vec![Arc::new(exact())], &["own:quantized=native"]);
    assert_eq!(exact.err().unwrap().code(), ErrorCode::Unsupported);
}

/// Where the two nodes of a model of half precision compute.
fn types_of_halves(backends: Vec<Arc<dyn Backend>>, settings: &[&str]) -> Vec<String> {
    let mut g = Graph::new("halves");
    let x = g.add_input("x", Fact::fixed(DType::F16, &[4]));
    let exp = g.apply("exp", Unary(UnaryKind::Exp), &[x]);
    let tanh = g.apply("tanh", Unary(UnaryKind::Tanh), &[exp]);
    g.outputs.push(tanh);
    let session = made(g, backends, settings).unwrap();
    let nodes = session.report().nodes.into_iter();
    let computing = nodes.filter(|n| n.op != "Cast");
    computing.map(|n| n.outputs[0].dtype.clone()).collect()
}

#[test]
fn models_of_half_precision_stay_in_it_where_all_backends_and_the_user_want_that() {
    let half = || Arc::new(StandIn::new(cpu(), "half").fast_in(DType::F16)) as Arc<dyn Backend>;
    let (kept, widened) = (["float16"; 2], ["float32"; 2]);
    assert_eq!(types_of_halves(vec![half()], &[]), kept);
    assert_eq!(types_of_halves(vec![half()], &["half:f16=kept"]), kept);
    for less in ["half:f16=chosen", "half:f16=off"] {
        assert_eq!(types_of_halves(vec![half()], &[less]), widened, "{less}");
    }
    assert_eq!(types_of_halves(vec![half(), cpu()], &[]), widened);
}

#[test]
fn what_a_backend_does_not_offer_cannot_be_asked_of_it() {
    let bare = |settings: &[&str]| {
        let bare = StandIn::new(cpu(), "bare").offering(|config| {
            config.dynamic_tensors = false;
            config.timers = false;
        });
        on(vec![Arc::new(bare)], settings)
    };
    for setting in ["bare:dynamic=on", "bare:timers=on", "bare:f16=chosen"] {
        let error = bare(&[setting]).err().expect(setting);
        assert_eq!(error.code(), ErrorCode::Unsupported, "{error}");
    }
    // One set of shapes is all that it takes, without a word of the user's.
    let mut s = bare(&[]).unwrap();
    run(&mut s, 8).unwrap();
    assert_eq!(run(&mut s, 9).unwrap_err().code(), ErrorCode::State);
}

#[test]
fn what_is_not_offered_is_an_error() {
    let code = |s: Result<Session>| s.err().as_ref().map(Error::code);
    let refused = Some(ErrorCode::Unsupported);
    assert_eq!(code(session(&["cpu:layout=NC4HW4"])), refused);
    assert_eq!(code(session(&["cpu:f16=kept"])), refused);
    assert_eq!(
        code(session(&["wgpu:timers=on"])),
        Some(ErrorCode::NoBackend)
    );
    let nonsense = Some(ErrorCode::InvalidValue);
    assert_eq!(code(session(&["cpu:timers"])), nonsense);
    assert_eq!(code(session(&["cpu:speed=on"])), nonsense);
}

#[test]
fn options_of_a_backends_own_open_another_device() {
    static OPENED: AtomicUsize = AtomicUsize::new(0);
    static TOLD: Mutex<Vec<Option<i64>>> = Mutex::new(Vec::new());
    fn open(options: &DeviceOptions) -> LocalFuture<'_, Result<Arc<dyn Backend>>> {
        OPENED.fetch_add(1, Ordering::Relaxed);
        let unit = DeviceOption {
            name: "unit".into(),
            kind: OptionKind::Integer,
            default: "0".into(),
            meaning: "which unit computes".into(),
        };
        let device = format!("unit {}", options.text("unit").unwrap_or("0"));
        let own = StandIn::new(cpu(), "xpu").on_device(&device, unit);
        let own = own.on_context(|config| TOLD.lock().unwrap().push(config.device.integer("unit")));
        Box::pin(std::future::ready(Ok(Arc::new(own) as _)))
    }
    let mut registry = BackendRegistry::new();
    registry.register("xpu".into(), open);
    let runtime = Runtime::new(registry);
    let device = |settings: &[&str]| {
        let mut options = LoadOptions {
            backends: vec!["xpu".into()],
            ..LoadOptions::default()
        };
        for setting in settings {
            options.configs.set(&setting.parse()?);
        }
        let session = pollster::block_on(runtime.session(convolutions(), options))?;
        Ok::<_, Error>(session.backends()[0].describe().device.clone())
    };
    for _ in 0..2 {
        assert_eq!(device(&[]).unwrap(), "unit 0");
        assert_eq!(device(&["xpu:unit=1", "xpu:timers=on"]).unwrap(), "unit 1");
    }
    assert_eq!(OPENED.load(Ordering::Relaxed), 2, "devices are kept");
    assert_eq!(*TOLD.lock().unwrap(), [0, 1, 0, 1].map(Some));
    let unknown = device(&["xpu:units=1"]).unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::InvalidValue);
    assert!(unknown.expected().unwrap().contains("unit"), "{unknown}");
    let wrong = device(&["xpu:unit=two"]).unwrap_err();
    assert_eq!(wrong.expected(), Some("INTEGER"), "{wrong}");
}

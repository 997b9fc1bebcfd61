//! Kernels that are chosen by measuring, and keeping what was measured.

#![cfg(not(target_arch = "wasm32"))]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kilim::core::backend::{BackendContext, ContextConfig, Description, NodeSpec, Refusal};
use kilim::core::ops::{Activation, Conv, Cost, MatMul, Padding, Unary, UnaryKind};
use kilim::core::report::TuningReport;
use kilim::core::tuning::{Choice, Tuning};
use kilim::core::{Backend, Session, SessionOptions};
use kilim::{
    BackendId, DType, Dim, Fact, Graph, LoadOptions, Result, RunOptions, Runtime, Shape, Tensor,
};
use kilim_tests::operators::Random;
use kilim_tests::stand_in::StandIn;

const SIZE: usize = 12;
const CHANNELS: usize = 16;

/// A convolution of 3x3, which `cpu` computes in three ways, and a product, in which `wgpu` has a
/// choice, on an image of `size` x `size`.
fn graph(size: Dim) -> Graph {
    let mut random = Random::new(5);
    let mut graph = Graph::new("choices");
    let dims = [Dim::Known(1), Dim::Known(CHANNELS), size.clone(), size];
    let x = graph.add_input("x", Fact::new(DType::F32, Shape(dims.to_vec())));
    let filters = random.array(&[CHANNELS, CHANNELS, 3, 3]).tensor();
    let w = graph.add_constant("filters", filters);
    let conv = Conv {
        strides: vec![1; 2],
        dilations: vec![1; 2],
        padding: Padding::Explicit(vec![1; 4]),
        groups: 1,
        channels_last: false,
        activation: Activation::Relu,
    };
    let y = graph.apply("conv", conv, &[x, w]);
    let matrix = graph.add_constant("matrix", random.array(&[SIZE, SIZE]).tensor());
    let y = graph.apply("product", MatMul::default(), &[y, matrix]);
    graph.outputs.push(y);
    graph
}

fn fixed() -> Graph {
    graph(Dim::Known(SIZE))
}

fn options(backend: &str, tune: bool) -> LoadOptions {
    let mut options = LoadOptions {
        backends: vec![BackendId::from(backend)],
        ..LoadOptions::default()
    };
    options.tune = tune;
    options
}

/// `cpu`, and `wgpu` where there is one.
fn backends(runtime: &Runtime) -> Vec<&'static str> {
    let opens = |id: &&str| pollster::block_on(runtime.backend(&BackendId::from(*id))).is_ok();
    ["cpu", "wgpu"].into_iter().filter(opens).collect()
}

fn run(session: &mut Session, x: &Tensor) -> Vec<f64> {
    let inputs = [("x", x.clone())];
    let outputs = pollster::block_on(session.run(&inputs, &RunOptions::default())).unwrap();
    outputs[0].1.to_f64s().unwrap()
}

fn image(size: usize) -> Tensor {
    Random::new(9).array(&[1, CHANNELS, size, size]).tensor()
}

#[track_caller]
fn assert_close(got: &[f64], want: &[f64]) {
    let scale = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let apart = got.iter().zip(want).map(|(a, b)| (a - b).abs());
    let error = apart.fold(0.0f64, f64::max);
    assert!(error <= 1e-4 * scale, "{error} of {scale}");
}

fn picked(tuning: &[TuningReport]) -> Vec<(&str, &str)> {
    let picked = tuning.iter().map(|t| (&t.class[..], &t.algorithm[..]));
    picked.collect()
}

#[test]
fn what_was_measured_is_saved_and_not_measured_again() {
    let runtime = Runtime::default();
    for id in backends(&runtime) {
        let load = |runtime: &Runtime, tune| {
            let session = runtime.session(fixed(), options(id, tune));
            pollster::block_on(session).unwrap()
        };
        let untuned = load(&runtime, false);
        assert!(
            untuned.report().tuning.is_empty(),
            "measured without being asked to"
        );
        let mut first = load(&runtime, true);
        let measured = first.report().tuning;
        assert!(!measured.is_empty(), "{id}: nothing was measured");
        for tuned in &measured {
            assert!(tuned.times.len() >= 2, "{tuned:?}");
            assert!(tuned.times.iter().all(|t| t.seconds > 0.0), "{tuned:?}");
        }

        let cache = runtime.save_cache();
        let later = Runtime::default();
        // SAFETY: the cache comes from `save_cache`.
        pollster::block_on(unsafe { later.load_cache(&cache) }).unwrap();
        for runtime in [&runtime, &later] {
            let mut again = load(runtime, true);
            let known = again.report().tuning;
            assert_eq!(picked(&known), picked(&measured));
            assert!(
                known.iter().all(|t| t.times.is_empty()),
                "{id}: measured again"
            );
            assert_eq!(run(&mut first, &image(SIZE)), run(&mut again, &image(SIZE)));
        }
        let mut untuned = untuned;
        assert_close(
            &run(&mut first, &image(SIZE)),
            &run(&mut untuned, &image(SIZE)),
        );
    }
}

/// The time of [`now`], which moves as the kernels of [`Choosing`] say.
static NANOSECONDS: AtomicU64 = AtomicU64::new(0);

fn now() -> f64 {
    NANOSECONDS.load(Ordering::Relaxed) as f64 * 1e-9
}

/// A backend that is `cpu` with kernels for Neg that take as many microseconds as `costs` says.
struct Choosing {
    cpu: Arc<dyn Backend>,
    description: Description,
    costs: [u64; 3],
}

impl Choosing {
    fn kernels() -> Choice {
        Choice {
            class: "Neg".to_string(),
            algorithms: ["first", "second", "third"].map(Into::into).into(),
        }
    }
}

impl Backend for Choosing {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn supports(&self, node: &NodeSpec) -> Result<Cost, Refusal> {
        self.cpu.supports(node)
    }

    fn choice(&self, node: &NodeSpec, _: &ContextConfig) -> Option<Choice> {
        (node.op.name() == "Neg").then(Choosing::kernels)
    }

    fn create_context(&self, config: &ContextConfig) -> Result<Box<dyn BackendContext>> {
        let kernels = Choosing::kernels();
        let picked = config.tuned.pick(&kernels);
        let microseconds = self.costs[picked];
        let kernel = StandIn::new(self.cpu.clone(), "kernel").on_run(move |_| {
            NANOSECONDS.fetch_add(microseconds * 1000, Ordering::Relaxed);
            Ok(())
        });
        kernel.create_context(config)
    }
}

/// One test alone moves the clock.
#[test]
fn the_fastest_kernel_is_taken_if_it_is_clearly_faster() {
    let cpu = pollster::block_on(Runtime::shared().backend(&BackendId::from("cpu"))).unwrap();
    let mut g = Graph::new("twice");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4]));
    let y = g.apply("one", Unary(UnaryKind::Neg), &[x]);
    let y = g.apply("two", Unary(UnaryKind::Neg), &[y]);
    g.outputs.push(y);
    for (costs, fastest) in [
        ([100, 200, 50], "third"),
        ([100, 50, 200], "second"),
        ([100, 90, 80], "third"),
        ([50, 100, 200], "first"),
        // Less than 3 % is noise.
        ([100, 99, 98], "first"),
    ] {
        let device = |costs| -> Arc<dyn Backend> {
            let description = cpu.describe().clone();
            Arc::new(Choosing {
                cpu: cpu.clone(),
                description,
                costs,
            })
        };
        let tuning = Arc::<Tuning>::default();
        let session = |backend: Arc<dyn Backend>, tune| {
            let options = SessionOptions {
                tune,
                tuning: tuning.clone(),
                optimise: false,
                clock: now,
                ..SessionOptions::default()
            };
            let session = Session::new(g.clone(), vec![backend], cpu.clone(), options);
            pollster::block_on(session).unwrap()
        };
        let measured = session(device(costs), true).report().tuning;
        assert_eq!(
            picked(&measured),
            [("Neg", fastest)],
            "{costs:?}: {measured:?}"
        );
        let times = measured[0].times.iter().map(|t| t.seconds * 1e6);
        let times: Vec<u64> = times.map(|t| t.round() as u64).collect();
        assert_eq!(times, costs);
        // Sessions that measure nothing take it, too.
        let mut later = session(device(costs), false);
        let before = now();
        let inputs = [("x", Tensor::zeros(DType::F32, &[4]).unwrap())];
        pollster::block_on(later.run(&inputs, &RunOptions::default())).unwrap();
        let took = ((now() - before) * 1e6).round() as u64;
        let kernels = Choosing::kernels().algorithms;
        let at = kernels.iter().position(|k| *k == fastest).unwrap();
        assert_eq!(took, costs[at], "{costs:?}");
    }
}

#[test]
fn what_was_measured_belongs_to_a_device_with_its_driver() {
    let cpu = pollster::block_on(Runtime::shared().backend(&BackendId::from("cpu"))).unwrap();
    let device = cpu.describe().clone();
    let updated = Description {
        device: format!("{}, driver 2", device.device),
        ..device.clone()
    };
    let tuning = Tuning::default();
    tuning.of(&device.key()).insert("class", "algorithm");
    assert_eq!(tuning.of(&device.key()).save(), "class\talgorithm\n");
    assert_eq!(tuning.of(&updated.key()).save(), "");
}

#[test]
fn the_table_says_which_kernel_runs() {
    let runtime = Runtime::default();
    for id in backends(&runtime) {
        let backend = pollster::block_on(runtime.backend(&BackendId::from(id))).unwrap();
        let session = |tuning: &Arc<Tuning>, tune| {
            let options = SessionOptions {
                tune,
                tuning: tuning.clone(),
                ..SessionOptions::default()
            };
            let backends: Vec<Arc<dyn Backend>> = vec![backend.clone()];
            let cpu = pollster::block_on(runtime.backend(&BackendId::from("cpu"))).unwrap();
            let session = Session::new(fixed(), backends, cpu, options);
            pollster::block_on(session).unwrap()
        };
        let measured = session(&Arc::default(), true).report().tuning;
        let want = run(&mut session(&Arc::default(), false), &image(SIZE));
        let conv = measured.iter().find(|t| t.class.starts_with("Conv"));
        let conv = conv.expect("a convolution leaves a choice");
        let mut held = HashSet::new();
        for time in &conv.times {
            let tuning = Arc::<Tuning>::default();
            tuning
                .of(&backend.describe().key())
                .insert(&conv.class, &time.algorithm);
            let mut forced = session(&tuning, false);
            assert_close(&run(&mut forced, &image(SIZE)), &want);
            let report = &forced.report().backends[0];
            held.insert((report.constant_bytes, report.planned_bytes));
        }
        if id == "cpu" {
            // Each has weights of another size.
            assert_eq!(held.len(), conv.times.len(), "{conv:?}");
        }
    }
}

#[test]
fn shapes_that_come_later_are_measured_when_they_come() {
    let runtime = Runtime::default();
    let open = graph(Dim::Symbol("width".into()));
    let session = runtime.session(open, options("cpu", true));
    let mut session = pollster::block_on(session).unwrap();
    assert!(session.report().tuning.is_empty());
    run(&mut session, &image(SIZE));
    let first = session.report().tuning.len();
    assert!(first > 0);
    run(&mut session, &image(SIZE));
    assert_eq!(
        session.report().tuning.len(),
        first,
        "a known shape was met again"
    );
}

//! What sessions hold: the arena's plan, sharing, thrift, and sizes that change.

#![cfg(not(target_arch = "wasm32"))]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kilim::core::backend::{ContextConfig, Description, Memory};
use kilim::core::ops::*;
use kilim::core::report::{MemoryPlan, PlannedTensor};
use kilim::core::{Backend, Session as CoreSession};
use kilim::{
    BackendId, DType, Dim, ErrorCode, Fact, Graph, MemoryMode, Placement, Result, RunOptions,
    Runtime, Session, SessionOptions, Shape, Sharing, Tensor,
};
use kilim_tests::operators::Random;
use kilim_tests::stand_in::StandIn;

fn options() -> SessionOptions {
    SessionOptions {
        backends: vec![BackendId::from("cpu")],
        ..SessionOptions::default()
    }
}

fn thrifty() -> SessionOptions {
    let mut options = options();
    options.core.context = ContextConfig {
        memory: MemoryMode::Limit,
        ..ContextConfig::default()
    };
    options
}

fn sharing(sharing: Sharing) -> SessionOptions {
    let mut options = options();
    options.core.sharing = sharing;
    options
}

fn session(graph: Graph, options: SessionOptions) -> Result<Session> {
    pollster::block_on(Runtime::shared().session(graph, options))
}

fn run(session: &mut Session, x: &Tensor) -> Result<Tensor> {
    let inputs = [("x", x.clone())];
    let out = pollster::block_on(session.run(&inputs, &RunOptions::default()))?;
    Ok(out.into_iter().next().expect("an output").1)
}

fn arena(session: &Session) -> usize {
    session.report().backends[0].arena_bytes
}

/// Weights that differ from element to element.
fn weights(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count)
        .map(|i| ((i * 7919) % 1009) as f32 / 1009.0 - 0.5)
        .collect();
    Tensor::from_slice(shape, &data).unwrap()
}

/// Three convolutions of 3x3 with `channels` channels on an image of `size` x `size`, which the
/// fast kernels compute with transformed weights.
fn convolutions(channels: usize, size: Dim) -> Graph {
    let mut g = Graph::new("convolutions");
    let dims = [Dim::Known(1), Dim::Known(channels), size.clone(), size];
    let mut x = g.add_input("x", Fact::new(DType::F32, Shape(dims.to_vec())));
    for i in 0..3 {
        let w = g.add_constant(format!("w{i}"), weights(&[channels, channels, 3, 3]));
        let conv = Conv {
            strides: vec![1; 2],
            dilations: vec![1; 2],
            padding: Padding::Explicit(vec![1; 4]),
            groups: 1,
            channels_last: false,
            activation: Activation::Relu,
        };
        x = g.apply(format!("conv{i}"), conv, &[x, w]);
    }
    g.outputs.push(x);
    g
}

fn weight_bytes(channels: usize) -> usize {
    3 * channels * channels * 9 * 4
}

#[test]
fn packed_weights_are_all_that_stays() {
    let size = Dim::Known(16);
    let raw = weight_bytes(64);
    let x = weights(&[1, 64, 16, 16]);
    let mut fast = session(convolutions(64, size.clone()), options()).unwrap();
    let mut small = session(convolutions(64, size), thrifty()).unwrap();
    for s in [&fast, &small] {
        assert_eq!(s.report().graph_bytes, 0, "raw weights are kept");
    }
    let (normal, limit) = (
        fast.report().backends[0].constant_bytes,
        small.report().backends[0].constant_bytes,
    );
    assert!(limit <= raw + raw / 8, "{limit} bytes for weights of {raw}");
    assert!(
        normal >= 2 * limit,
        "transformed weights take {normal}, packed ones {limit}"
    );
    let (a, b) = (run(&mut fast, &x).unwrap(), run(&mut small, &x).unwrap());
    let (a, b) = (a.to_f64s().unwrap(), b.to_f64s().unwrap());
    let scale = a.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let error = a
        .iter()
        .zip(&b)
        .fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
    assert!(error <= 1e-4 * scale, "{error} of {scale}");
}

#[test]
fn open_shapes_are_planned_again_without_reloading() {
    let mut s = session(convolutions(16, Dim::Symbol("size".into())), options()).unwrap();
    let mut fixed = |size: usize| {
        let x = weights(&[1, 16, size, size]);
        let mut known = session(convolutions(16, Dim::Known(size)), options()).unwrap();
        let want = run(&mut known, &x).unwrap();
        assert_eq!(run(&mut s, &x).unwrap(), want, "{size}");
        s.report().backends[0].constant_bytes
    };
    let first = fixed(12);
    let second = fixed(20);
    assert_eq!(first, second, "weights were packed again");
    assert_eq!(fixed(12), second);
    assert!(s.report().graph_bytes >= weight_bytes(16));
}

#[test]
fn plans_are_kept_up_to_the_number_asked_for() {
    let held = |kept: usize| {
        let mut options = options();
        options.core.plans_kept = kept;
        let mut s = session(convolutions(8, Dim::Symbol("size".into())), options).unwrap();
        for size in [8, 16, 32] {
            run(&mut s, &weights(&[1, 8, size, size])).unwrap();
        }
        let b = &s.report().backends[0];
        (b.arena_bytes, b.planned_bytes - b.arena_bytes)
    };
    let (one, three) = (held(1), held(3));
    assert_eq!(one.0, three.0, "plans share one arena");
    assert_eq!(one.1, 8 * 32 * 32 * 4, "the output of the latest plan");
    assert_eq!(three.1, 8 * (32 * 32 + 16 * 16 + 8 * 8) * 4);
}

#[test]
fn sessions_of_one_thread_share_an_arena() {
    let sizes = [16, 32];
    let make = |size: usize, with: &Sharing| {
        session(convolutions(8, Dim::Known(size)), sharing(with.clone())).unwrap()
    };
    let own = sizes.map(|size| make(size, &Sharing::Own));
    let mut shared = sizes.map(|size| make(size, &Sharing::ShareOneThread));
    let most = own.iter().map(arena).max().unwrap();
    let sum: usize = own.iter().map(arena).sum();
    for s in &shared {
        assert_eq!(arena(s), most, "one arena, as large as the largest");
        assert_eq!(s.report().backends[0].arena_owner, "thread");
    }
    assert!(most < sum);
    let mut own = own;
    for _ in 0..2 {
        for (i, size) in sizes.into_iter().enumerate() {
            let x = weights(&[1, 8, size, size]);
            assert_eq!(
                run(&mut shared[i], &x).unwrap(),
                run(&mut own[i], &x).unwrap()
            );
        }
    }
    let mut moved = make(16, &Sharing::ShareOneThread);
    let x = weights(&[1, 8, 16, 16]);
    let elsewhere = std::thread::spawn(move || run(&mut moved, &x).unwrap_err());
    let error = elsewhere.join().unwrap();
    assert_eq!(error.code(), ErrorCode::State);
}

#[test]
fn the_caller_may_own_the_arena() {
    let cpu = pollster::block_on(Runtime::shared().backend(&BackendId::from("cpu"))).unwrap();
    let make = |size, arenas| {
        let with = sharing(Sharing::External(arenas));
        session(convolutions(8, Dim::Known(size)), with)
    };
    let mut own = session(convolutions(8, Dim::Known(32)), options()).unwrap();
    let needed = arena(&own);
    let given = cpu.create_arena(needed).unwrap();
    let mut large = make(32, vec![given.clone()]).unwrap();
    let mut small = make(16, vec![given.clone()]).unwrap();
    let x = weights(&[1, 8, 32, 32]);
    assert_eq!(run(&mut large, &x).unwrap(), run(&mut own, &x).unwrap());
    run(&mut small, &weights(&[1, 8, 16, 16])).unwrap();
    assert_eq!(large.report().backends[0].arena_owner, "external");
    assert_eq!(given.bytes(), needed);

    let error = make(64, vec![given.clone()])
        .err()
        .expect("it is too small");
    assert_eq!(error.code(), ErrorCode::Limit);
    assert!(error.expected().unwrap().starts_with("at least"), "{error}");
    let error = make(32, Vec::new()).err().expect("there is none");
    assert_eq!(error.code(), ErrorCode::Input);
    // Somebody else is in it.
    let other = given.attach();
    let lease = other.lease().unwrap();
    assert_eq!(run(&mut large, &x).unwrap_err().code(), ErrorCode::State);
    drop(lease);
    run(&mut large, &x).unwrap();
}

#[test]
fn an_arena_that_was_given_back_comes_again() {
    let mut s = session(convolutions(8, Dim::Known(32)), options()).unwrap();
    let x = weights(&[1, 8, 32, 32]);
    let (before, want) = (arena(&s), run(&mut s, &x).unwrap());
    s.clear();
    assert_eq!(arena(&s), 0);
    assert_eq!(run(&mut s, &x).unwrap(), want);
    assert_eq!(arena(&s), before);
}

#[test]
fn inputs_and_outputs_may_have_layouts_of_their_own() {
    use kilim::core::backend::DataLayout::{Blocked, ChannelsFirst, ChannelsLast};
    let shape = [1, 6, 8, 8];
    let x = weights(&shape);
    let mut plain = session(convolutions(6, Dim::Known(8)), options()).unwrap();
    let want = run(&mut plain, &x).unwrap();
    for user in [ChannelsLast, Blocked(4)] {
        let mut options = options();
        let model = ChannelsFirst;
        let names = plain.outputs().iter().map(|p| p.name.clone());
        for name in names.chain(["x".to_string()]) {
            let layout = kilim::core::session::PortLayout { model, user };
            options.core.layouts.insert(name, layout);
        }
        let mut s = session(convolutions(6, Dim::Known(8)), options).unwrap();
        let given = model.convert(&x, &shape, user).unwrap();
        let out = run(&mut s, &given).unwrap();
        assert_eq!(out.shape(), user.stored(&shape).unwrap());
        assert_eq!(user.convert(&out, &shape, model).unwrap(), want, "{user}");
        assert_eq!(run(&mut s, &x).unwrap_err().code(), ErrorCode::Shape);
    }
}

/// An input in one executable of each backend that opens, copied through all of them.
#[test]
fn tensors_are_copied_between_any_two_backends() {
    use kilim::core::backend::{Backend, DataLayout, KernelSpec, Memory, Place};
    use kilim::core::backend::{StageSpec, TensorSlot, TensorSpec};
    use kilim::core::builtin::{StoredTensor, copy};
    let stage = |backend: &Arc<dyn Backend>, shape: &[usize]| {
        let on_host = backend.describe().memory == Memory::Host;
        let slot = |name: &str, place| TensorSlot {
            name: name.into(),
            spec: TensorSpec::new(DType::F32, shape),
            place,
        };
        let first = match on_host {
            true => Place::Input,
            false => Place::Arena { offset: 0 },
        };
        let bytes: usize = shape.iter().product::<usize>() * 4;
        let offset = bytes.next_multiple_of(256);
        StageSpec {
            tensors: vec![slot("x", first), slot("y", Place::Arena { offset })],
            nodes: vec![KernelSpec {
                name: "negative".into(),
                op: Arc::new(Unary(UnaryKind::Neg)),
                inputs: vec![Some(0)],
                outputs: vec![1],
            }],
            parts: std::iter::once(0..1).collect(),
            arena_bytes: 2 * offset,
            inputs: vec![0],
            outputs: vec![1],
        }
    };
    let opened = kilim::Runtime::shared().ids().into_iter().filter_map(|id| {
        let backend = pollster::block_on(Runtime::shared().backend(&id));
        backend.ok()
    });
    let backends: Vec<Arc<dyn Backend>> = opened.collect();
    let shape = [2, 5, 3, 2];
    let layouts = ["NCHW", "NHWC", "NC4HW4"].map(|l| DataLayout::parse(l).unwrap());
    let x = weights(&shape);
    for a in &backends {
        for b in &backends {
            for (from, to) in layouts.iter().flat_map(|a| layouts.map(|b| (*a, b))) {
                let open = |backend: &Arc<dyn Backend>, layout: DataLayout| {
                    let mut context = backend.create_context(&ContextConfig::default()).unwrap();
                    let stage = stage(backend, &layout.stored(&shape).unwrap());
                    let mut e = context.prepare(stage).unwrap();
                    pollster::block_on(context.warm_up()).unwrap();
                    e.execute_begin().unwrap();
                    e
                };
                let (mut source, mut target) = (open(a, from), open(b, to));
                let given = layouts[0].convert(&x, &shape, from).unwrap();
                source.write(0, &given).unwrap();
                source.run(0).unwrap();
                let side = |executable, tensor, layout| StoredTensor {
                    executable,
                    tensor,
                    layout,
                };
                let copied = copy(
                    &shape,
                    side(&mut *source, 1, from),
                    side(&mut *target, 0, to),
                );
                pollster::block_on(copied).unwrap();
                // Inside the backend, from the input over the output.
                target.copy(0, 1).unwrap();
                let out = pollster::block_on(target.read(&[1])).unwrap().remove(0);
                let back = to.convert(&out, &shape, layouts[0]).unwrap();
                let negative: Vec<f64> = x.to_f64s().unwrap().iter().map(|v| -v).collect();
                assert_eq!(back.to_f64s().unwrap(), negative, "{from} to {to}");
            }
        }
    }
}

fn models(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let model = |e: &std::ffi::OsStr| e == "onnx" || e == "tflite";
        if path.is_dir() {
            models(&path, found);
        } else if path.extension().is_some_and(model) {
            found.push(path);
        }
    }
}

/// The sets of backends whose plans are held to the lower bound. The GPU's pipelines are not compiled
/// for that.
fn planners() -> Vec<Vec<Arc<dyn Backend>>> {
    let open = |id| pollster::block_on(Runtime::shared().backend(&BackendId::from(id)));
    let cpu = open("cpu").unwrap();
    let mut sets = vec![vec![cpu.clone()]];
    match open("wgpu") {
        Ok(gpu) => sets.push(vec![Arc::new(StandIn::new(gpu, "wgpu")), cpu]),
        Err(e) => eprintln!("without a GPU: {e}"),
    }
    sets
}

/// Bytes that no plan for a device can avoid: there, all tensors but the last must end where another
/// may begin.
fn padding(plan: &MemoryPlan, backends: &[Arc<dyn Backend>]) -> usize {
    let described = backends.iter().map(|b| b.describe());
    let on_device = |d: &&Description| d.id.as_str() == plan.backend && d.memory == Memory::Device;
    let Some(device) = described.into_iter().find(on_device) else {
        return 0;
    };
    let slack = |t: &PlannedTensor| t.bytes.next_multiple_of(device.alignment) - t.bytes;
    let alive = |step: usize| {
        let alive = plan.tensors.iter();
        let slacks = alive
            .filter(|t| (t.first..=t.last).contains(&step))
            .map(slack);
        let (sum, most) = slacks.fold((0, 0), |(sum, most), s| (sum + s, most.max(s)));
        sum - most
    };
    (0..plan.steps).map(alive).max().unwrap_or(0)
}

/// Plans `graph` and gives the number of plans; those that are too wide go to `wide`.
fn plans(
    name: &str,
    graph: &Graph,
    backends: &[Arc<dyn Backend>],
    wide: &mut Vec<String>,
) -> usize {
    let options = kilim::core::SessionOptions {
        plan_unknown_as: Some(1),
        placement: Placement::Fixed,
        ..kilim::core::SessionOptions::default()
    };
    let cpu = backends[backends.len() - 1].clone();
    let made = CoreSession::new(graph.clone(), backends.to_vec(), cpu, options);
    let Ok(session) = pollster::block_on(made) else {
        return 0;
    };
    let plans = session.report().memory;
    let first = backends[0].describe().id.to_string();
    for plan in &plans {
        let ratio = plan.bytes as f64 / plan.lower_bound_bytes as f64;
        let fits = plan.bytes <= plan.lower_bound_bytes + padding(plan, backends);
        if ratio > 1.10 && !fits {
            let (bytes, least) = (plan.bytes, plan.lower_bound_bytes);
            let scope = plan.scope.join("/");
            wide.push(format!(
                "{name} {scope} on {}: {bytes} for {least}, {ratio:.3}",
                plan.backend
            ));
        }
    }
    plans.iter().filter(|p| p.backend == first).count()
}

/// Every model of `KILIM_SHARED/models` that loads.
#[test]
fn arenas_are_close_to_the_lower_bound() {
    let Ok(shared) = std::env::var("KILIM_SHARED") else {
        eprintln!("KILIM_SHARED names no folder with models");
        return;
    };
    let mut files = Vec::new();
    models(&Path::new(&shared).join("models"), &mut files);
    files.sort();
    assert!(!files.is_empty());
    let runtime: Arc<Runtime> = Runtime::shared();
    let sets = planners();
    let (mut planned, mut wide) = (vec![0; sets.len()], Vec::new());
    for path in files {
        let Ok(graph) = pollster::block_on(runtime.parse(path.as_path(), &options())) else {
            continue;
        };
        for (planned, backends) in planned.iter_mut().zip(&sets) {
            *planned += plans(&path.display().to_string(), &graph, backends, &mut wide);
        }
    }
    assert!(planned.iter().all(|&n| n > 0), "{planned:?}");
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

/// Products, functions and sums of values that were made before, of several widths.
fn tangle(seed: u64) -> Graph {
    let mut random = Random::new(seed);
    let mut below = |n: usize| (((random.unit() + 1.0) / 2.0 * n as f32) as usize).min(n - 1);
    let mut g = Graph::new("tangle");
    let mut values = vec![(g.add_input("x", Fact::fixed(DType::F32, &[32, 64])), 64)];
    let mut read = vec![false];
    for i in 0..40 {
        let at = below(values.len().min(6));
        let at = values.len() - 1 - at;
        let (x, width) = values[at];
        let twin = (0..values.len()).rfind(|&j| j != at && values[j].1 == width);
        read[at] = true;
        let made = match (below(3), twin) {
            (0, Some(twin)) => {
                read[twin] = true;
                let add = Binary::new(BinaryKind::Add);
                (
                    g.apply(format!("add {i}"), add, &[x, values[twin].0]),
                    width,
                )
            }
            (1, _) => {
                let to = [48, 64, 144, 256][below(4)];
                let w = g.add_constant(format!("w{i}"), weights(&[width, to]));
                (
                    g.apply(format!("product {i}"), MatMul::default(), &[x, w]),
                    to,
                )
            }
            _ => (
                g.apply(format!("sine {i}"), Unary(UnaryKind::Sin), &[x]),
                width,
            ),
        };
        values.push(made);
        read.push(false);
    }
    for ((v, _), read) in values.into_iter().zip(read) {
        if !read {
            g.outputs.push(v);
        }
    }
    g
}

#[test]
fn arenas_of_generated_graphs_are_close_to_the_lower_bound() {
    let mut wide = Vec::new();
    for backends in planners() {
        for seed in 0..20 {
            let name = format!("tangle {seed}");
            assert_eq!(
                plans(&name, &tangle(seed), &backends, &mut wide),
                1,
                "{name}"
            );
        }
    }
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}

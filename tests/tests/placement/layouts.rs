//! Layouts of spatial operators, each that of the backend which gets the operator.

use kilim::core::SessionOptions;
use kilim::core::backend::DataLayout;
use kilim::core::ops::{Activation, Conv, MaxPool, Padding, Transpose, Window};

use crate::*;

fn weights(shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count).map(|i| (i % 7) as f32 - 3.0).collect();
    Tensor::from_slice(shape, &data).unwrap()
}

/// A convolution with 3 x 3 weights, whose output is as large as its input.
fn conv(dilation: usize) -> Conv {
    Conv {
        strides: vec![1; 2],
        dilations: vec![dilation; 2],
        padding: Padding::Explicit(vec![dilation; 4]),
        groups: 1,
        channels_last: false,
        activation: Activation::None,
    }
}

fn pool() -> MaxPool {
    MaxPool {
        window: Window {
            kernel: vec![2; 2],
            strides: vec![2; 2],
            dilations: vec![1; 2],
            padding: Padding::Explicit(vec![0; 4]),
            ceil_mode: false,
        },
        column_major: false,
        channels_last: false,
    }
}

/// Three convolutions of a picture, the second dilated, Tanh behind the first and the second.
fn convolutions() -> Graph {
    let mut g = Graph::new("convolutions");
    let mut x = g.add_input("x", Fact::fixed(DType::F32, &[1, 16, 32, 32]));
    for i in 0..3 {
        let w = g.add_constant(format!("w{i}"), weights(&[16, 16, 3, 3]));
        let dilation = if i == 1 { 2 } else { 1 };
        x = g.apply(format!("conv{i}"), conv(dilation), &[x, w]);
        if i < 2 {
            x = g.apply(format!("tanh{i}"), Unary(UnaryKind::Tanh), &[x]);
        }
    }
    g.outputs.push(x);
    g
}

/// A device that convolves in channels-first alone, and does nothing else. `own` says which convolutions.
fn first(own: impl Fn(&Conv) -> bool + Send + Sync + 'static) -> StandIn {
    StandIn::new(backend("cpu").unwrap(), "first")
        .offering(|config| config.layouts = vec![DataLayout::ChannelsFirst])
        .taking(move |n| {
            let conv = n.op.downcast_ref::<Conv>();
            conv.is_some_and(|c| !c.channels_last && own(c))
        })
}

fn made(graph: Graph, backends: Vec<Arc<dyn Backend>>, options: SessionOptions) -> Session {
    let cpu = backend("cpu").unwrap();
    pollster::block_on(Session::new(graph, backends, cpu, options)).unwrap()
}

fn placed(placement: Placement) -> SessionOptions {
    SessionOptions {
        placement,
        ..SessionOptions::default()
    }
}

fn run(s: &mut Session, input: &Tensor) -> Vec<(String, Tensor)> {
    let name = s.inputs()[0].name.clone();
    let inputs = [(name.as_str(), input.clone())];
    pollster::block_on(s.run(&inputs, &RunOptions::default())).unwrap()
}

/// For each convolution, its name, the backend that has it, and whether it is in channels-last.
fn convs(s: &Session) -> Vec<(String, String, bool)> {
    let report = s.report();
    let nodes = s.graph().nodes.iter();
    let convs = nodes.filter_map(|n| Some((n, n.op.downcast_ref::<Conv>()?)));
    let at = |name: &str| {
        let node = report.nodes.iter().find(|n| n.name == name);
        node.unwrap().backend.clone()
    };
    convs
        .map(|(n, c)| (n.name.clone(), at(&n.name), c.channels_last))
        .collect()
}

fn transposes(s: &Session) -> usize {
    let nodes = s.graph().nodes.iter();
    nodes.filter(|n| n.op.is::<Transpose>()).count()
}

fn assert_agree(got: &[(String, Tensor)], want: &[(String, Tensor)]) {
    let by = kilim::compare::Comparison::Relative(1e-4);
    for ((name, got), (_, want)) in got.iter().zip(want) {
        let v = by.verdict(got, want, None).unwrap();
        assert!(v.passed, "{name}: {v:?}");
    }
}

#[test]
fn a_backend_of_channels_first_gets_its_convolutions_beside_one_of_channels_last() {
    let cpu = backend("cpu").unwrap();
    let x = weights(&[1, 16, 32, 32]);
    let mut plain = made(convolutions(), vec![cpu.clone()], placed(Placement::Fixed));
    let want = run(&mut plain, &x);
    assert!(convs(&plain).iter().all(|(_, _, last)| *last));
    let fast = |device: StandIn, factor: f64| {
        device.describing(|d| {
            d.speed.flops_per_second *= factor;
            d.speed.bytes_per_second *= factor;
        })
    };
    for (placement, factor, on_first) in [
        (Placement::Fixed, 1e-3, true),
        (Placement::Priced, 1e3, true),
        (Placement::Priced, 1e-3, false),
        (Placement::Prefer, 1e3, true),
    ] {
        let device = Arc::new(fast(first(|_| true), factor));
        let mut s = made(convolutions(), vec![device, cpu.clone()], placed(placement));
        for (name, at, last) in convs(&s) {
            let want = if on_first { "first" } else { "cpu" };
            assert_eq!(
                (at.as_str(), last),
                (want, !on_first),
                "{name} {placement:?}"
            );
        }
        assert_eq!(
            transposes(&s),
            if on_first { 0 } else { transposes(&plain) }
        );
        assert_agree(&run(&mut s, &x), &want);
    }
    // Second in order, it gets none, and nobody gives way.
    let device = Arc::new(first(|_| true));
    let s = made(convolutions(), vec![cpu, device], placed(Placement::Fixed));
    assert!(convs(&s).iter().all(|(_, at, last)| at == "cpu" && *last));
}

#[test]
fn each_convolution_has_the_layout_of_its_own_backend() {
    let cpu = backend("cpu").unwrap();
    let x = weights(&[1, 16, 32, 32]);
    let mut plain = made(convolutions(), vec![cpu.clone()], placed(Placement::Fixed));
    let want = run(&mut plain, &x);
    let middle = Arc::new(first(|conv| conv.dilations == [2, 2]));
    let mut s = made(
        convolutions(),
        vec![middle, cpu.clone()],
        placed(Placement::Fixed),
    );
    let places: Vec<_> = convs(&s)
        .into_iter()
        .map(|(_, at, last)| (at, last))
        .collect();
    let place = |at: &str, last| (at.to_string(), last);
    let own = [
        place("cpu", true),
        place("first", false),
        place("cpu", true),
    ];
    assert_eq!(places, own);
    assert_agree(&run(&mut s, &x), &want);
    // The user's wish for one backend is none for the other.
    let middle = Arc::new(first(|conv| conv.dilations == [2, 2]));
    let mut options = placed(Placement::Fixed);
    options.configs.set(&"cpu:layout=NCHW".parse().unwrap());
    let s = made(convolutions(), vec![middle, cpu], options);
    assert_eq!(transposes(&s), 0);
}

/// A pooling follows the convolution before it, whoever has it.
#[test]
fn layouts_change_at_convolutions_only() {
    let cpu = backend("cpu").unwrap();
    let mut g = Graph::new("pooled");
    let mut x = g.add_input("x", Fact::fixed(DType::F32, &[1, 4, 16, 16]));
    for i in 0..2 {
        let w = g.add_constant(format!("w{i}"), weights(&[4, 4, 3, 3]));
        x = g.apply(format!("conv{i}"), conv(1), &[x, w]);
        x = g.apply(format!("pool{i}"), pool(), &[x]);
    }
    g.outputs.push(x);
    let device = Arc::new(first(|_| true));
    let s = made(g, vec![device, cpu], placed(Placement::Fixed));
    assert!(convs(&s).iter().all(|(_, at, last)| at == "first" && !last));
    assert_eq!(transposes(&s), 0);
}

#[test]
fn a_model_of_faces_is_convolved_in_channels_first() {
    let Some(models) = material::models() else {
        return;
    };
    let file = models.join("ultraface-rfb-320/version-RFB-320_simplified.onnx");
    let load = |runtime: &Runtime, backends: &[&str]| {
        pollster::block_on(runtime.load(file.as_path(), on(backends))).unwrap()
    };
    let runtime = Runtime::default().with_backend(Arc::new(first(|_| true)));
    let mut s = load(&runtime, &["first", "cpu"]);
    let mut plain = load(&runtime, &["cpu"]);
    let placed = convs(&s);
    assert_eq!(placed.len(), convs(&plain).len());
    assert!(placed.len() >= 50, "{}", placed.len());
    for (name, at, last) in placed {
        assert_eq!((at.as_str(), last), ("first", false), "{name}");
    }
    let x = weights(&[1, 3, 240, 320]);
    assert_agree(&run(&mut s, &x), &run(&mut plain, &x));
}

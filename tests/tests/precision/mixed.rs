//! Half precision where it does no harm.

use crate::*;

fn within(tolerance: f64) -> Option<MixedPrecision> {
    Some(MixedPrecision {
        tolerance,
        samples: vec![
            vec![("x".to_string(), sample(1))],
            vec![("x".to_string(), sample(2))],
        ],
    })
}

fn half() -> StandIn {
    StandIn::new(cpu(), "half").fast_in(DType::F16)
}

#[test]
fn nodes_that_leave_the_range_of_half_precision_stay_single() {
    let want = run(&mut session(half(), None).unwrap());
    let mut s = session(half(), within(0.01)).unwrap();
    let chosen = s.report().precision.unwrap();
    assert!(chosen.error > 0.0 && chosen.error <= 0.01, "{chosen:?}");
    let has = |name: &str| chosen.nodes.iter().any(|n| n == name);
    assert!(has("first") && has("second"), "{chosen:?}");
    assert!(!has("up") && !has("down"), "{chosen:?}");
    let report = s.report();
    let product = report.nodes.iter().find(|n| n.name == "first").unwrap();
    assert_eq!(product.outputs[0].dtype, "float16");
    let kept = |name: &str| chosen.single.iter().find(|s| s.node == name).unwrap();
    assert!(kept("up").reason.contains("would move by"), "{chosen:?}");
    // On an input that was no sample, half precision shows, and not too much.
    let got = run(&mut s);
    let (got, want) = (got.to_f64s().unwrap(), want.to_f64s().unwrap());
    let scale = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let apart = got.iter().zip(&want).map(|(a, b)| (a - b).abs() / scale);
    let apart = apart.fold(0.0, f64::max);
    assert!(apart > 0.0 && apart < 0.02, "{apart}");
}

#[test]
fn without_tolerance_or_a_fast_device_nothing_changes() {
    let want = run(&mut session(half(), None).unwrap());
    let single = StandIn::new(cpu(), "single");
    for (backend, tolerance, reason) in [
        (half(), 0.0, "would move by"),
        (single, 0.01, "single: float16 is not faster on"),
    ] {
        let mut s = session(backend, within(tolerance)).unwrap();
        let found = s.report().precision.unwrap();
        assert_eq!(found.nodes, Vec::<String>::new());
        let first = found.single.iter().find(|n| n.node == "first").unwrap();
        assert!(first.reason.contains(reason), "{}", first.reason);
        assert_eq!(run(&mut s), want);
    }
}

/// Two products with movement between them: `x · v`, turned, its rows halved, `· w`.
fn moved(read_elsewhere: bool) -> Graph {
    let mut random = Random::new(9);
    let mut g = Graph::new("moved");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4, 16]));
    let v = g.add_constant("v", random.array(&[16, 16]).tensor());
    let w = g.add_constant("w", random.array(&[2, 6]).tensor());
    let shape = g.add_constant("shape", Tensor::from_slice(&[2], &[32i64, 2]).unwrap());
    let first = g.apply("first", MatMul::default(), &[x, v]);
    let turned = g.apply("turned", Transpose { perm: vec![1, 0] }, &[first]);
    let pairs = g.apply("pairs", Reshape { allow_zero: false }, &[turned, shape]);
    let second = g.apply("second", MatMul::default(), &[pairs, w]);
    g.outputs.push(second);
    if read_elsewhere {
        let negated = g.apply("negated", Unary(UnaryKind::Neg), &[turned]);
        g.outputs.push(negated);
    }
    g
}

/// What computes in half precision on `backend`, and how often it is cast.
fn mixed(graph: Graph, backend: StandIn) -> (Vec<(String, String)>, usize) {
    let session = make(graph, backend, options(within(0.01))).unwrap();
    let report = session.report();
    let chosen = report.precision.unwrap();
    assert_eq!(chosen.nodes, ["first", "second"]);
    let moved = |name: &str| ["turned", "pairs"].contains(&name);
    let nodes = report.nodes.iter().filter(|n| moved(&n.name));
    let dtypes = nodes.map(|n| (n.name.clone(), n.outputs[0].dtype.clone()));
    let dtypes: Vec<_> = dtypes.collect();
    for (name, dtype) in &dtypes {
        let told = chosen.single.iter().any(|s| s.node == *name);
        assert!(!told || dtype == "float32", "{name} {dtype}: {chosen:?}");
    }
    let casts = report.nodes.iter().filter(|n| n.op == "Cast").count();
    (dtypes, casts)
}

#[test]
fn nothing_is_cast_between_two_products_of_half_precision() {
    // Of products alone; the stand-in would have everything in half precision.
    let products = || half().preferring_half(|n| n.op.name() == "MatMul");
    let all = |dtype: &str| ["turned", "pairs"].map(|n| (n.to_string(), dtype.to_string()));
    // Where it goes in and where it comes out.
    assert_eq!(
        mixed(moved(false), products()),
        (all("float16").to_vec(), 2)
    );
    // Somebody else reads what was moved: it stays, and is cast on both sides.
    assert_eq!(mixed(moved(true), products()), (all("float32").to_vec(), 4));
    // A backend that does not move halves is not given them.
    let turns_single = products().taking(|n| {
        n.op.name() != "Transpose" || n.inputs[0].as_ref().is_some_and(|x| x.dtype == DType::F32)
    });
    let (dtypes, casts) = mixed(moved(false), turns_single);
    assert_eq!((dtypes, casts), (all("float32").to_vec(), 4));
}

/// The products run on one backend and the movement on another, where the user wants no half precision.
#[test]
fn movement_stays_single_on_a_backend_without_half_precision() {
    let casts = |f16: Option<Half>| {
        let products = half().taking(|n| n.op.name() == "MatMul");
        let mover = StandIn::new(cpu(), "mover").taking(|n| n.op.name() != "MatMul");
        let backends: Vec<Arc<dyn Backend>> = vec![Arc::new(products), Arc::new(mover)];
        let mut options = options(within(0.01));
        options.configs.entry("mover").f16 = f16;
        let session = Session::new(moved(false), backends, cpu(), options);
        let nodes = pollster::block_on(session).unwrap().report().nodes;
        nodes.iter().filter(|n| n.op == "Cast").count()
    };
    assert_eq!((casts(None), casts(Some(Half::Off))), (2, 4));
}

#[test]
fn movement_in_half_precision_changes_no_number() {
    let pins = pinned(&["op:MatMul=float16"]);
    let want = run(&mut make(moved(false), StandIn::new(cpu(), "any"), pins).unwrap());
    let products = half().preferring_half(|n| n.op.name() == "MatMul");
    let got = run(&mut make(moved(false), products, options(within(0.01))).unwrap());
    assert_eq!(got, want);
}

#[test]
fn the_worst_of_the_samples_counts() {
    // Of rows of ones the second product is small; of rows of a thousand it leaves what half precision has.
    let of = |v: f32| {
        vec![(
            "x".to_string(),
            Tensor::from_slice(&[4, 16], &[v; 64]).unwrap(),
        )]
    };
    let mut g = Graph::new("growing");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4, 16]));
    let hundred = g.add_constant("w", Tensor::from_slice(&[16, 4], &[100.0f32; 64]).unwrap());
    let out = g.apply("product", MatMul::default(), &[x, hundred]);
    g.outputs.push(out);
    let chosen = |samples: Vec<Vec<(String, Tensor)>>| {
        let mixed = MixedPrecision {
            tolerance: 0.01,
            samples,
        };
        let session = make(g.clone(), half(), options(Some(mixed))).unwrap();
        session.report().precision.unwrap().nodes
    };
    assert_eq!(chosen(vec![of(1.0)]), ["product"]);
    assert_eq!(chosen(vec![of(1.0), of(1000.0)]), [""; 0]);
    assert_eq!(chosen(vec![of(1000.0), of(1.0)]), [""; 0]);
}

#[test]
fn samples_are_needed() {
    let mixed = MixedPrecision {
        tolerance: 0.01,
        samples: Vec::new(),
    };
    let error = session(half(), Some(mixed)).err().map(|e| e.code());
    assert_eq!(error, Some(ErrorCode::Input));
    let error = session(half(), within(-1.0)).err().map(|e| e.code());
    assert_eq!(error, Some(ErrorCode::InvalidValue));
}

#[test]
fn the_user_may_turn_half_precision_off() {
    let mut options = options(within(0.01));
    options.configs.entry("half").f16 = Some(Half::Off);
    let s = make(graph(), half(), options).unwrap();
    let found = s.report().precision.unwrap();
    assert_eq!(found.considered, 0);
    let off = |n: &SingleReport| n.reason == "half: the options turn float16 off";
    assert!(found.single.iter().all(off), "{found:?}");
}

#[test]
fn nodes_whose_precision_is_given_are_left_alone() {
    let pinned = SessionOptions {
        mixed_precision: within(0.01),
        ..pinned(&["node:first=float32"])
    };
    let session = make(graph(), half(), pinned).unwrap();
    let found = session.report().precision.unwrap();
    assert!(found.nodes.iter().any(|n| n == "second"), "{found:?}");
    let first = found.single.iter().find(|s| s.node == "first").unwrap();
    assert_eq!(first.reason, "the options give its precision");
}

/// On a device that computes in half precision, its products do; elsewhere the report says why not.
#[test]
fn the_gpu_grades_half_precision_by_its_adapter() {
    let Some(gpu) = gpu() else { return };
    let backends = vec![gpu.clone()];
    let make = |mixed| Session::new(graph(), backends.clone(), cpu(), options(mixed));
    let want = run(&mut pollster::block_on(make(None)).unwrap());
    let mut s = pollster::block_on(make(within(0.01))).unwrap();
    let found = s.report().precision.unwrap();
    if gpu.describe().f16() {
        assert!(found.nodes.iter().any(|n| n == "first"), "{found:?}");
        assert!(found.error > 0.0 && found.error <= 0.01, "{found:?}");
        assert_eq!(dtypes(&s, "MatMul")[0].1, "float16");
        assert_ne!(run(&mut s), want);
    } else {
        assert_eq!(found.nodes, Vec::<String>::new());
        let first = found.single.iter().find(|n| n.node == "first").unwrap();
        assert_eq!(first.reason, "wgpu: the adapter has no shader-f16");
        assert_eq!(run(&mut s), want);
    }
}

/// A dense convolution, one of each channel by itself, and a pointwise one.
fn convolutions() -> Graph {
    let mut random = Random::new(11);
    let mut g = Graph::new("convolutions");
    let mut x = g.add_input("x", Fact::fixed(DType::F32, &[1, 4, 4, 8]));
    for (name, shape, groups) in [
        ("dense", [8, 8, 3, 3], 1),
        ("depthwise", [8, 1, 3, 3], 8),
        ("pointwise", [16, 8, 1, 1], 1),
    ] {
        let conv = Conv {
            strides: vec![1; 2],
            dilations: vec![1; 2],
            padding: Padding::Explicit(vec![shape[2] / 2; 4]),
            groups,
            channels_last: true,
            activation: Activation::Relu,
        };
        let weights = g.add_constant(format!("{name} weights"), random.array(&shape).tensor());
        x = g.apply(name, conv, &[x, weights]);
    }
    g.outputs.push(x);
    g
}

#[test]
fn convolutions_on_the_gpu_may_be_of_half_precision() {
    let Some(gpu) = gpu() else { return };
    let feed = |seed| Random::new(seed).array(&[1, 4, 4, 8]).tensor();
    let make = |tolerance: f64| {
        let mixed = MixedPrecision {
            tolerance,
            samples: vec![vec![("x".to_string(), feed(1))]],
        };
        let session = Session::new(
            convolutions(),
            vec![gpu.clone()],
            cpu(),
            options(Some(mixed)),
        );
        pollster::block_on(session).unwrap()
    };
    let chosen = |session: &Session| session.report().precision.unwrap();
    let mut single = make(0.0);
    assert_eq!(chosen(&single).nodes, Vec::<String>::new());
    if !gpu.describe().f16() {
        return;
    }
    let mut half = make(0.01);
    let found = chosen(&half);
    assert_eq!(
        found.nodes,
        ["dense", "depthwise", "pointwise"],
        "{found:?}"
    );
    let values = |session: &mut Session| {
        let inputs = [("x", feed(1))];
        let out = pollster::block_on(session.run(&inputs, &RunOptions::default()));
        out.unwrap()[0].1.to_f64s().unwrap()
    };
    let (want, got) = (values(&mut single), values(&mut half));
    let scale = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let apart = got.iter().zip(&want).map(|(a, b)| (a - b).abs() / scale);
    let apart = apart.fold(0.0, f64::max);
    // What was measured is what the sample gives.
    assert!(
        (apart - found.error).abs() <= 1e-6 && apart > 0.0,
        "{apart} {}",
        found.error
    );
}

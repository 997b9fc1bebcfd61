//! What `MemoryMode::Limit` spares, and what is never held twice.

use std::sync::Arc;

use kilim::core::PrecisionPin;
use kilim::core::tensor::AlignedBytes;
use kilim_tests::stand_in::StandIn;

use crate::*;

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
fn verify_needs_weights_that_are_kept() {
    let x = weights(&[1, 8, 8, 8]);
    let verified = |options: LoadOptions| {
        let mut s = session(convolutions(8, Dim::Known(8)), options).unwrap();
        let inputs = [("x", x.clone().into())];
        pollster::block_on(kilim::verify(&mut s, &inputs, &VerifyOptions::default()))
    };
    for mut options in [options(), thrifty()] {
        let gone = verified(options.clone()).unwrap_err();
        assert_eq!(gone.code(), ErrorCode::State, "{gone}");
        options.keep_weights = true;
        assert!(verified(options).unwrap().passed());
    }
}

#[test]
fn runs_in_the_background_need_no_raw_weights() {
    let x = weights(&[1, 8, 8, 8]);
    let model = || convolutions(8, Dim::Known(8));
    let cpu = cpu();
    // Whose kernels other contexts cannot share.
    let alone = Arc::new(StandIn::new(cpu.clone(), "alone"));
    let alone = Session::new(model(), vec![alone], cpu, options().session);
    let sessions = [
        session(model(), options()),
        session(model(), thrifty()),
        pollster::block_on(alone),
    ];
    for mut s in sessions.map(Result::unwrap) {
        let want = run(&mut s, &x).unwrap();
        let runs: Vec<_> = (0..3)
            .map(|_| s.run_async(&[("x", x.clone().into())], &RunOptions::default()))
            .collect();
        for run in runs {
            let out = run.unwrap().wait().unwrap();
            let y = out[0].1.tensor().unwrap();
            assert_eq!(y.to_f64s().unwrap(), want.to_f64s().unwrap());
        }
    }
}

#[test]
fn limit_keeps_one_plan() {
    let separate = |mut options: LoadOptions, kept: usize| {
        options.plans_kept = kept;
        let open = convolutions(8, Dim::Symbol("size".into()));
        let mut s = session(open, options).unwrap();
        for size in [8, 16, 32] {
            run(&mut s, &weights(&[1, 8, size, size])).unwrap();
        }
        let b = &s.report().backends[0];
        b.planned_bytes - b.arena_bytes
    };
    assert_eq!(separate(thrifty(), 3), separate(options(), 1));
    assert!(separate(thrifty(), 3) < separate(options(), 3));
}

#[test]
fn limit_keeps_nothing_of_a_run() {
    let held = |options: LoadOptions| {
        let mut s = session(convolutions(8, Dim::Known(8)), options).unwrap();
        let bytes = AlignedBytes::zeroed(8 * 8 * 8 * 4).unwrap();
        let buffer = Arc::new(bytes);
        let x = Tensor::from_bytes(DType::F32, &[1, 8, 8, 8], buffer.clone()).unwrap();
        run(&mut s, &x).unwrap();
        drop(x);
        Arc::strong_count(&buffer) - 1
    };
    assert_eq!(held(thrifty()), 0);
    assert!(held(options()) > 0, "the test sees what is held");
}

/// Weights on a device are beside those of the graph, which it needs after the device was lost.
#[test]
fn limit_keeps_no_weights_of_the_graph_beside_those_of_a_device() {
    let on_gpu = |mut options: LoadOptions| {
        options.backends = vec![BackendId::from("wgpu")];
        let s = session(convolutions(16, Dim::Known(16)), options);
        s.map(|s| s.report().graph_bytes)
    };
    match on_gpu(options()) {
        Ok(normal) => assert!(normal >= weight_bytes(16), "{normal}"),
        Err(e) => return skip(e),
    }
    assert_eq!(on_gpu(thrifty()).unwrap(), 0);
}

#[test]
fn scratch_is_shared_by_all_kernels() {
    // Arena beyond the tensors, of so many operators of one kind in a row.
    let scratch = |backend: &str, graph: Graph| -> Result<usize> {
        let mut options = options();
        options.backends = vec![BackendId::from(backend)];
        let report = session(graph, options)?.report();
        Ok(report.backends[0].arena_bytes - report.memory[0].bytes)
    };
    let layers = |count: usize| {
        let mut g = Graph::new("layers");
        let mut x = g.add_input("x", Fact::fixed(DType::F32, &[1, 16, 16, 16]));
        for i in 0..count {
            let w = g.add_constant(format!("w{i}"), weights(&[16, 16, 3, 3]));
            x = g.apply(format!("conv{i}"), convolution(), &[x, w]);
        }
        g.outputs.push(x);
        g
    };
    let one = scratch("cpu", layers(2)).unwrap();
    assert!(one > 4096, "convolutions need scratch: {one}");
    let more = scratch("cpu", layers(6)).unwrap();
    assert!(more < one + 4096, "{more} for six layers, {one} for two");

    let sorts = |count: usize| {
        let mut g = Graph::new("sorts");
        let mut x = g.add_input("x", Fact::fixed(DType::F32, &[4096]));
        let k = g.add_constant("k", Tensor::from_slice(&[1], &[4096i64]).unwrap());
        for i in 0..count {
            let op = TopK {
                axis: 0,
                largest: i % 2 == 0,
                sorted: true,
            };
            // The places are not asked for.
            x = g.apply(format!("top{i}"), op, &[x, k]);
        }
        g.outputs.push(x);
        g
    };
    match (scratch("wgpu", sorts(2)), scratch("wgpu", sorts(4))) {
        (Ok(two), Ok(four)) => {
            assert!(two >= 4096 * 4, "sorting needs scratch: {two}");
            assert!(four < two + 4096, "{four} for four sorts, {two} for two");
        }
        (Err(e), _) | (_, Err(e)) => skip_part(e),
    }
}

/// A kernel that computes in half precision widens its weights on their way to the form that it reads.
#[test]
fn what_weights_were_on_their_way_does_not_stay() {
    for mut options in [options(), thrifty()] {
        let pin = "op:MatMul=float16".parse::<PrecisionPin>().unwrap();
        options.precisions = vec![pin];
        let mut g = Graph::new("product");
        let x = g.add_input("x", Fact::fixed(DType::F32, &[4, 256]));
        let w = g.add_constant("w", weights(&[256, 256]));
        let y = g.apply("y", MatMul::default(), &[x, w]);
        g.outputs.push(y);
        let report = session(g, options).unwrap().report();
        let (held, wide) = (report.backends[0].constant_bytes, 256 * 256 * 4);
        assert!(held <= wide + wide / 8, "{held} bytes for {wide}");
    }
}

#[test]
fn constants_are_held_once_for_all_plans() {
    let mut g = Graph::new("sums");
    let dims = vec![Dim::Symbol("n".into()), Dim::Known(1024)];
    let x = g.add_input("x", Fact::new(DType::F32, Shape(dims)));
    let c = g.add_constant("c", weights(&[1024]));
    let y = g.apply("y", Binary::new(BinaryKind::Add), &[x, c]);
    g.outputs.push(y);
    for id in ["cpu", "wgpu"] {
        let mut options = options();
        options.backends = vec![BackendId::from(id)];
        let mut s = match session(g.clone(), options) {
            Ok(s) => s,
            Err(e) => return skip_part(e),
        };
        for n in [1, 2, 3] {
            run(&mut s, &weights(&[n, 1024])).unwrap();
            assert_eq!(
                s.report().backends[0].constant_bytes,
                4096,
                "{id}, {n} rows"
            );
        }
    }
}

//! Inputs of other shapes, and the plans that are kept for them.

use std::sync::Arc;

use kilim_tests::stand_in::StandIn;

use crate::*;

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
    let held = |kept: usize, sizes: &[usize]| {
        let mut options = options();
        options.plans_kept = kept;
        let mut s = session(convolutions(8, Dim::Symbol("size".into())), options).unwrap();
        for &size in sizes {
            run(&mut s, &weights(&[1, 8, size, size])).unwrap();
        }
        let b = &s.report().backends[0];
        (b.arena_bytes, b.planned_bytes - b.arena_bytes)
    };
    let sizes = [8, 16, 32];
    let (one, three) = (held(1, &sizes), held(3, &sizes));
    assert_eq!(one.0, three.0, "plans share one arena");
    let alone = sizes.map(|size| held(1, &[size]).1);
    for (size, alone) in sizes.iter().zip(alone) {
        let output = 8 * size * size * 4;
        let tables = alone.checked_sub(output).unwrap();
        assert!(tables > 0 && tables < output, "{alone} bytes of its own");
    }
    assert_eq!(one.1, alone[2], "the latest plan alone");
    assert_eq!(three.1, alone.iter().sum::<usize>());
}

#[test]
fn tensors_lie_where_the_backend_wants_them() {
    let offsets = |alignment: usize| {
        let mut g = Graph::new("sizes");
        let x = g.add_input("x", Fact::fixed(DType::F32, &[7]));
        let exp = g.apply("exp", Unary(UnaryKind::Exp), &[x]);
        let sin = g.apply("sin", Unary(UnaryKind::Sin), &[x]);
        let abs = g.apply("abs", Unary(UnaryKind::Abs), &[x]);
        let sum = g.apply("sum", Binary::new(BinaryKind::Add), &[exp, sin]);
        let y = g.apply("y", Binary::new(BinaryKind::Mul), &[sum, abs]);
        g.outputs.push(y);
        let backend = StandIn::new(cpu(), "aligned").aligned(alignment);
        let runtime = Runtime::default().with_backend(Arc::new(backend));
        let mut options = options();
        options.backends = vec![BackendId::from("aligned")];
        options.optimise = false;
        let mut s = pollster::block_on(runtime.session(g, options)).unwrap();
        let x = weights(&[7]);
        let got = run(&mut s, &x).unwrap();
        let want = x.to_f64s().unwrap().into_iter();
        let want = want.map(|x| (x.exp() + x.sin()) * x.abs());
        for (got, want) in got.to_f64s().unwrap().into_iter().zip(want) {
            assert!((got - want).abs() < 1e-5, "{got} {want}");
        }
        let tensors = s.report().memory.into_iter().flat_map(|plan| plan.tensors);
        let mut offsets: Vec<usize> = tensors.map(|t| t.offset).collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    };
    for alignment in [64, 256, 4096] {
        let offsets = offsets(alignment);
        assert!(offsets.len() >= 3, "{offsets:?}");
        assert!(offsets.iter().all(|o| o % alignment == 0), "{offsets:?}");
    }
}

//! Inputs of other shapes, and the plans that are kept for them.

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

//! The memory of libraries, which Kilim plans.

use kilim::{ErrorCode, Sharing};

use crate::broken::*;
use crate::*;

#[test]
fn the_memory_of_a_library_in_c_is_planned_and_shared() {
    check_planned_memory("scale", &sample_in_c("memory"), &scaled());
}

#[test]
fn the_memory_of_a_library_in_rust_is_planned_and_shared() {
    let nodes = [
        node("com.example", "Cube", &["x"], &["a"]),
        node("", "Neg", &["a"], &["b"]),
        node("com.example", "Cube", &["b"], &["c"]),
        node("", "Neg", &["c"], &["y"]),
    ];
    let model = model(&nodes, &[("x", &["n"])], &[("y", &["n"])]);
    let folder = sample_in_rust();
    check_planned_memory("cube", &folder, &model);
    let mut session = load(&model, options(&["cube", "cpu"], &folder)).unwrap();
    assert_eq!(
        run(&mut session, &[-1.5, 2.0]).unwrap(),
        [-38.443_36, 512.0]
    );
    // Of five tensors, two are needed at the same time; nothing lies beside the arena.
    let backend = &session.report().backends[0];
    assert_eq!(backend.arena_bytes, 64 + 8);
    assert_eq!(backend.planned_bytes, backend.arena_bytes);
}

fn check_planned_memory(id: &str, folder: &Path, model: &[u8]) {
    let runtime = Runtime::default();
    let open = |sharing: Sharing| {
        let mut options = options(&[id, "cpu"], folder);
        options.sharing = sharing;
        pollster::block_on(runtime.load(model, options))
    };
    let arena = |s: &Session| s.report().backends[0].arena_bytes;
    let (short, long) = (vec![0.5f32; 64], vec![-0.5f32; 640]);
    let mut own = open(Sharing::Own).unwrap();
    run(&mut own, &short).unwrap();
    let small = arena(&own);
    let want = run(&mut own, &long).unwrap();
    let needed = arena(&own);
    assert!(small > 0 && needed > small, "{small} {needed}");
    // Both plans are kept; they lie in one block, which is bound anew.
    run(&mut own, &short).unwrap();
    assert_eq!(run(&mut own, &long).unwrap(), want);
    assert_eq!(arena(&own), needed);
    let report = own.report();
    let plans = report.memory.iter().filter(|p| p.backend == id);
    assert_eq!(plans.map(|p| p.bytes).max(), Some(needed));
    own.clear();
    assert_eq!(arena(&own), 0);
    assert_eq!(run(&mut own, &long).unwrap(), want);

    let mut pair = [(); 2].map(|()| open(Sharing::ShareOneThread).unwrap());
    run(&mut pair[0], &long).unwrap();
    run(&mut pair[1], &short).unwrap();
    assert_eq!(run(&mut pair[0], &long).unwrap(), want);
    assert_eq!(pair.each_ref().map(arena), [needed; 2]);

    let backend = pollster::block_on(runtime.backend(&BackendId::from(id))).unwrap();
    let cpu = pollster::block_on(runtime.backend(&BackendId::from("cpu"))).unwrap();
    let give = |bytes| {
        let of_cpu = cpu.create_arena(1 << 20).unwrap();
        Sharing::External(vec![backend.create_arena(bytes).unwrap(), of_cpu])
    };
    let mut given = open(give(needed)).unwrap();
    assert_eq!(run(&mut given, &long).unwrap(), want);
    assert_eq!(given.report().backends[0].arena_owner, "external");
    let mut tight = open(give(small)).unwrap();
    assert_eq!(run(&mut tight, &long).unwrap_err().code(), ErrorCode::Limit);
    run(&mut tight, &short).unwrap();
}

#[test]
fn a_library_says_what_a_tensor_and_its_kernels_take() {
    let mut session = broken(PADS, &[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    // Two tensors of 8 + 100 bytes, from multiples of 64 on, and scratch.
    let bytes = (128 + 108_usize).next_multiple_of(64) + 1000;
    assert_eq!(session.report().backends[0].arena_bytes, bytes);
}

#[test]
fn a_library_of_before_memory_was_planned_runs_in_its_own() {
    let mut session = broken(TABLE_BEFORE_MEMORY, &[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    let backend = &session.report().backends[0];
    assert_eq!(backend.arena_bytes, 0);
    assert!(backend.planned_bytes > 0);
}

#[test]
fn memory_that_a_library_does_not_have_is_a_typed_error() {
    let error = refused_alone(NO_MEMORY);
    assert_eq!(error.code(), ErrorCode::Limit);
    assert!(error.message().contains("the device is full"), "{error}");
    assert_eq!(refused_alone(ABSURD_BYTES).code(), ErrorCode::Limit);
    let mut session = broken(BIND_FAILS, &["cpu"]).unwrap();
    let error = run(&mut session, &[-1.0, 1.0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
    assert!(error.message().contains("is not mine"), "{error}");
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
}

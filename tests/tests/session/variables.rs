//! Tensors that a model keeps from run to run.

use kilim::{Keep, Variable};
use kilim_tests::machine::gpu_beside_others;

use crate::*;

/// `sum` `[2]` begins with 10 and 20, and `x` is added to it in each run; `twice` is two times what it becomes. `last` is what
/// `x` was in the run before, and `before` gives it.
fn counting() -> Graph {
    let mut g = Graph::new("counting");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let sum = g.add_variable("sum", f32s(&[2], &[10.0, 20.0]));
    let last = g.add_variable("last", f32s(&[2], &[0.0, 0.0]));
    let becomes = g.apply("becomes", add(), &[sum, x]);
    let twice = g.apply("twice", add(), &[becomes, becomes]);
    let before = g.apply("before", Unary(UnaryKind::Identity), &[last]);
    g.outputs.extend([twice, before]);
    g.set_variables(&[becomes, x]);
    g
}

fn on(backends: &[&str], graph: Graph) -> Session {
    let mut options = LoadOptions {
        backends: backends.iter().map(|&b| BackendId::from(b)).collect(),
        ..LoadOptions::default()
    };
    options.keep_weights = true;
    pollster::block_on(Runtime::shared().session(graph, options)).unwrap()
}

#[track_caller]
fn gives(session: &mut Session, x: [f32; 2], twice: [f32; 2], before: [f32; 2]) {
    let out = run(session, &[("x", f32s(&[2], &x))]).unwrap();
    let want = [("twice", twice), ("before", before)];
    let want = want.map(|(name, values)| (format!("{name}:0"), f32s(&[2], &values)));
    assert_eq!(out, want);
}

#[test]
fn a_run_reads_what_the_run_before_wrote() {
    let gpu = gpu_beside_others().map(|_| &["wgpu", "cpu"][..]);
    for backends in [Some(&["cpu"][..]), gpu].into_iter().flatten() {
        let mut s = on(backends, counting());
        let names =
            |ports: &[kilim::Port]| ports.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(s.inputs()), ["x"]);
        assert_eq!(names(s.outputs()), ["twice:0", "before:0"]);
        assert_eq!(s.report().variables, ["sum", "last"]);
        let mut other = on(backends, counting());
        for _ in 0..2 {
            gives(&mut s, [1.0, 2.0], [22.0, 44.0], [0.0, 0.0]);
            gives(&mut s, [3.0, 4.0], [28.0, 52.0], [1.0, 2.0]);
            gives(&mut other, [1.0, 1.0], [22.0, 42.0], [0.0, 0.0]);
            gives(&mut s, [0.0, 0.0], [28.0, 52.0], [3.0, 4.0]);
            s.reset();
            other.reset();
        }
    }
}

/// What the caller has of an output is not what the next run writes on.
#[test]
fn kept_outputs_and_profiles_are_of_their_run() {
    let mut s = on(&["cpu"], counting());
    let x = [("x", f32s(&[2], &[1.0, 2.0]).into())];
    let options = RunOptions {
        keep: Keep::new(["twice:0"]),
        ..RunOptions::default()
    };
    let kept = pollster::block_on(s.run_data(&x, &options)).unwrap();
    pollster::block_on(s.profile(&x, &RunOptions::default())).unwrap();
    gives(&mut s, [0.0, 0.0], [24.0, 48.0], [1.0, 2.0]);
    let kilim::Datum::Device(twice) = &kept[0].1 else {
        panic!("{kept:?}");
    };
    let twice = pollster::block_on(twice.read()).unwrap();
    assert_eq!(twice, f32s(&[2], &[22.0, 44.0]));
}

/// What a run writes for the next one is asked for, whichever outputs are.
#[test]
fn runs_of_some_outputs_write_all_variables() {
    let gpu = gpu_beside_others().map(|_| &["wgpu", "cpu"][..]);
    for backends in [Some(&["cpu"][..]), gpu].into_iter().flatten() {
        let mut s = on(backends, counting());
        let x = [("x", f32s(&[2], &[1.0, 2.0]).into())];
        for outputs in [&["before:0"][..], &[]] {
            let options = RunOptions {
                outputs: Some(Keep::new(outputs.iter().copied())),
                ..RunOptions::default()
            };
            let (out, nodes) = pollster::block_on(s.profile(&x, &options)).unwrap();
            assert_eq!(out.len(), outputs.len());
            assert!(nodes.iter().all(|node| node.name != "twice"), "{nodes:?}");
        }
        gives(&mut s, [3.0, 4.0], [30.0, 56.0], [1.0, 2.0]);
    }
}

/// The comparison counts as a run.
#[test]
fn backends_are_compared_from_the_same_values_on() {
    let mut s = on(&["cpu"], counting());
    gives(&mut s, [1.0, 2.0], [22.0, 44.0], [0.0, 0.0]);
    let x = [("x", f32s(&[2], &[3.0, 4.0]).into())];
    let options = kilim::VerifyOptions::default();
    let verification = pollster::block_on(kilim::verify(&mut s, &x, &options)).unwrap();
    assert!(verification.passed(), "{verification:?}");
    gives(&mut s, [0.0, 0.0], [28.0, 52.0], [3.0, 4.0]);
}

#[test]
fn a_run_that_fails_leaves_variables_as_they_are() {
    let mut s = on(&["cpu"], counting());
    gives(&mut s, [1.0, 2.0], [22.0, 44.0], [0.0, 0.0]);
    let wrong = run(&mut s, &[("x", f32s(&[3], &[1.0; 3]))]);
    assert_eq!(wrong.unwrap_err().code(), ErrorCode::Shape);
    let aborted = RunOptions {
        abort: Some(Arc::new(std::sync::atomic::AtomicBool::new(true))),
        ..RunOptions::default()
    };
    let x = [("x", f32s(&[2], &[1.0, 2.0]))];
    assert!(pollster::block_on(s.run(&x, &aborted)).is_err());
    gives(&mut s, [0.0, 0.0], [22.0, 44.0], [1.0, 2.0]);
}

/// Each of several runs at once would have variables of its own.
#[test]
fn runs_at_the_same_time_are_refused() {
    let mut s = on(&["cpu"], counting());
    let x = [("x", f32s(&[2], &[1.0, 2.0]).into())];
    let error = s.run_async(&x, &RunOptions::default()).err().unwrap();
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert!(error.to_string().contains("`sum`"), "{error}");
}

#[test]
fn a_variable_keeps_its_shape_and_type() {
    let mut g = Graph::new("growing");
    let shape = Shape(vec![Dim::Symbol("n".into())]);
    let x = g.add_input("x", Fact::new(DType::F32, shape));
    let v = g.add_variable("v", f32s(&[2], &[1.0, 2.0]));
    let all = g.apply("all", Concat { axis: 0 }, &[v, x]);
    g.outputs.push(all);
    g.set_variables(&[all]);
    let mut s = on(&["cpu"], g);
    let one = run(&mut s, &[("x", f32s(&[1], &[3.0]))]).unwrap_err();
    assert_eq!(one.code(), ErrorCode::Shape);
    assert!(one.to_string().contains("`v`"), "{one}");
    let none = run(&mut s, &[("x", f32s(&[0], &[]))]).unwrap();
    assert_eq!(none[0].1, f32s(&[2], &[1.0, 2.0]));
}

#[test]
fn variables_of_the_same_model_are_copied() {
    let [mut s, mut other] = [on(&["cpu"], counting()), on(&["cpu"], counting())];
    gives(&mut s, [1.0, 2.0], [22.0, 44.0], [0.0, 0.0]);
    other.copy_variables(&s).unwrap();
    gives(&mut other, [0.0, 0.0], [22.0, 44.0], [1.0, 2.0]);
    let mut none = Graph::new("none");
    let x = none.add_input("x", Fact::fixed(DType::F32, &[2]));
    let y = none.apply("y", add(), &[x, x]);
    none.outputs.push(y);
    let error = other.copy_variables(&on(&["cpu"], none)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidValue);
    gives(&mut other, [0.0, 0.0], [22.0, 44.0], [0.0, 0.0]);
}

#[test]
fn a_variable_without_a_value_is_refused() {
    let mut g = Graph::new("broken");
    let initial = f32s(&[1], &[1.0]);
    g.variables.push(Variable {
        name: "v".into(),
        initial,
    });
    let error = session(g).err().unwrap();
    assert_eq!(error.code(), ErrorCode::InvalidGraph);
}

//! Runs of some outputs: only what these need is computed, with the same bytes as in a run of all.

use kilim::core::ops::TensorScatter;
use kilim::core::schedule::{OverlappedScheduler, Scheduler, SyncScheduler};
use kilim::{Datum, Keep};
use kilim_tests::machine::gpu_beside_others;

use crate::growing::{WIDTH, decoder, row};
use crate::*;

/// A trunk with two branches. `written` fails where `at` is past the end of the rows.
fn branches(rows: Dim) -> Graph {
    let mut g = Graph::new("branches");
    let fact = |dims: &[Dim]| Fact::new(DType::F32, Shape(dims.to_vec()));
    let known = Dim::Known;
    let x = g.add_input("x", fact(&[known(2), rows, known(3)]));
    let at = g.add_input("at", Fact::fixed(DType::I64, &[2]));
    let trunk = g.apply("trunk", Unary(UnaryKind::Exp), &[x]);
    let weights: Vec<f32> = (0..12).map(|i| i as f32 / 7.0 - 0.6).collect();
    let weights = g.add_constant("weights", f32s(&[3, 4], &weights));
    let wanted = g.apply("wanted", MatMul::default(), &[trunk, weights]);
    let update = g.add_constant("update", f32s(&[2, 2, 3], &[0.25; 12]));
    let op = TensorScatter {
        axis: 1,
        circular: false,
    };
    let written = g.apply("written", op, &[trunk, update, at]);
    let other = g.apply("other", Unary(UnaryKind::Sqrt), &[written]);
    g.outputs.extend([wanted, other]);
    g
}

fn feeds(rows: usize, at: i64) -> [(&'static str, Datum); 2] {
    let values: Vec<f32> = (0..6 * rows).map(|i| (i % 11) as f32 / 11.0).collect();
    let x = f32s(&[2, rows, 3], &values);
    [("x", x.into()), ("at", i64s(&[0, at]).into())]
}

fn of(names: &[&str]) -> RunOptions {
    RunOptions {
        outputs: Some(Keep::new(names.iter().copied())),
        ..RunOptions::default()
    }
}

/// The outputs of a run, on the host.
type Outputs = Vec<(String, Tensor)>;

/// The outputs of a run, and the nodes that ran, by their names.
fn profiled(
    session: &mut Session,
    inputs: &[(&str, Datum)],
    options: &RunOptions,
) -> Result<(Outputs, Vec<String>)> {
    let (outputs, times) = pollster::block_on(session.profile(inputs, options))?;
    let outputs = outputs.into_iter();
    let outputs = outputs.map(|(name, datum)| (name, datum.tensor().unwrap().clone()));
    let mut nodes: Vec<String> = times.into_iter().map(|time| time.name).collect();
    nodes.sort();
    Ok((outputs.collect(), nodes))
}

/// Sessions of the graph on the CPU, on the GPU and on both, where the nodes of `on_cpu` are the CPU's.
fn everywhere(graph: &Graph, on_cpu: &[&str]) -> Vec<(&'static str, Session)> {
    let gpu = gpu_beside_others().is_some();
    let make = |backends: &[&str], pinned: &[&str], scheduler: Arc<dyn Scheduler>| {
        let mut options = LoadOptions {
            backends: backends.iter().map(|&b| BackendId::from(b)).collect(),
            ..LoadOptions::default()
        };
        let pin = |node: &&str| format!("node:{node}=cpu").parse().unwrap();
        options.pins = pinned.iter().map(pin).collect();
        options.scheduler = scheduler;
        options.placement = kilim::Placement::Fixed;
        pollster::block_on(Runtime::shared().session(graph.clone(), options)).unwrap()
    };
    let sync = || Arc::new(SyncScheduler) as Arc<dyn Scheduler>;
    let mut sessions = vec![("cpu", make(&["cpu"], &[], sync()))];
    if gpu {
        let both = ["wgpu", "cpu"];
        let beside = Arc::new(OverlappedScheduler::default());
        sessions.push(("wgpu", make(&["wgpu"], &[], sync())));
        sessions.push(("both", make(&both, on_cpu, sync())));
        sessions.push(("beside", make(&both, on_cpu, beside)));
    }
    sessions
}

#[test]
fn only_what_the_outputs_need_runs() {
    for rows in [Dim::Known(5), Dim::Symbol("rows".into())] {
        for (place, mut s) in everywhere(&branches(rows), &["written", "other"]) {
            let good = feeds(5, 3);
            let (all, nodes) = profiled(&mut s, &good, &RunOptions::default()).unwrap();
            assert_eq!(nodes, ["other", "trunk", "wanted", "written"], "{place}");
            for _ in 0..2 {
                let (out, nodes) = profiled(&mut s, &good, &of(&["wanted:0"])).unwrap();
                assert_eq!(nodes, ["trunk", "wanted"], "{place}");
                assert_eq!(out, all[..1], "{place}");
                let (out, nodes) = profiled(&mut s, &good, &of(&["oth*"])).unwrap();
                assert_eq!(nodes, ["other", "trunk", "written"], "{place}");
                assert_eq!(out, all[1..], "{place}");
                let (out, nodes) = profiled(&mut s, &good, &of(&[])).unwrap();
                assert!(nodes.is_empty() && out.is_empty(), "{place}");
                let (out, _) = profiled(&mut s, &good, &of(&["*"])).unwrap();
                assert_eq!(out, all, "{place}");
            }
        }
    }
}

#[test]
fn what_other_outputs_would_fail_with_is_no_error() {
    for rows in [Dim::Known(5), Dim::Symbol("rows".into())] {
        for (place, mut s) in everywhere(&branches(rows), &["written", "other"]) {
            let (good, bad) = (feeds(5, 3), feeds(5, 4));
            let mut run = |inputs: &[(&str, Datum)], options: &RunOptions| {
                pollster::block_on(s.run_data(inputs, options))
            };
            // The first run of the session leaves out a branch, whose tensors nobody has written yet.
            let first = run(&bad, &of(&["wanted:0"])).unwrap();
            let all = run(&good, &RunOptions::default()).unwrap();
            let host = |out: &[(String, Datum)]| {
                let tensor = |(_, datum): &(String, Datum)| datum.tensor().unwrap().clone();
                out.iter().map(tensor).collect::<Vec<_>>()
            };
            assert_eq!(host(&first), host(&all[..1]), "{place}");
            let failed = run(&bad, &RunOptions::default()).unwrap_err();
            assert_eq!(failed.code(), ErrorCode::InvalidValue, "{place}");
            let failed = run(&bad, &of(&["other:0"])).unwrap_err();
            assert_eq!(failed.code(), ErrorCode::InvalidValue, "{place}");
            let again = run(&bad, &of(&["wanted:0"])).unwrap();
            assert_eq!(host(&again), host(&first), "{place}");
            assert_eq!(
                host(&run(&good, &of(&["*"])).unwrap()),
                host(&all),
                "{place}"
            );
        }
    }
}

/// What is kept is asked for, buffers ask for their outputs, and what is not right with the call is its error as ever.
#[test]
fn outputs_are_asked_for_in_every_way() {
    for (place, mut s) in everywhere(&branches(Dim::Known(5)), &["written", "other"]) {
        let bad = feeds(5, 4);
        let keeping = RunOptions {
            keep: Keep::new(["wanted:0"]),
            ..of(&[])
        };
        let kept = pollster::block_on(s.run_data(&bad, &keeping)).unwrap();
        let [(name, Datum::Device(tensor))] = &kept[..] else {
            panic!("{place}: {kept:?}");
        };
        assert_eq!(name, "wanted:0");
        let tensor = pollster::block_on(tensor.read()).unwrap();
        let mut bytes = vec![0; 4 * 40];
        let buffers = &mut [("wanted:0", &mut bytes[..])];
        let all = RunOptions::default();
        let into = s.run_into(&bad, buffers, &all);
        assert_eq!(pollster::block_on(into).unwrap()[0].shape, [2, 5, 4]);
        assert_eq!(bytes, tensor.read().unwrap(), "{place}");
        let mut code = |inputs: &[(&str, Datum)], names: &[&str]| {
            let out = pollster::block_on(s.run_data(inputs, &of(names)));
            out.unwrap_err().code()
        };
        assert_eq!(code(&bad, &["wanted:0", "nothing*"]), ErrorCode::Input);
        // Only the other output needs `at`.
        assert_eq!(code(&bad[..1], &["wanted:0"]), ErrorCode::Input);
        let handle = s.run_async(&bad, &of(&["wanted:0"])).unwrap();
        assert_eq!(handle.wait().unwrap()[0].1.tensor().unwrap(), &tensor);
        assert!(s.run_async(&bad, &of(&["nothing"])).is_err(), "{place}");
    }
}

/// An output that other nodes read, one that is an input and one that is a constant.
#[test]
fn outputs_may_be_any_values() {
    let mut g = Graph::new("values");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[3]));
    let c = g.add_constant("c", f32s(&[3], &[1.0, 2.0, 3.0]));
    let inner = g.apply("inner", Unary(UnaryKind::Exp), &[x]);
    let y = g.apply("y", add(), &[inner, c]);
    let z = g.apply("z", MatMul::default(), &[y, y]);
    g.outputs.extend([inner, x, c, y, z]);
    for (place, mut s) in everywhere(&g, &["y"]) {
        let names: Vec<String> = s.outputs().iter().map(|port| port.name.clone()).collect();
        let inputs = [("x", f32s(&[3], &[0.5, -1.0, 2.0]).into())];
        let (all, _) = profiled(&mut s, &inputs, &RunOptions::default()).unwrap();
        for (i, count) in [1, 0, 0, 2, 3].into_iter().enumerate() {
            let (out, nodes) = profiled(&mut s, &inputs, &of(&[&names[i]])).unwrap();
            assert_eq!((&out[..], nodes.len()), (&all[i..=i], count), "{place} {i}");
        }
    }
}

#[test]
fn caches_grow_with_other_outputs_in_every_step() {
    for (place, mut s) in everywhere(&decoder(), &[]) {
        let mut past = row(0, 1);
        for i in 1..200 {
            let inputs = [("x", row(i, 1)), ("past", past.clone())];
            let options = match i % 5 {
                0 => RunOptions::default(),
                1 => of(&["y:0", "keys:0"]),
                2 => of(&["y:0"]),
                _ => of(&["keys:0"]),
            };
            let out = pollster::block_on(s.run(&inputs, &options)).unwrap();
            if i % 40 < 3 {
                let fresh = run(&mut everywhere(&decoder(), &[])[0].1, &inputs).unwrap();
                let same = |(name, got): &(String, Tensor)| {
                    let want = fresh.iter().find(|(n, _)| n == name).unwrap();
                    place != "cpu" || want.1 == *got
                };
                assert!(out.iter().all(same), "{place} {i}");
            }
            let keys = out.iter().find(|(name, _)| name == "keys:0");
            past = match keys {
                Some((_, keys)) => keys.clone(),
                None => {
                    let mut values = past.as_slice::<f32>().unwrap().to_vec();
                    values.extend(row(i, 1).as_slice::<f32>().unwrap());
                    f32s(&[i + 1, WIDTH], &values)
                }
            };
            assert_eq!(past.shape(), [i + 1, WIDTH]);
        }
        let plans = s.report().plans;
        assert_eq!(plans.made + plans.adapted, 199, "{place}");
        assert!(plans.made <= 10, "{place} {plans:?}");
    }
}

/// Stages that nothing asked for needs are not even planned; a loop without an end is not begun.
#[test]
fn stages_and_control_flow_are_left_out() {
    let mut body = Graph::new("body");
    let _ = body.add_input("i", Fact::fixed(DType::I64, &[]));
    let go = body.add_input("go", Fact::fixed(DType::Bool, &[]));
    let carried = body.add_input("carried", Fact::fixed(DType::F32, &[4]));
    let next = body.apply("next", Unary(UnaryKind::Neg), &[carried]);
    body.outputs.extend([go, next]);
    let mut g = Graph::new("stages");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[4]));
    let y = g.apply("y", Unary(UnaryKind::Relu), &[x]);
    let where_ = g.apply("nonzero", NonZero, &[y]);
    let after = g.apply("after", Unary(UnaryKind::Identity), &[where_]);
    let forever = g.add_value("forever", Fact::default());
    let op = Loop {
        body: Arc::new(body),
        carried: 1,
    };
    g.push("loop", op, &[None, None, Some(y)], &[forever]);
    g.outputs.extend([y, after, forever]);
    for (place, mut s) in everywhere(&g, &[]).into_iter().take(1) {
        let inputs = [("x", f32s(&[4], &[1.0, -2.0, 0.0, 3.0]).into())];
        let unplanned = |s: &Session| s.report().unplanned_stages;
        let before = unplanned(&s);
        assert!(before > 0);
        let (out, nodes) = profiled(&mut s, &inputs, &of(&["y:0"])).unwrap();
        assert_eq!(out[0].1, f32s(&[4], &[1.0, 0.0, 0.0, 3.0]));
        assert_eq!((unplanned(&s), nodes), (before, vec!["y".to_string()]));
        let names = s.outputs().iter().map(|port| port.name.clone());
        let found = names.collect::<Vec<_>>().swap_remove(1);
        let (out, _) = profiled(&mut s, &inputs, &of(&[&found])).unwrap();
        assert_eq!(out[0].1.as_slice::<i64>().unwrap(), [0, 3]);
        assert!(unplanned(&s) < before, "{place}");
        let bounded = RunOptions {
            timeout: Some(0.05),
            ..of(&["forever"])
        };
        let stopped = pollster::block_on(s.run_data(&inputs, &bounded)).unwrap_err();
        assert_eq!(stopped.code(), ErrorCode::Aborted);
    }
}

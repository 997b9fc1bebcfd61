//! Outputs that stay where they are computed, and go into further runs.

use std::task::{Context, Waker};

use kilim::core::backend::DataLayout;
use kilim::core::ops::SequenceConstruct;
use kilim::core::session::PortLayout;
use kilim::{Datum, DeviceTensor, Form, Keep};
use kilim_tests::machine::gpu_beside_others;

use crate::growing::{WIDTH, decoder, row};
use crate::*;

/// The backends that are here, each with what its tensors say of themselves.
fn backends() -> Vec<(&'static str, &'static str)> {
    let gpu = gpu_beside_others().map(|_| ("wgpu", "wgpu"));
    std::iter::once(("cpu", "host")).chain(gpu).collect()
}

fn on(backend: &str, graph: Graph) -> Session {
    let options = LoadOptions {
        backends: vec![BackendId::from(backend)],
        ..LoadOptions::default()
    };
    pollster::block_on(Runtime::shared().session(graph, options)).unwrap()
}

fn keeping(pattern: &str) -> RunOptions {
    RunOptions {
        keep: Keep::new([pattern]),
        ..RunOptions::default()
    }
}

fn data(
    session: &mut Session,
    inputs: &[(&str, Datum)],
    options: &RunOptions,
) -> Result<Vec<Datum>> {
    let out = pollster::block_on(session.run_data(inputs, options))?;
    Ok(out.into_iter().map(|(_, datum)| datum).collect())
}

fn kept(datum: &Datum) -> &DeviceTensor {
    match datum {
        Datum::Device(tensor) => tensor,
        other => panic!("{other:?} was not kept"),
    }
}

fn read(datum: &Datum) -> Tensor {
    pollster::block_on(kept(datum).read()).unwrap()
}

/// `y = x + x`, and `sum = x + z`.
fn sums() -> Graph {
    let mut g = Graph::new("sums");
    let fact = || Fact::new(DType::F32, symbolic(&["n"]));
    let (x, z) = (g.add_input("x", fact()), g.add_input("z", fact()));
    let y = g.apply("y", add(), &[x, x]);
    let sum = g.apply("sum", add(), &[x, z]);
    g.outputs.extend([y, sum]);
    g
}

#[test]
fn a_cache_that_stays_gives_what_one_on_the_host_gives() {
    for (backend, place) in backends() {
        let steps = if backend == "cpu" { 300 } else { 40 };
        let (mut host, mut device) = (on(backend, decoder()), on(backend, decoder()));
        for talk in 0..2 {
            let mut past = f32s(&[0, WIDTH], &[]);
            let mut cache = Datum::from(past.clone());
            for i in 0..steps {
                let x = row(talk + i, if i == 0 { 5 } else { 1 });
                let inputs = [("x", x.clone()), ("past", past)];
                let want = run(&mut host, &inputs).unwrap();
                let inputs = [("x", x.into()), ("past", cache)];
                let got = data(&mut device, &inputs, &keeping("keys*")).unwrap();
                assert_eq!(*got[0].tensor().unwrap(), want[0].1, "{backend}, {i}");
                past = want[1].1.clone();
                cache = got[1].clone();
                let at = kept(&cache);
                assert_eq!(at.backend.as_str(), place);
                assert_eq!((at.dtype, &at.shape[..]), (DType::F32, past.shape()));
            }
            assert_eq!(read(&cache), past, "{backend}");
        }
        assert_eq!(host.report().plans.made, device.report().plans.made);
    }
}

/// What stays on a device goes into the next run without a way over the host.
#[test]
fn nothing_crosses() {
    let Some(gpu) = gpu_beside_others() else {
        return;
    };
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let log = calls.clone();
    let on_call = move |call| {
        log.lock().unwrap().push(call);
        Ok(())
    };
    let gpu: Arc<dyn Backend> = Arc::new(StandIn::new(gpu, "watched").on_call(on_call));
    let options = kilim::core::SessionOptions::default();
    let session = kilim::core::Session::new(sums(), vec![gpu], cpu(), options);
    let mut s = pollster::block_on(session).unwrap();
    let mut x = Datum::from(f32s(&[3], &[1.0, 2.0, 3.0]));
    for turn in 0..4 {
        calls.lock().unwrap().clear();
        let inputs = [("x", x.clone()), ("z", x)];
        x = data(&mut s, &inputs, &keeping("*")).unwrap()[1].clone();
        let made = std::mem::take(&mut *calls.lock().unwrap());
        let count = |call: &str| made.iter().filter(|c| **c == call).count();
        let [writes, imports] = if turn == 0 { [2, 0] } else { [0, 2] };
        assert_eq!((count("write"), count("import")), (writes, imports));
        assert_eq!(count("export"), 2, "{made:?}");
    }
    assert_eq!(read(&x), f32s(&[3], &[16.0, 32.0, 48.0]));
}

#[test]
fn a_kept_tensor_outlives_what_made_it() {
    for (backend, _) in backends() {
        let mut s = on(backend, sums());
        let given = f32s(&[4], &[1.0, -2.0, 3.0, 0.5]);
        let inputs = [("x", given.clone().into()), ("z", given.into())];
        let first = data(&mut s, &inputs, &keeping("y*")).unwrap()[0].clone();
        let want = f32s(&[4], &[2.0, -4.0, 6.0, 1.0]);
        // Another run, another plan, and the end of the session.
        let other = [("x", f32s(&[4], &[9.0; 4]).into()), ("z", first.clone())];
        data(&mut s, &other, &keeping("*")).unwrap();
        let longer = f32s(&[900], &[9.0; 900]);
        let longer = [("x", longer.clone().into()), ("z", longer.into())];
        data(&mut s, &longer, &keeping("*")).unwrap();
        s.clear();
        assert_eq!(read(&first), want, "{backend}");
        drop(s);
        assert_eq!(read(&first), want, "{backend}");
        // Every backend takes it, twice.
        for (to, _) in backends() {
            let inputs = [("x", first.clone()), ("z", first.clone())];
            let out = data(&mut on(to, sums()), &inputs, &RunOptions::default()).unwrap();
            let want = f32s(&[4], &[4.0, -8.0, 12.0, 2.0]);
            assert_eq!(out, [want.clone().into(), want.into()], "{backend} {to}");
        }
    }
}

#[test]
fn runs_at_the_same_time_take_and_give_what_is_kept() {
    for (backend, place) in backends() {
        let mut s = on(backend, sums());
        let x: Datum = f32s(&[3], &[1.0, 2.0, 3.0]).into();
        let start = data(&mut s, &[("x", x.clone()), ("z", x)], &keeping("*")).unwrap();
        let given = [("x", start[0].clone()), ("z", start[0].clone())];
        let runs: Vec<_> = (0..6)
            .map(|_| s.run_async(&given, &keeping("*")).unwrap())
            .collect();
        let beside = data(&mut s, &given, &keeping("*")).unwrap();
        for run in runs {
            let out = run.wait().unwrap();
            assert_eq!(kept(&out[1].1).backend.as_str(), place);
            assert_eq!(read(&out[1].1), read(&beside[1]));
            let further = [("x", out[1].1.clone()), ("z", beside[1].clone())];
            let out = data(&mut s, &further, &RunOptions::default()).unwrap();
            let want = f32s(&[3], &[8.0, 16.0, 24.0]);
            assert_eq!(*out[1].tensor().unwrap(), want, "{backend}");
        }
    }
}

#[test]
fn a_run_that_is_dropped_leaves_what_was_kept() {
    for (backend, _) in backends() {
        let mut s = on(backend, sums());
        let x: Datum = f32s(&[2], &[1.0, 2.0]).into();
        let x = data(&mut s, &[("x", x.clone()), ("z", x)], &keeping("*")).unwrap();
        let inputs = [("x", x[0].clone()), ("z", x[1].clone())];
        let options = keeping("y*");
        let mut run = Box::pin(s.run_data(&inputs, &options));
        let _ = run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        drop(run);
        let again = data(&mut s, &inputs, &options).unwrap();
        drop((x, inputs));
        assert_eq!(read(&again[0]), f32s(&[2], &[4.0, 8.0]), "{backend}");
        assert_eq!(*again[1].tensor().unwrap(), f32s(&[2], &[4.0, 8.0]));
    }
}

/// The index may be wrong where nobody reads what it makes: the run that made it says so.
#[test]
fn what_a_device_finds_wrong_is_the_runs_error() {
    for (backend, _) in backends() {
        let mut g = Graph::new("pick");
        let x = g.add_input("x", Fact::fixed(DType::F32, &[3]));
        let i = g.add_input("i", Fact::fixed(DType::I64, &[1]));
        let picked = g.apply("pick", Gather { axis: 0 }, &[x, i]);
        g.outputs.push(picked);
        let mut s = on(backend, g);
        let mut pick = |i| {
            let x = f32s(&[3], &[1.0, 2.0, 3.0]);
            let inputs = [("x", x.into()), ("i", i64s(&[i]).into())];
            data(&mut s, &inputs, &keeping("*"))
        };
        let good = pick(2).unwrap();
        let error = pick(3).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue, "{backend}: {error}");
        assert_eq!(read(&good[0]), f32s(&[1], &[3.0]), "{backend}");
        assert_eq!(read(&pick(0).unwrap()[0]), f32s(&[1], &[1.0]));
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let mut g = Graph::new("outputs");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[2]));
    let text = g.add_input("text", Fact::fixed(DType::String, &[1]));
    let list = g.apply("list", SequenceConstruct, &[x, x]);
    let y = g.apply("y", add(), &[x, x]);
    g.outputs.extend([list, text, y]);
    let mut s = session(g).unwrap();
    let texts = Tensor::from_texts(&[1], vec!["a".into()]).unwrap();
    let inputs = [
        ("x", f32s(&[2], &[1.0, 2.0]).into()),
        ("text", texts.clone().into()),
    ];
    for (pattern, code) in [
        ("list*", ErrorCode::DType),
        ("*", ErrorCode::DType),
        ("z*", ErrorCode::Input),
    ] {
        let error = data(&mut s, &inputs, &keeping(pattern)).unwrap_err();
        assert_eq!(error.code(), code, "{pattern}: {error}");
    }
    let out = data(&mut s, &inputs, &keeping("text")).unwrap();
    assert_eq!(read(&out[1]), texts);
    assert_eq!(out[0].form(), Some(Form::Sequence));
    let out = data(&mut s, &inputs, &keeping("y*")).unwrap();
    let error = out[2].tensor().unwrap_err();
    assert_eq!(error.code(), ErrorCode::State);
    // What is kept is checked like any other tensor.
    let wrong = [("x", inputs[0].1.clone()), ("text", out[2].clone())];
    let error = data(&mut s, &wrong, &RunOptions::default()).unwrap_err();
    assert_eq!(
        (error.code(), error.input()),
        (ErrorCode::DType, Some("text"))
    );
}

#[test]
fn a_layout_of_the_users_and_what_is_kept_exclude_each_other() {
    let mut g = Graph::new("picture");
    let x = g.add_input("x", Fact::fixed(DType::F32, &[1, 3, 2, 2]));
    let y = g.apply("y", add(), &[x, x]);
    g.outputs.push(y);
    let name = g.value(y).name.clone();
    let layout = PortLayout {
        model: DataLayout::ChannelsFirst,
        user: DataLayout::ChannelsLast,
    };
    let mut plain = session(g.clone()).unwrap();
    let numbers: Vec<f32> = (0..12u8).map(f32::from).collect();
    let given: Datum = f32s(&[1, 3, 2, 2], &numbers).into();
    let out = data(&mut plain, &[("x", given)], &keeping("*")).unwrap();
    for port in [name.as_str(), "x"] {
        let mut options = LoadOptions {
            backends: vec![BackendId::from("cpu")],
            ..LoadOptions::default()
        };
        options.layouts.insert(port.to_string(), layout);
        let runtime = Runtime::shared();
        let mut s = pollster::block_on(runtime.session(g.clone(), options)).unwrap();
        let options = match port {
            "x" => RunOptions::default(),
            _ => keeping("*"),
        };
        let error = data(&mut s, &[("x", out[0].clone())], &options).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Unsupported, "{port}: {error}");
    }
}

//! Libraries in Rust that run on a thread of their own, keep tensors, and read and write memory of the session's: the gate of
//! `tests/plugins/gate`, and the device of `examples/plugin-device`.

use kilim::core::backend::{Half, Quantized};
use kilim::core::ops::CustomOperator;
use kilim::{Datum, ErrorCode, Keep, Placement};
use kilim_test_support::material::root;

use crate::*;

/// The folder with the gate of these features, and a file of this test's own that is not there.
fn gate(name: &str, features: &str) -> (PathBuf, PathBuf) {
    let target = format!("plugin-gate-{}", features.replace(',', "-"));
    let folder = built("backend_gate", &target, features);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gate-{name}-{features}"));
    let _ = std::fs::remove_file(&file);
    (folder, file)
}

fn gate_options(folder: &Path, file: &Path, seconds: &str) -> LoadOptions {
    let mut options = options(&["gate", "cpu"], folder);
    options.placement = Placement::Fixed;
    let file = format!("gate:file={}", file.display());
    for setting in [&file[..], &format!("gate:seconds={seconds}")] {
        options.configs.set(&setting.parse().unwrap());
    }
    options
}

/// `y = wait(x) + open(x)`: `Open` runs on `cpu` and makes the file that `Wait` waits for.
fn opened(features: &str, seconds: &str) -> Result<Vec<f32>> {
    let (folder, file) = gate("opened", features);
    let mut options = gate_options(&folder, &file, seconds);
    let open = CustomOperator::new("com.example", "Open", |_, ctx| {
        Ok(vec![ctx.fact(0)?.clone()])
    });
    options.operators.add(open.host(move |_, inputs, outputs| {
        std::fs::write(&file, "").unwrap();
        outputs[0]
            .bytes
            .copy_from_slice(inputs[0].as_ref().unwrap().bytes);
        Ok(())
    }));
    let nodes = [
        node("com.example", "Wait", &["x"], &["w"]),
        node("com.example", "Open", &["x"], &["o"]),
        node("com.example", "Plus", &["w", "o"], &["y"]),
    ];
    let model = model(&nodes, &[("x", &["2"])], &[("y", &["2"])]);
    let mut session = load(&model, options)?;
    let y = run(&mut session, &[1.0, -2.0])?;
    pollster::block_on(session.wait_finish())?;
    Ok(y)
}

#[test]
fn kilim_goes_on_while_a_library_in_rust_computes() {
    assert_eq!(opened("queued", "10").unwrap(), [2.0, -4.0]);
    // Without a thread of its own nobody makes the file while the kernel waits.
    let error = opened("", "0.2").unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device, "{error}");
}

/// `y = wait(x)`, where the file is never there.
fn closed(features: &str) {
    let (folder, file) = gate("closed", features);
    let nodes = [node("com.example", "Wait", &["x"], &["y"])];
    let model = model(&nodes, &[("x", &["2"])], &[("y", &["2"])]);
    let mut session = load(&model, gate_options(&folder, &file, "0.01")).unwrap();
    for _ in 0..2 {
        let error = run(&mut session, &[1.0, 2.0]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Device);
        let said = error.to_string();
        assert!(
            said.contains("nobody went on") && said.contains("`y`"),
            "{said}"
        );
    }
    std::fs::write(&file, "").unwrap();
    assert_eq!(run(&mut session, &[1.0, 2.0]).unwrap(), [1.0, 2.0]);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn what_fails_on_the_thread_of_a_library_fails_its_run() {
    closed("queued");
    closed("host,queued");
}

#[test]
fn tensors_stay_on_the_device_of_a_library_in_rust() {
    let (folder, _) = gate("kept", "queued");
    let nodes = [node("com.example", "Plus", &["x", "x"], &["y"])];
    let model = model(&nodes, &[("x", &["2"])], &[("y", &["2"])]);
    let mut session = load(&model, options(&["gate"], &folder)).unwrap();
    let keep = RunOptions {
        keep: Keep::new(["*"]),
        ..RunOptions::default()
    };
    let mut datum: Datum = Tensor::from_slice(&[2], &[1.0f32, -3.0]).unwrap().into();
    let mut all = Vec::new();
    for _ in 0..3 {
        let out = pollster::block_on(session.run_data(&[("x", datum)], &keep)).unwrap();
        datum = out.into_iter().next().unwrap().1;
        all.push(datum.clone());
    }
    drop(session);
    for (kept, want) in all.iter().zip([2.0, 4.0, 8.0]) {
        let Datum::Device(kept) = kept else {
            panic!("{kept:?} is not on the device")
        };
        assert_eq!(kept.backend, BackendId::from("gate"));
        let read = pollster::block_on(kept.read()).unwrap();
        assert_eq!(read.as_slice::<f32>().unwrap(), [want, -3.0 * want]);
    }
}

/// How many elements of `relu(x)` are not zero is known when the first stage has run.
#[test]
fn tensors_stay_on_the_device_of_a_library_in_rust_between_stages() {
    let (folder, _) = gate("stages", "queued");
    let nodes = [
        node("com.example", "Plus", &["x", "x"], &["p"]),
        node("com.example", "Count", &["p"], &["before"]),
        node("", "Relu", &["x"], &["r"]),
        node("", "NonZero", &["r"], &["n"]),
        Node {
            attributes: &[("to", Value::Int(1))],
            ..node("", "Cast", &["n"], &["f"])
        },
        node("com.example", "Plus", &["p", "f"], &["y"]),
        node("com.example", "Count", &["y"], &["after"]),
    ];
    let outputs: [(&str, &[&str]); 3] = [("y", &["2"]), ("before", &["1"]), ("after", &["1"])];
    let model = model(&nodes, &[("x", &["2"])], &outputs);
    let mut options = options(&["gate", "cpu"], &folder);
    options.placement = Placement::Fixed;
    let mut session = load(&model, options).unwrap();
    let x = Tensor::from_slice(&[2], &[3.0f32, 5.0]).unwrap();
    let mut between = Vec::new();
    for _ in 0..3 {
        let (feed, usual) = ([("x", x.clone())], RunOptions::default());
        let out = pollster::block_on(session.run(&feed, &usual)).unwrap();
        assert_eq!(out[0].1.as_slice::<f32>().unwrap(), [6.0, 11.0]);
        let [before, after] = [1, 2].map(|i: usize| out[i].1.as_slice::<i64>().unwrap()[0]);
        between.push(after - before);
    }
    // The first run makes the second stage, which may take an arena. What is kept is one tensor in each run.
    assert_eq!(between[1..], [1, 1], "{between:?}");
}

#[test]
fn a_library_in_rust_reads_and_writes_in_place() {
    let nodes = [node("com.example", "Place", &["x"], &["y"])];
    let model = model(&nodes, &[("x", &["4"])], &[("y", &["2"])]);
    for (features, in_place) in [("host,queued", true), ("queued", false)] {
        let (folder, _) = gate("place", features);
        let mut session = load(&model, options(&["gate"], &folder)).unwrap();
        let x = Tensor::from_slice(&[4], &[1.0f32; 4]).unwrap();
        for _ in 0..2 {
            let feed = [("x", x.clone())];
            let usual = RunOptions::default();
            let out = pollster::block_on(session.run(&feed, &usual)).unwrap();
            let places = out[0].1.as_slice::<i64>().unwrap();
            let own = [&x, &out[0].1].map(|t| t.read().unwrap().as_ptr().addr() as i64);
            assert_eq!(places[0] == own[0], in_place, "{features}");
            assert_eq!(places[1] == own[1], in_place, "{features}");
        }
    }
}

#[test]
fn a_library_in_rust_offers_its_config_and_is_told_the_users() {
    let nodes = [node("com.example", "Asked", &["x"], &["y"])];
    let model = model(&nodes, &[("x", &["1"])], &[("y", &["4"])]);
    let asked = |features: &str, settings: &[&str]| {
        let (folder, _) = gate("config", features);
        let mut options = options(&["gate"], &folder);
        for setting in settings {
            options.configs.set(&setting.parse().unwrap());
        }
        let mut session = load(&model, options).unwrap();
        let x = Tensor::from_slice(&[1], &[1.0f32]).unwrap();
        let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
        let config = session.backends()[0].describe().config.clone();
        let offered = (config.dynamic_tensors, config.f16, config.quantized);
        (offered, out[0].1.as_slice::<i64>().unwrap().to_vec())
    };
    let usual = asked("", &[]);
    let config = (true, Half::Off, Quantized::Exact);
    assert_eq!(usual, (config, vec![1, 0, 0, 0]));
    let (offered, heard) = asked("config", &["gate:quantized=native", "gate:timers=on"]);
    assert_eq!(offered, (false, Half::Chosen, Quantized::Native));
    assert_eq!(heard, [0, 1, 1, 1]);
    let (_, heard) = asked("config", &["gate:f16=off", "gate:quantized=exact"]);
    assert_eq!(heard, [0, 0, 0, 0]);
}

fn tile() -> PathBuf {
    built("backend_tile", "plugin-device", "")
}

#[test]
fn a_device_from_scratch_runs_the_layers_of_a_model() {
    let digits = std::fs::read(root().join("assets/digits.onnx")).unwrap();
    let open = |backends: &[&str]| {
        let mut options = options(backends, &tile());
        options.placement = Placement::Fixed;
        options.dims.insert("N".to_string(), 3);
        load(&digits, options).unwrap()
    };
    let [mut on_tile, mut on_cpu] = [open(&["tile", "cpu"]), open(&["cpu"])];
    let nodes = on_tile.report().nodes;
    let heavy = nodes
        .iter()
        .filter(|n| ["Conv", "Gemm"].contains(&&n.op[..]));
    let heavy: Vec<_> = heavy.map(|n| n.backend.as_str()).collect();
    assert_eq!(heavy, ["tile"; 5]);
    let softmax = nodes.iter().find(|n| n.op == "Softmax").unwrap();
    assert_eq!(softmax.refusals[0].reason, "only Conv and Gemm");
    let pixels: Vec<f32> = (0..3 * 28 * 28)
        .map(|i| (i * 37 % 61) as f32 / 61.0)
        .collect();
    let image = Tensor::from_slice(&[3, 1, 28, 28], &pixels).unwrap();
    let [got, want] = [&mut on_tile, &mut on_cpu].map(|session| {
        let feed = [("image", image.clone())];
        let out = pollster::block_on(session.run(&feed, &RunOptions::default())).unwrap();
        out[0].1.as_slice::<f32>().unwrap().to_vec()
    });
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(&want) {
        assert!((got - want).abs() <= 1e-5, "{got} is not {want}");
    }
}

#[test]
fn what_the_memory_of_a_device_does_not_hold_goes_elsewhere() {
    let digits = std::fs::read(root().join("assets/digits.onnx")).unwrap();
    let runtime = Runtime::default();
    let open = |images: usize| {
        let mut options = options(&["tile", "cpu"], &tile());
        options.placement = Placement::Fixed;
        options.dims.insert("N".to_string(), images);
        pollster::block_on(runtime.load(&digits[..], options)).unwrap()
    };
    let share = |session: &Session| {
        let nodes = session.report().nodes;
        nodes.iter().filter(|n| n.backend == "tile").count()
    };
    // The first convolution of so many images gives more bytes than the device has.
    assert!(share(&open(1000)) < 5);
    // Each fits, but not all at the same time; the memory of a session that is gone is free again.
    let all: Vec<Session> = (0..5).map(|_| open(100)).collect();
    assert_eq!(share(&all[0]), 5);
    assert!(share(&all[4]) < 5);
    drop(all);
    assert_eq!(share(&open(100)), 5);
}

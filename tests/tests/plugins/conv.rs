//! The device that convolves, in C (`examples/plugin-c/conv`) and in Rust (`tests/plugins/conv`): all that a library can do with the
//! convolutions of a model.

use std::sync::Arc;

use kilim::core::schedule::OverlappedScheduler;
use kilim::{Datum, ErrorCode, Keep, MemoryMode, Placement};
use kilim_test_support::material::models;
use kilim_tests::onnx::{Inline, model_holding};

use crate::*;

/// How the library is made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Made {
    InC,
    InRust,
}

/// The library for one test, and the file that it writes.
struct Device {
    made: Made,
    folder: PathBuf,
    log: PathBuf,
}

impl Device {
    /// The device in C, and then in Rust.
    fn both(name: &str) -> impl Iterator<Item = Device> {
        Device::both_with(name, false)
    }

    /// The device in C, and then in Rust, that wants convolutions of 1x1 on channels-last data, or does not.
    fn both_with(name: &str, pointwise_last: bool) -> impl Iterator<Item = Device> {
        let both = [Made::InC, Made::InRust].into_iter();
        both.map(move |made| Device::new(made, name, pointwise_last))
    }

    fn new(made: Made, name: &str, pointwise_last: bool) -> Device {
        let own = folder(&format!("conv-{name}-{made:?}"));
        let log = own.join("log");
        let _ = std::fs::remove_file(&log);
        let folder = match made {
            Made::InC => {
                let mut defines = vec![format!("LOG=\"{}\"", log.display())];
                defines.extend(pointwise_last.then(|| "POINTWISE_LAST".to_string()));
                compile("examples/plugin-c/conv/conv.c", &own, "conv", &defines);
                own
            }
            Made::InRust => match pointwise_last {
                true => built("backend_conv", "plugin-conv-last", "pointwise-last"),
                false => built("backend_conv", "plugin-conv", ""),
            },
        };
        // What fails is told below this line.
        println!("the device {made:?}");
        Device { made, folder, log }
    }

    fn options(&self) -> LoadOptions {
        self.options_with(&["conv", "cpu"])
    }

    /// What loads a model on these backends, one after another.
    fn options_with(&self, backends: &[&str]) -> LoadOptions {
        let mut options = options(backends, &self.folder);
        options.placement = Placement::Fixed;
        if self.made == Made::InRust {
            let log = format!("conv:log={}", self.log.display());
            options.configs.set(&log.parse().unwrap());
        }
        options
    }

    /// The calls since this was asked last.
    fn told(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let _ = std::fs::remove_file(&self.log);
        text.lines()
            .map(|line| line.trim_end().to_string())
            .collect()
    }
}

/// Numbers between -1 and 1 that repeat late.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 37 + seed * 11) % 61) as f32 / 30.0 - 1.0;
    (0..count).map(number).collect()
}

/// Output channels, input channels and kernel of the three convolutions: `y = conv(sin(conv(relu(conv(x)))))`.
const SIZES: [[usize; 3]; 3] = [[4, 3, 3], [5, 4, 1], [2, 5, 3]];

fn network() -> Vec<u8> {
    let raw = |seed: usize, count: usize| -> Vec<u8> {
        let numbers = numbers(count, seed).into_iter();
        numbers.flat_map(f32::to_le_bytes).collect()
    };
    let weights: Vec<_> = SIZES
        .iter()
        .enumerate()
        .map(|(i, &[m, c, k])| (format!("w{i}"), [m, c, k, k], raw(i, m * c * k * k)))
        .collect();
    let biases: Vec<_> = SIZES
        .iter()
        .enumerate()
        .map(|(i, &[m, ..])| (format!("b{i}"), [m], raw(7 + i, m)))
        .collect();
    let mut held = Vec::new();
    for (name, dims, elements) in &weights {
        held.push(Inline {
            name,
            dims,
            kind: 1,
            elements,
        });
    }
    for (name, dims, elements) in &biases {
        held.push(Inline {
            name,
            dims,
            kind: 1,
            elements,
        });
    }
    let nodes = [
        node("", "Conv", &["x", "w0", "b0"], &["c0"]),
        node("", "Relu", &["c0"], &["r"]),
        node("", "Conv", &["r", "w1", "b1"], &["c1"]),
        node("", "Sin", &["c1"], &["s"]),
        node("", "Conv", &["s", "w2", "b2"], &["y"]),
    ];
    let open = ["1", "3", "h", "w"];
    model_holding(
        &nodes,
        &[("x", &open)],
        &[("y", &["1", "2", "p", "q"])],
        &held,
    )
}

/// A convolution of an image without padding, in float64, and what becomes of each element.
fn convolved(x: &[f64], [h, w]: [usize; 2], i: usize, then: impl Fn(f64) -> f64) -> Vec<f64> {
    let [m, c, k] = SIZES[i];
    let (weights, bias) = (numbers(m * c * k * k, i), numbers(m, 7 + i));
    let mut y = Vec::new();
    for o in 0..m {
        for at in 0..(h + 1 - k) * (w + 1 - k) {
            let (oy, ox) = (at / (w + 1 - k), at % (w + 1 - k));
            let sum: f64 = (0..c * k * k)
                .map(|t| {
                    let (ch, ky, kx) = (t / (k * k), t / k % k, t % k);
                    x[(ch * h + oy + ky) * w + ox + kx] * f64::from(weights[o * c * k * k + t])
                })
                .sum();
            y.push(then(sum + f64::from(bias[o])));
        }
    }
    y
}

/// The network's input of a size, and its output in float64.
fn case([h, w]: [usize; 2]) -> (Tensor, Vec<f64>) {
    let x = numbers(3 * h * w, 3);
    let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    let first = convolved(&wide, [h, w], 0, |x| x.max(0.0));
    let second = convolved(&first, [h - 2, w - 2], 1, f64::sin);
    let y = convolved(&second, [h - 2, w - 2], 2, |x| x);
    (Tensor::from_slice(&[1, 3, h, w], &x).unwrap(), y)
}

fn near(found: &Tensor, want: &[f64]) {
    let found = found.as_slice::<f32>().unwrap();
    assert_eq!(found.len(), want.len());
    for (found, want) in found.iter().zip(want) {
        assert!(
            (f64::from(*found) - want).abs() < 1e-4,
            "{found} is not {want}"
        );
    }
}

fn check(session: &mut Session, size: [usize; 2]) {
    let (x, want) = case(size);
    let out = pollster::block_on(session.run(&[("x", x)], &RunOptions::default())).unwrap();
    near(&out[0].1, &want);
}

fn places(session: &Session) -> Vec<(String, String)> {
    let nodes = session.report().nodes.into_iter();
    nodes.map(|n| (n.op, n.backend)).collect()
}

#[test]
fn a_library_is_told_the_names_of_nodes_and_tensors() {
    for device in Device::both("names") {
        device.told();
        let mut session = load(&network(), device.options()).unwrap();
        check(&mut session, [7, 6]);
        let told = device.told();
        for line in ["supports c1: r -> c1", "supports y: s -> y"] {
            assert!(told.iter().any(|t| t == line), "{line} in {told:?}");
        }
    }
}

#[test]
fn a_library_takes_two_convolutions_as_one_and_other_shapes() {
    for device in Device::both("pairs") {
        let mut session = load(&network(), device.options()).unwrap();
        for size in [[7, 6], [9, 11], [5, 5]] {
            check(&mut session, size);
        }
        let at = |op: &str, backend: &str| (op.to_string(), backend.to_string());
        let want = [at("ConvPair", "conv"), at("Sin", "cpu"), at("Conv", "conv")];
        assert_eq!(places(&session), want);
    }
}

#[test]
fn a_library_says_the_layout_of_each_node() {
    for device in Device::both_with("layouts", true) {
        let mut session = load(&network(), device.options()).unwrap();
        check(&mut session, [7, 6]);
        let turned: Vec<_> = places(&session).into_iter().map(|(op, _)| op).collect();
        // The convolution of 1x1 alone is on channels-last data, and the library takes it so.
        let own = places(&session).into_iter().filter(|(_, at)| at == "conv");
        assert!(own.map(|(op, _)| op).eq(["Conv"; 3]));
        assert!(
            turned.iter().filter(|op| *op == "Transpose").count() >= 2,
            "{turned:?}"
        );
        let first = Device::new(device.made, "layout", false);
        let mut session = load(&network(), first.options()).unwrap();
        check(&mut session, [7, 6]);
        assert!(places(&session).iter().all(|(op, _)| op != "Transpose"));
    }
}

#[test]
fn the_algorithms_of_a_library_are_measured() {
    for device in Device::both("tuned") {
        let mut options = device.options();
        options.tune = true;
        let runtime = Runtime::default();
        let mut session = pollster::block_on(runtime.load(&network()[..], options)).unwrap();
        check(&mut session, [40, 50]);
        let report = session.report();
        let own: Vec<_> = report
            .tuning
            .iter()
            .filter(|t| t.backend == "conv")
            .collect();
        assert_eq!(own.len(), 2, "a pair and a convolution: {own:?}");
        for class in own {
            let names: Vec<_> = class.times.iter().map(|t| t.algorithm.as_str()).collect();
            assert_eq!(names, ["points", "rows"]);
            assert!(names.contains(&class.algorithm.as_str()));
        }
        // What was measured is in the runtime's cache.
        let cache = runtime.save_cache();
        assert!(cache.windows(8).any(|w| w == b"ConvPair"));
    }
}

#[test]
fn a_library_orders_the_tasks_of_a_stage() {
    for device in Device::both("order") {
        let mut session = load(&network(), device.options()).unwrap();
        device.told();
        check(&mut session, [7, 6]);
        assert!(device.told().contains(&"schedule".to_string()));
        let mut options = device.options();
        options.scheduler = Arc::new(OverlappedScheduler::default());
        let mut session = load(&network(), options).unwrap();
        device.told();
        check(&mut session, [7, 6]);
        assert!(
            !device.told().contains(&"schedule".to_string()),
            "the user's goes first"
        );
    }
}

#[test]
fn runs_at_the_same_time_share_a_librarys_weights() {
    for device in Device::both("replicas") {
        let mut options = device.options();
        options.scheduler = Arc::new(OverlappedScheduler::with_runs(2));
        let mut session = load(&network(), options).unwrap();
        let cases: Vec<_> = [[7, 6], [7, 6], [8, 9]].into_iter().map(case).collect();
        check(&mut session, [7, 6]);
        device.told();
        let usual = RunOptions::default();
        let runs: Vec<_> = cases
            .iter()
            .map(|(x, _)| {
                session
                    .run_async(&[("x", x.clone().into())], &usual)
                    .unwrap()
            })
            .collect();
        for (run, (_, want)) in runs.into_iter().zip(&cases) {
            let out = run.wait().unwrap();
            let Datum::Tensor(y) = &out[0].1 else {
                panic!("{:?} is no tensor", out[0].1)
            };
            near(y, want);
        }
        let told = device.told();
        let count = |call: &str| told.iter().filter(|t| *t == call).count();
        assert_eq!(
            (count("replica"), count("create_context")),
            (2, 0),
            "{told:?}"
        );
        assert!(count("replicate") > 0, "{told:?}");
        drop(session);
        let released = "release_context";
        assert_eq!(device.told(), [released, released, released, "destroy"]);
    }
}

#[test]
fn weights_go_that_a_library_has_in_a_form_of_its_own() {
    for device in Device::both("packed") {
        let mut options = device.options();
        options.context.memory = MemoryMode::Limit;
        options.keep_weights = false;
        options.dims = [("h".to_string(), 7), ("w".to_string(), 6)]
            .into_iter()
            .collect();
        let mut session = load(&network(), options).unwrap();
        let told = device.told();
        assert!(told.contains(&"is_packed".to_string()), "{told:?}");
        let own = session
            .report()
            .backends
            .into_iter()
            .find(|b| b.id == "conv");
        assert_eq!(own.unwrap().constant_bytes, 0, "Kilim has none of them");
        check(&mut session, [7, 6]);
    }
}

#[test]
fn a_library_keeps_tensors_and_comes_back() {
    for device in Device::both("lost") {
        let mut options = device.options();
        // The third run of a part on the device: the first of the second run.
        options.configs.set(&"conv:lose=2".parse().unwrap());
        let mut session = load(&network(), options).unwrap();
        check(&mut session, [7, 6]);
        let (x, want) = case([7, 6]);
        let run = |session: &mut Session, options: &RunOptions| {
            let feed = [("x", x.clone().into())];
            pollster::block_on(session.run_data(&feed, options))
        };
        let lost = run(&mut session, &RunOptions::default()).unwrap_err();
        assert_eq!(lost.code(), ErrorCode::Device, "{lost}");
        device.told();
        let keep = RunOptions {
            keep: Keep::new(["*"]),
            ..RunOptions::default()
        };
        let out = run(&mut session, &keep).unwrap();
        let told = device.told();
        assert!(told.contains(&"reopen".to_string()), "{told:?}");
        assert!(told.contains(&"keep".to_string()), "{told:?}");
        let Datum::Device(kept) = &out[0].1 else {
            panic!("{:?} is not on the device", out[0].1)
        };
        near(&pollster::block_on(kept.read()).unwrap(), &want);
    }
}

#[test]
fn a_library_takes_the_convolutions_of_a_real_model() {
    let Some(models) = models() else { return };
    let file = models.join("ultraface-rfb-320/version-RFB-320_simplified.onnx");
    let bytes = std::fs::read(file).unwrap();
    for device in Device::both("ultraface") {
        let mut backends = vec!["conv"];
        let gpu = kilim_tests::machine::gpu_beside_others().is_some();
        backends.extend(gpu.then_some("wgpu"));
        backends.push("cpu");
        let mut session = load(&bytes, device.options_with(&backends)).unwrap();
        let name = session.inputs()[0].name.clone();
        let x = Tensor::from_slice(&[1, 3, 240, 320], &numbers(3 * 240 * 320, 1)).unwrap();
        let outputs = |session: &mut Session| {
            let feed = [(name.as_str(), x.clone())];
            pollster::block_on(session.run(&feed, &RunOptions::default())).unwrap()
        };
        let found = outputs(&mut session);
        let mut cpu = load(&bytes, options(&["cpu"], &device.folder)).unwrap();
        for ((name, found), (_, want)) in found.iter().zip(&outputs(&mut cpu)) {
            let (found, want) = (
                found.as_slice::<f32>().unwrap(),
                want.as_slice::<f32>().unwrap(),
            );
            let largest = want.iter().fold(0f32, |m, x| m.max(x.abs()));
            for (found, want) in found.iter().zip(want) {
                assert!(
                    (found - want).abs() <= 1e-4 * largest,
                    "{name}: {found} is not {want}"
                );
            }
        }
        let places = places(&session);
        let on = |op: &str, id: &str| places.iter().filter(|(o, b)| o == op && b == id).count();
        let taken = 2 * on("ConvPair", "conv") + on("Conv", "conv");
        assert_eq!((taken, on("Transpose", "conv")), (52, 0), "{places:?}");
        assert!(on("ConvPair", "conv") > 0, "{places:?}");
        // The library times its nodes.
        let feed = [(name.as_str(), x.clone().into())];
        let profiled = pollster::block_on(session.profile(&feed, &RunOptions::default()));
        let times = profiled.unwrap().1;
        assert!(times.iter().any(|t| t.op == "ConvPair" && t.seconds > 0.0));
    }
}

//! What was added to the table after planned memory, in the library of `tests/plugins/grown.c`, which says what is called.

use std::sync::Arc;

use kilim::core::backend::{DataLayout, Half, Quantized};
use kilim::core::schedule::OverlappedScheduler;
use kilim::{CacheUse, Datum, ErrorCode, Keep, MemoryMode, Placement};

use crate::*;

/// The library, compiled for one test, and the file that it writes.
struct Grown {
    folder: PathBuf,
    log: PathBuf,
}

impl Grown {
    fn new(name: &str, defines: &[&str]) -> Grown {
        let folder = folder(&format!("grown-{name}"));
        let log = folder.join("log");
        let _ = std::fs::remove_file(&log);
        let mut all: Vec<String> = defines.iter().map(ToString::to_string).collect();
        all.push(format!("LOG=\"{}\"", log.display()));
        for (macro_name, value) in [("TIME", "0.25"), ("INITIAL", "\"4\"")] {
            if !defines.iter().any(|d| d.starts_with(macro_name)) {
                all.push(format!("{macro_name}={value}"));
            }
        }
        compile("tests/plugins/grown.c", &folder, "grown", &all);
        Grown { folder, log }
    }

    fn options(&self, settings: &[&str]) -> LoadOptions {
        let mut options = options(&["grown"], &self.folder);
        for setting in settings {
            options.configs.set(&setting.parse().unwrap());
        }
        options
    }

    fn load(&self, settings: &[&str]) -> Result<Session> {
        load(&relu(), self.options(settings))
    }

    /// The calls since this was asked last. Those of the trial, which ends with `destroy`, are left out.
    fn told(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let _ = std::fs::remove_file(&self.log);
        let lines = text.lines().map(|line| line.trim_end().to_string());
        lines.filter(|line| line != "destroy").collect()
    }
}

fn relu() -> Vec<u8> {
    let nodes = [node("", "Relu", &["x"], &["y"])];
    model(&nodes, &[("x", &["2"])], &[("y", &["2"])])
}

#[test]
fn a_library_hears_options_of_its_own_and_the_config() {
    let grown = Grown::new("options", &[]);
    let mut session = grown.load(&[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    let usual = "create_context sparing=0 layout=2 dynamic=1 half=1 quantized=0 timers=0 \
                 cores=4 firmware= mode=fast";
    assert_eq!(grown.told()[0], usual);
    let settings = [
        "grown:layout=NCHW",
        "grown:dynamic=off",
        "grown:f16=off",
        "grown:quantized=native",
        "grown:timers=on",
        "grown:cores=-2",
        "grown:mode=exact",
        "grown:firmware=a=b c",
    ];
    let mut options = grown.options(&settings);
    options.context.memory = MemoryMode::Limit;
    load(&relu(), options).unwrap();
    let asked = "create_context sparing=1 layout=1 dynamic=0 half=0 quantized=1 timers=1 \
                 cores=-2 firmware=a=b c mode=exact";
    assert_eq!(grown.told()[0], asked);
}

#[test]
fn options_that_a_library_does_not_list_are_refused() {
    let grown = Grown::new("refused", &[]);
    let refused = |setting: &str| {
        let error = grown.load(&[setting]).err().expect(setting);
        assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
        error
    };
    let unknown = refused("grown:core=2");
    for known in ["cores", "mode", "firmware", "layout"] {
        assert!(unknown.expected().unwrap().contains(known), "{unknown}");
    }
    assert_eq!(refused("grown:cores=two").expected(), Some("INTEGER"));
    assert_eq!(refused("grown:mode=slow").expected(), Some("fast|exact"));
    let wrong = Grown::new("wrong-option", &["INITIAL=\"four\""]);
    let error = wrong.load(&[]).err().unwrap();
    assert_eq!(error.code(), ErrorCode::NoBackend, "{error}");
}

#[test]
fn a_library_offers_layouts_and_precision() {
    let grown = Grown::new("config", &[]);
    let session = grown.load(&[]).unwrap();
    let config = &session.backends()[0].describe().config;
    let layouts = [DataLayout::ChannelsLast, DataLayout::ChannelsFirst];
    assert_eq!(config.layouts, layouts);
    assert_eq!(config.f16, Half::Chosen);
    assert_eq!(config.quantized, Quantized::Native);
    assert!(config.timers && config.dynamic_tensors);
}

#[test]
fn a_table_of_before_the_additions_runs_without_them() {
    let short = Grown::new("short", &["SHORT"]);
    let mut session = short.load(&[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    assert_eq!(short.told(), ["create_context", "write", "run", "read"]);
    let config = &session.backends()[0].describe().config;
    assert_eq!(config.layouts, [DataLayout::ChannelsFirst]);
    assert!(!config.timers);
    let timed = short.load(&["grown:timers=on"]).err().unwrap();
    assert_eq!(timed.code(), ErrorCode::Unsupported);
    let own = short.load(&["grown:cores=2"]).err().unwrap();
    assert_eq!(own.code(), ErrorCode::InvalidValue);
}

#[test]
fn a_table_of_before_replicas_is_not_asked_for_them() {
    for (name, defines, asked) in [
        ("replicas", &[][..], true),
        (
            "no-replicas",
            &["SIZE=offsetof(KilimBackend,node_layout)"][..],
            false,
        ),
    ] {
        let grown = Grown::new(name, defines);
        let mut options = grown.options(&[]);
        // Whether raw constants can go depends on replicas.
        options.context.memory = MemoryMode::Limit;
        let mut session = load(&relu(), options).unwrap();
        assert_eq!(
            grown.told().contains(&"replica".to_string()),
            asked,
            "{name}"
        );
        assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    }
}

#[test]
fn the_nodes_of_a_library_are_timed() {
    let grown = Grown::new("timers", &[]);
    let mut session = grown.load(&[]).unwrap();
    let x = Tensor::from_slice(&[2], &[-1.0f32, 1.0]).unwrap();
    let (feed, usual) = ([("x", x.into())], RunOptions::default());
    let (_, times) = pollster::block_on(session.profile(&feed, &usual)).unwrap();
    assert_eq!(times.len(), 1);
    assert_eq!((times[0].op.as_str(), times[0].seconds), ("Relu", 0.25));
    let mut session = grown.load(&["grown:timers=on"]).unwrap();
    run(&mut session, &[-1.0, 1.0]).unwrap();
    assert_eq!(session.times().len(), 1);

    let wrong = Grown::new("wrong-times", &["TIME=-1.0"]);
    let mut session = wrong.load(&["grown:timers=on"]).unwrap();
    let error = run(&mut session, &[-1.0, 1.0]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Device);
}

#[test]
fn the_work_of_a_library_is_started_and_waited_for() {
    let grown = Grown::new("waiting", &[]);
    let mut options = grown.options(&[]);
    options.backends.push("cpu".into());
    options.placement = Placement::Fixed;
    options.scheduler = Arc::new(OverlappedScheduler::default());
    let nodes = [
        node("", "Relu", &["x"], &["r"]),
        node("", "Exp", &["x"], &["e"]),
        node("", "Add", &["r", "e"], &["y"]),
    ];
    let model = model(&nodes, &[("x", &["2"])], &[("y", &["2"])]);
    let mut session = load(&model, options).unwrap();
    assert_eq!(run(&mut session, &[0.0, 0.0]).unwrap(), [1.0, 1.0]);
    assert!(grown.told().contains(&"submit".to_string()));
    pollster::block_on(session.wait_finish()).unwrap();
    assert_eq!(grown.told(), ["wait tries", "wait blocks"]);
    pollster::block_on(session.wait_finish()).unwrap();
    assert_eq!(grown.told(), ["wait tries"], "there is nothing to wait for");
}

#[test]
fn tensors_stay_on_a_librarys_device() {
    let grown = Grown::new("kept", &[]);
    let mut session = grown.load(&[]).unwrap();
    let mut other = {
        let options = grown.options(&[]);
        let mut other = load(&relu(), options).unwrap();
        run(&mut other, &[1.0, 1.0]).unwrap();
        other
    };
    grown.told();
    let keep = RunOptions {
        keep: Keep::new(["*"]),
        ..RunOptions::default()
    };
    let x = Tensor::from_slice(&[2], &[-3.0f32, 3.0]).unwrap();
    let mut run = |x: Datum| {
        let out = pollster::block_on(session.run_data(&[("x", x)], &keep)).unwrap();
        out.into_iter().next().unwrap().1
    };
    let first = run(x.into());
    assert_eq!(grown.told(), ["write", "run", "keep"]);
    let second = run(first.clone());
    assert_eq!(grown.told(), ["use", "run", "keep"]);
    // The other session's library is another one: the elements go over the host.
    let feed = [("x", second.clone())];
    let out = pollster::block_on(other.run_data(&feed, &RunOptions::default()));
    assert!(out.is_ok());
    assert_eq!(grown.told(), ["read_kept", "write", "run", "read"]);
    let Datum::Device(kept) = &second else {
        panic!("{second:?} is not on the device")
    };
    let read = pollster::block_on(kept.read()).unwrap();
    assert_eq!(read.as_slice::<f32>().unwrap(), [0.0, 3.0]);
    grown.told();
    drop(session);
    drop((first, second, feed));
    let gone = ["release_context", "release_kept", "release_kept"];
    assert_eq!(grown.told(), gone, "kept tensors outlive their session");
}

#[test]
fn what_a_library_learnt_goes_to_another_process() {
    let grown = Grown::new("cache", &[]);
    let runtime = Runtime::default();
    pollster::block_on(runtime.load(&relu()[..], grown.options(&[]))).unwrap();
    let cache = runtime.save_cache();
    assert!(cache.windows(7).any(|w| w == b"nothing"));
    let other = Runtime::default();
    pollster::block_on(other.load(&relu()[..], grown.options(&[]))).unwrap();
    grown.told();
    // SAFETY: the bytes are those that were saved.
    let used = pollster::block_on(unsafe { other.load_cache(&cache) }).unwrap();
    assert!(matches!(used, CacheUse::Taken), "{used:?}");
    assert_eq!(grown.told(), ["load_cache nothing"]);
}

#[test]
fn a_library_opens_a_lost_device_again() {
    let grown = Grown::new("lost", &[]);
    let mut session = grown.load(&[]).unwrap();
    assert_eq!(run(&mut session, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    grown.told();
    std::fs::write(grown.log.with_extension("lost"), "").unwrap();
    assert_eq!(run(&mut session, &[-2.0, 2.0]).unwrap(), [0.0, 2.0]);
    let told = grown.told();
    let at = |call: &str| told.iter().position(|t| t.starts_with(call));
    assert!(
        at("reopen").is_some() && at("reopen") < at("create_context"),
        "{told:?}"
    );
    assert!(at("release_context").is_some(), "{told:?}");
}

#[test]
fn functions_that_belong_together_are_there_together() {
    for missing in [
        "set_timing",
        "times",
        "submit",
        "wait",
        "keep",
        "use",
        "read_kept",
        "release_kept",
        "save_cache",
        "load_cache",
        "is_lost",
        "reopen",
        "replica",
        "replicate",
    ] {
        let grown = Grown::new(&format!("no-{missing}"), &[&format!("MISSING={missing}")]);
        let error = grown.load(&[]).err().expect(missing);
        assert_eq!(error.code(), ErrorCode::NoBackend);
        let what = format!("without `{missing}`");
        assert!(error.message().contains(&what), "{error}");
    }
}

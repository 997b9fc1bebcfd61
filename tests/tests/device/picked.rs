//! The backends of sessions that name none.

use crate::*;

type Opened<'a> = LocalFuture<'a, Result<Arc<dyn Backend>>>;

/// A GPU that the CPU plays.
fn played(_: &DeviceOptions) -> Opened<'_> {
    let mut bare = Bare::new();
    bare.description.id = BackendId::new("played");
    bare.description.device = "a processor".to_string();
    bare.description.software = true;
    Box::pin(async { Ok(Arc::new(bare) as Arc<dyn Backend>) })
}

/// A device that is not there.
fn missing(_: &DeviceOptions) -> Opened<'_> {
    Box::pin(async { Err(kilim::Error::new(ErrorCode::Device, "there is no device")) })
}

fn processor(_: &DeviceOptions) -> Opened<'_> {
    Box::pin(async { Ok(cpu()) })
}

const ALL: [&str; 3] = ["played", "missing", "cpu"];

/// A runtime with these backends.
fn runtime(ids: &[&'static str]) -> Runtime {
    let mut registry = BackendRegistry::new();
    for &id in ids {
        match id {
            "played" => registry.register(BackendId::new(id), played),
            "missing" => registry.register(BackendId::new(id), missing),
            _ => registry.register(BackendId::new(id), processor),
        }
    }
    Runtime::new(registry)
}

fn ids(backends: &[BackendId]) -> Vec<&str> {
    backends.iter().map(BackendId::as_str).collect()
}

#[test]
fn software_and_missing_devices_are_left_out() {
    let runtime = runtime(&ALL);
    let picked = pollster::block_on(runtime.pick(&LoadOptions::default())).unwrap();
    assert_eq!(ids(&picked.backends), ["cpu"]);
    let [(played, slow), (missing, none)] = &picked.skipped[..] else {
        panic!("{picked:?}");
    };
    assert_eq!((played.as_str(), missing.as_str()), ("played", "missing"));
    assert!(slow.starts_with("a processor is no GPU"), "{slow}");
    assert!(none.contains("there is no device"), "{none}");

    let session = runtime.session(graph(), LoadOptions::default());
    let mut session = pollster::block_on(session).unwrap();
    run(&mut session, 10).unwrap();
    assert!(session.report().nodes.iter().all(|n| n.backend == "cpu"));
}

#[test]
fn who_is_named_is_taken() {
    let runtime = runtime(&ALL);
    let named = options(&["played", "cpu"], Sharing::Own);
    let mut session = pollster::block_on(runtime.session(graph(), named)).unwrap();
    run(&mut session, 10).unwrap();
    assert!(session.report().nodes.iter().all(|n| n.backend == "played"));

    let pinned = |pin: &str| {
        let mut options = options(&[], Sharing::Own);
        options.pins = vec![pin.parse().expect("a pin")];
        pollster::block_on(runtime.pick(&options))
    };
    let picked = pinned("op:Exp=played").unwrap();
    assert_eq!(ids(&picked.backends), ["played", "cpu"]);
    let failed = pinned("op:Exp=missing").expect_err("it is not there");
    assert_eq!(failed.code(), ErrorCode::Device);
}

#[test]
fn software_is_better_than_nothing() {
    let picked = |ids: &[&'static str]| {
        let runtime = runtime(ids);
        pollster::block_on(runtime.pick(&LoadOptions::default()))
    };
    let slow = picked(&["played", "missing"]).unwrap();
    assert_eq!(ids(&slow.backends), ["played"]);
    let [(left, _)] = &slow.skipped[..] else {
        panic!("{slow:?}");
    };
    assert_eq!(left.as_str(), "missing");
    let failed = picked(&["missing"]).expect_err("no backend has a device");
    assert_eq!(failed.code(), ErrorCode::Device);
}

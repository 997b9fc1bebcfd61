//! What a runtime has learnt, saved and given back.

#![cfg(not(target_arch = "wasm32"))]

use kilim::core::ops::{Unary, UnaryKind};
use kilim::{BackendId, CacheUse, DType, ErrorCode, Fact, Graph, LoadOptions, Runtime, Session};
use kilim_test_support::skip;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn load(runtime: &Runtime, cache: &[u8]) -> kilim::Result<CacheUse> {
    // SAFETY: what compiled pipelines a driver sees come from `save_cache`; none are written here.
    pollster::block_on(unsafe { runtime.load_cache(cache) })
}

/// Why a cache is not used.
#[track_caller]
fn ignored(runtime: &Runtime, cache: &[u8]) -> kilim::Error {
    match load(runtime, cache).unwrap() {
        CacheUse::Ignored(why) => why,
        CacheUse::Taken => panic!("it was taken"),
    }
}

/// A cache of a version of Kilim with what was tuned on one device.
fn written(version: &str, backend: &str, device: &str) -> Vec<u8> {
    with_pipelines(version, backend, device, "")
}

/// A cache of a version of Kilim with what was tuned on one device, and with the bytes `compiled` for its
/// driver.
fn with_pipelines(version: &str, backend: &str, device: &str, compiled: &str) -> Vec<u8> {
    let mut cache = b"KILIMCCH".to_vec();
    for part in [version, backend, device, compiled, "Conv 3x3\tanother\n"] {
        cache.extend((part.len() as u64).to_le_bytes());
        cache.extend(part.as_bytes());
    }
    // FNV-1a of 64 bits.
    let sum = cache.iter().fold(0xcbf2_9ce4_8422_2325u64, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    cache.extend(sum.to_le_bytes());
    cache
}

/// A session of `runtime`.
fn session(runtime: &Runtime, backend: &str) -> kilim::Result<Session> {
    let mut graph = Graph::new("one");
    let x = graph.add_input("x", Fact::fixed(DType::F32, &[1]));
    let y = graph.apply("y", Unary(UnaryKind::Neg), &[x]);
    graph.outputs.push(y);
    let options = LoadOptions {
        backends: vec![BackendId::from(backend)],
        ..LoadOptions::default()
    };
    pollster::block_on(runtime.session(graph, options))
}

/// What the report of a session of `runtime` says of the cache.
fn reported(runtime: &Runtime) -> Option<String> {
    session(runtime, "cpu").unwrap().report().cache
}

#[test]
fn what_was_saved_is_taken_back_and_nothing_else() {
    let runtime = Runtime::default();
    for id in runtime.ids() {
        // A machine may have no GPU.
        let _ = pollster::block_on(runtime.backend(&id));
    }
    let cache = runtime.save_cache();
    // Of all drivers, those of Vulkan give out what they compiled.
    let wgpu = pollster::block_on(runtime.backend(&BackendId::from("wgpu")));
    if wgpu.is_ok_and(|b| b.describe().device.contains("vulkan")) {
        assert!(cache.windows(4).any(|part| part == b"wgpu"));
    }
    for runtime in [&runtime, &Runtime::default()] {
        assert!(matches!(load(runtime, &cache), Ok(CacheUse::Taken)));
    }
    for at in 8..cache.len().min(64) {
        let mut damaged = cache.clone();
        damaged[at] ^= 0x40;
        assert_eq!(
            ignored(&runtime, &damaged).message(),
            "the cache is damaged"
        );
    }
    for cut in [0, 7, 8, cache.len() - 1] {
        ignored(&runtime, &cache[..cut]);
    }
    for other in [&b"something else"[..], &[0; 100]] {
        let error = load(&runtime, other).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
    }
}

#[test]
fn a_cache_from_elsewhere_is_ignored_and_the_report_says_why() {
    let runtime = Runtime::default();
    let cpu = pollster::block_on(runtime.backend(&BackendId::from("cpu"))).unwrap();
    let device = &cpu.describe().device;
    assert_eq!(reported(&runtime), None);
    let cases = [
        (written("0.0.9", "cpu", device), "another version of Kilim"),
        (written(VERSION, "cpu", "an abacus"), "another device"),
        (written(VERSION, "abacus", "wood"), "abacus"),
    ];
    for (cache, reason) in cases {
        let error = ignored(&runtime, &cache);
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(reported(&runtime), Some(error.to_string()));
        let saved = runtime.save_cache();
        assert!(
            !saved.windows(7).any(|part| part == b"another"),
            "it was used"
        );
    }
    let own = written(VERSION, "cpu", device);
    assert!(matches!(load(&runtime, &own), Ok(CacheUse::Taken)));
    assert_eq!(reported(&runtime), None);
    assert_eq!(runtime.save_cache(), own);
}

#[test]
fn what_a_driver_compiled_goes_along() {
    let [runtime, later, other] = [(); 3].map(|()| Runtime::default());
    let gpu = BackendId::from("wgpu");
    let device = match pollster::block_on(runtime.backend(&gpu)) {
        Ok(backend) => backend.describe().device.clone(),
        Err(e) => return skip(e),
    };
    // What does not even begin like compiled pipelines never comes to the driver.
    let rubbish = with_pipelines(VERSION, "wgpu", &device, &"rubbish ".repeat(32));
    ignored(&other, &rubbish);
    session(&other, "wgpu").expect("the device is as it was");
    let empty = runtime.save_cache().len();
    drop(session(&runtime, "wgpu").unwrap());
    let saved = runtime.save_cache();
    if saved.len() == empty {
        return skip("the driver keeps what it compiles to itself");
    }
    assert!(matches!(load(&later, &saved), Ok(CacheUse::Taken)));
    // Nothing was compiled there.
    assert!(later.save_cache().len() > empty);
}

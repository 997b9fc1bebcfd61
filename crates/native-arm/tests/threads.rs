//! How many threads ACL has is what a session says. A program of its own: ACL's threads belong to the process.
#![cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]

use std::time::{Duration, Instant};

use kilim_core::backend::{Backend, ContextConfig};
use kilim_native_arm::AclBackend;

/// The threads of this process that are not of Kilim's own pool.
fn threads() -> usize {
    let is_own = |task: &std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.starts_with("kilim-"))
    };
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter(|task| !is_own(task.as_ref().unwrap())).count()
}

/// Threads that have ended may be listed for a moment.
#[track_caller]
fn settles_at(count: usize) {
    let patience = Instant::now() + Duration::from_secs(20);
    while threads() != count && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(threads(), count);
}

#[test]
fn a_session_says_how_many_threads_there_are() {
    let neon = match AclBackend::neon() {
        Ok(neon) => neon,
        Err(e) if std::env::var_os("KILIM_ACL").is_none() => {
            return kilim_test_support::skip(e);
        }
        Err(e) => panic!("{e}"),
    };
    let ask = |threads| {
        let config = ContextConfig {
            threads,
            ..ContextConfig::default()
        };
        neon.create_context(&config).unwrap();
    };
    // Two first, so that those of ACL's own choice are gone and seen to go.
    ask(Some(2));
    std::thread::sleep(Duration::from_millis(200));
    let two = threads();
    ask(Some(4));
    settles_at(two + 2);
    // Who says nothing leaves them as they are.
    ask(None);
    settles_at(two + 2);
    ask(Some(1));
    settles_at(two - 1);
}

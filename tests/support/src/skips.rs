//! Tests that cannot run on a machine say so in a form that `cargo xtask test` counts.

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;

/// Prints a line past the test runner, which shows what a test prints only if it fails.
pub fn say(line: impl Display) {
    // One write for the whole line: other tests print at the same time.
    let _ = std::io::stdout().write_all(format!("{line}\n").as_bytes());
}

/// Says that the calling test does not run, and why. The test returns after it. `cargo xtask test` counts the
/// test as skipped and repeats the reason at its end.
#[track_caller]
pub fn skip(reason: impl Display) {
    say(format_args!(
        "skipped: {}: {reason}",
        caller(Location::caller())
    ));
}

/// Says that the calling test leaves something out, and why. The test still counts as passed.
#[track_caller]
pub fn skip_part(reason: impl Display) {
    say(format_args!(
        "skipped in part: {}: {reason}",
        caller(Location::caller())
    ));
}

/// The test's name, by which the test runner calls its thread; where the runner has no thread for each test, or
/// the test has started another thread, the place in the source.
fn caller(place: &Location) -> String {
    let thread = std::thread::current();
    match thread.name().filter(|name| *name != "main") {
        Some(name) => name.to_owned(),
        None => format!("{}:{}", place.file(), place.line()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Location, caller};

    #[test]
    fn a_test_is_called_by_its_name() {
        let here = Location::caller();
        assert_eq!(caller(here), "skips::tests::a_test_is_called_by_its_name");
        let there = std::thread::scope(|scope| scope.spawn(|| caller(here)).join());
        let there = there.expect("the thread ends");
        assert!(there.contains("skips.rs:"), "{there}");
    }
}

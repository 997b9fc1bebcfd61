//! How many tests passed, failed and were skipped, read from the output of the programs that run them.

use super::{failures, skips};
use crate::sh;
use anyhow::Result;
use std::collections::BTreeSet;
use std::process::Command;

/// What a step's output says of its own tests.
#[derive(Default, Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// One check by this program. What a failure says is kept for [`failures::again`].
    pub fn of(result: Result<()>) -> Counts {
        match result {
            Ok(()) => Counts {
                passed: 1,
                ..Counts::default()
            },
            Err(e) => {
                let text = format!("{e:#}");
                println!("{text}");
                failures::keep(&[text]);
                Counts {
                    failed: 1,
                    ..Counts::default()
                }
            }
        }
    }
}

/// Runs a command and counts the tests in its output; one that counts none is itself the check. What its failures
/// said is kept for [`failures::again`], what it skipped for [`skips::again`].
pub fn counted(command: &mut Command) -> Result<Counts> {
    let mut reader = Reader::default();
    let mut said = Vec::new();
    let succeeded = sh::tee(command, |line| {
        if let Some((name, reason)) = reader.read(line) {
            skips::keep(name, reason);
        }
        said.push(line.to_owned());
    })?;
    let mut counts = reader.counts;
    if !succeeded {
        counts.failed = counts.failed.max(1);
        failures::keep(&said);
    } else if counts == Counts::default() {
        counts.passed = 1;
    }
    Ok(counts)
}

#[derive(Default)]
struct Reader {
    counts: Counts,
    /// Tests that have said that they do not run since the last summary. Rust's test runner counts them as passed.
    unrun: BTreeSet<String>,
}

impl Reader {
    /// Takes one line of output in: summaries, and what tests say by `skip` and `skip_part` of
    /// `kilim-test-support`. Gives the name of a test that does not run, or not wholly, with the reason.
    fn read<'a>(&mut self, line: &'a str) -> Option<(&'a str, &'a str)> {
        if let Some((from_cargo, mut read)) = summary(line) {
            let unrun = std::mem::take(&mut self.unrun);
            if from_cargo {
                let unrun = unrun.len().min(read.passed);
                read.passed -= unrun;
                read.skipped += unrun;
            }
            self.counts.add(read);
            return None;
        }
        // With one thread the test runner writes a test's name before the test runs, and no new line behind it.
        let said = line.rsplit(" ... ").next().unwrap_or(line).trim_start();
        let (whole, rest) = match said.strip_prefix("skipped: ") {
            Some(rest) => (true, rest),
            None => (false, said.strip_prefix("skipped in part: ")?),
        };
        let (name, reason) = rest.split_once(": ")?;
        if whole {
            self.unrun.insert(name.to_owned());
        }
        Some((name, reason))
    }
}

/// What a line counts: cargo's `test result:` lines, for which the first value is true, Playwright's
/// `3 passed (2.1s)`, and a plain `N passed, N failed, N skipped`.
fn summary(line: &str) -> Option<(bool, Counts)> {
    let line = line.trim();
    let cargo = line
        .strip_prefix("test result: ")
        .and_then(|rest| rest.split_once(". "));
    let mut read = Counts::default();
    for part in cargo.map_or(line, |(_, counts)| counts).split([',', ';']) {
        let mut words = part.split_whitespace();
        let number = words.next().and_then(|word| word.parse::<usize>().ok());
        // A Playwright line ends with a time in parentheses; in any other text the words mean something else.
        let alone = |rest: Option<&str>| rest.is_none_or(|word| word.starts_with('('));
        match (number, words.next(), alone(words.next())) {
            (Some(number), Some("passed"), true) => read.passed = number,
            (Some(number), Some("failed"), true) => read.failed = number,
            (Some(number), Some("ignored" | "skipped"), true) => read.skipped = number,
            _ if cargo.is_some() => {}
            _ => return None,
        }
    }
    Some((cargo.is_some(), read))
}

#[cfg(test)]
mod tests {
    use super::Reader;

    fn read(lines: &[&str]) -> (usize, usize, usize) {
        let mut reader = Reader::default();
        lines.iter().for_each(|line| {
            reader.read(line);
        });
        let counts = reader.counts;
        (counts.passed, counts.failed, counts.skipped)
    }

    const CARGO: &str = "test result: ok. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.01s";

    #[test]
    fn counts_of_cargo_and_plain_lines_add_up() {
        assert_eq!(
            read(&[CARGO, "  3 passed, 1 failed, 4 skipped"]),
            (15, 2, 6)
        );
        assert_eq!(read(&["  3 passed (2.1s)"]), (3, 0, 0));
    }

    #[test]
    fn other_lines_count_nothing() {
        assert_eq!(
            read(&[
                "running 12 tests",
                "900 passed of 1884",
                "12 things: 3 passed",
                "2 nodes, 3 failed"
            ]),
            (0, 0, 0)
        );
    }

    #[test]
    fn tests_that_say_that_they_do_not_run_are_not_passed() {
        let lines = [
            "skipped: gpu::one: there is no GPU",
            "skipped: gpu::one: there is no GPU",
            "test gpu::two ... skipped: gpu::two: there is no GPU",
            "skipped in part: three: there is no GPU",
            CARGO,
            CARGO,
        ];
        assert_eq!(read(&lines), (22, 2, 6));
    }

    #[test]
    fn a_summary_that_counts_skipped_tests_itself_is_taken_as_it_is() {
        let lines = [
            "  skipped: a page: no suite",
            "3 passed, 0 failed, 1 skipped",
        ];
        assert_eq!(read(&lines), (3, 0, 1));
    }

    #[test]
    fn the_reason_may_hold_colons() {
        let line = "skipped: gpu::one: NO_BACKEND: none: here";
        assert_eq!(
            Reader::default().read(line),
            Some(("gpu::one", "NO_BACKEND: none: here"))
        );
    }
}

//! Steps whose own sources are seldom touched, and that take long: in a run of all steps they run where those sources differ from the ones
//! that passed last, which `tests/rare.txt` tells. Asked for by name they always run, and write that file when they pass.

use super::{Counts, skip};
use crate::sh;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// A line for each step: its name, the fingerprint of its sources, the day it passed, and how many tests it had.
const FILE: &str = "tests/rare.txt";

/// A step, and the files and folders that it is about, from the root of the repository on.
pub struct Rare {
    pub name: &'static str,
    pub sources: &'static [&'static str],
}

impl Rare {
    /// # Errors
    /// Those of `step`, and where sources or the file cannot be read or written.
    pub fn run(&self, asked: bool, step: impl FnOnce() -> Result<Counts>) -> Result<Counts> {
        let now = fingerprint(&sh::root(), self.sources)?;
        let file = sh::root().join(FILE);
        let text = fs::read_to_string(&file).unwrap_or_default();
        if let (false, Some((day, passed))) = (asked, known(&text, self.name, &now)) {
            let reason = format!(
                "{passed} tests passed on {day}, and its own sources are the same: `cargo xtask test {}` runs it",
                self.name
            );
            return Ok(skip(self.name, &reason));
        }
        let counts = step()?;
        if counts.failed == 0 && counts.passed > 0 {
            let day = sh::capture(sh::cmd("date").args(["-u", "+%F"])).unwrap_or_default();
            let line = format!("{} {now} {} {}", self.name, day.trim(), counts.passed);
            // A step of the other lane may have written it meanwhile.
            let text = fs::read_to_string(&file).unwrap_or_default();
            fs::write(&file, with(&text, self.name, &line))
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(counts)
    }
}

/// The day on which the step passed with these sources, and its number of tests.
fn known<'a>(text: &'a str, name: &str, sources: &str) -> Option<(&'a str, &'a str)> {
    text.lines().find_map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [step, of, day, passed] if step == name && of == sources => Some((day, passed)),
            _ => None,
        }
    })
}

/// The file's text with the step's line in place of the one that it had.
fn with(text: &str, name: &str, line: &str) -> String {
    let others = text
        .lines()
        .filter(|line| line.split(' ').next() != Some(name));
    let mut lines: Vec<&str> = others.chain([line]).collect();
    lines.sort_unstable();
    lines.join("\n") + "\n"
}

/// A number of the paths and bytes of all files, the same on every machine: FNV-1a of 64 bits
/// (<http://www.isthe.com/chongo/tech/comp/fnv/>).
fn fingerprint(root: &Path, sources: &[&str]) -> Result<String> {
    let paths: Vec<PathBuf> = sources.iter().map(|source| root.join(source)).collect();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes.len().to_le_bytes().iter().chain(bytes) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for file in sh::files(&paths) {
        let path = file.strip_prefix(root).unwrap_or(&file);
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        add(path.to_string_lossy().replace('\\', "/").as_bytes());
        add(&bytes);
    }
    Ok(format!("{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use super::{fingerprint, known, with};
    use std::fs;

    #[test]
    fn a_step_is_known_by_its_name_and_sources() {
        let text = with(
            "web 11 2026-01-02 5\narm 22 2026-01-03 6\n",
            "arm",
            "arm 33 2026-01-04 7",
        );
        assert_eq!(text, "arm 33 2026-01-04 7\nweb 11 2026-01-02 5\n");
        assert_eq!(known(&text, "arm", "33"), Some(("2026-01-04", "7")));
        assert_eq!(known(&text, "arm", "22"), None);
        assert_eq!(known(&text, "other", "33"), None);
    }

    #[test]
    fn what_is_in_any_source_counts() {
        let root = std::env::temp_dir().join(format!("kilim-rare-{}", std::process::id()));
        fs::create_dir_all(root.join("a")).unwrap();
        let print = || fingerprint(&root, &["a", "b"]).unwrap();
        let mut seen = vec![print()];
        for (file, text) in [("a/x", "1"), ("a/x", "2"), ("b", "2"), ("a/y", "")] {
            fs::write(root.join(file), text).unwrap();
            seen.push(print());
        }
        fs::remove_dir_all(&root).unwrap();
        let mut different = seen.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), seen.len());
    }
}

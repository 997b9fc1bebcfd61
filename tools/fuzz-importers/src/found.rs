//! What an input does to an importer, and what is told of it where it should not.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use kilim_formats::ImporterRegistry;
use kilim_test_support::allocations::{bounded, unbounded};

use crate::input::{Input, MEMORY, import};
use crate::kept::BROKE;

thread_local! {
    /// What happened first in the current run, and where.
    static HAPPENED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What an import may take: far more than any of a small file needs.
const MOST: Duration = Duration::from_secs(1);

/// Runs of one input that are spent on making it smaller.
const TRIES: usize = 4000;

/// An importer.
pub struct Target {
    registry: ImporterRegistry,
    of: (&'static str, &'static str),
    /// Where inputs go that it does not bear.
    folder: PathBuf,
    known: Mutex<BTreeSet<String>>,
}

/// Notes what happens, with the place in Kilim that led to it.
fn note(what: &str) {
    // To look for the names of places takes more memory than an import may.
    unbounded(|| note_unbounded(what));
}

fn note_unbounded(what: &str) {
    let trace = Backtrace::force_capture().to_string();
    let places = trace
        .lines()
        .filter_map(|line| line.trim().strip_prefix("at "));
    let ours = places.filter(|place| place.contains("/crates/") && !place.contains("fallible.rs"));
    let mut ours: Vec<_> = ours
        .map(|place| place.rsplit("/crates/").next().unwrap_or(""))
        .collect();
    ours.truncate(3);
    let said = format!("{what} at {}", ours.join(", "));
    HAPPENED.with_borrow_mut(|happened| _ = happened.get_or_insert(said));
}

impl Target {
    pub fn new(of: (&'static str, &'static str), folder: &Path) -> Target {
        panic::set_hook(Box::new(|info| {
            let text = info.payload_as_str().unwrap_or_default();
            // Numbers differ from input to input.
            let text: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
            note(&format!("a panic: {text}"));
        }));
        Target {
            registry: ImporterRegistry::default(),
            of,
            folder: folder.to_path_buf(),
            known: Mutex::default(),
        }
    }

    /// Whether a model of the format is messages in messages, each with its length in front.
    pub fn is_nested(&self) -> bool {
        self.of.0 == "onnx"
    }

    /// Reads an input. What it does wrong, if anything.
    fn wrong(&self, bytes: &[u8]) -> Option<String> {
        HAPPENED.take();
        let begin = Instant::now();
        let read = || drop(import(&self.registry, self.of, &Input::read(bytes)));
        let read = || panic::catch_unwind(AssertUnwindSafe(read));
        let _ = bounded(MEMORY, |_| note("memory beyond the limit"), read);
        let late = begin.elapsed() > MOST;
        HAPPENED.take().or_else(|| late.then(|| "slow".to_string()))
    }

    /// Reads an input. Of what it does wrong the first of each kind is told, and written.
    pub fn run(&self, bytes: &[u8]) {
        let Some(what) = self.wrong(bytes) else {
            return;
        };
        let Ok(mut known) = self.known.lock() else {
            return;
        };
        if !known.insert(what.clone()) {
            return;
        }
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let name = format!("{BROKE}{:08x}", hasher.finish() as u32);
        let path = self.folder.join(name);
        let small = match what.as_str() {
            "slow" => bytes.to_vec(),
            _ => self.smaller(bytes, &what),
        };
        eprintln!("FOUND {what}: {}, {} bytes", path.display(), small.len());
        if let Err(error) = std::fs::write(&path, small) {
            eprintln!("{}: {error}", path.display());
        }
    }

    /// A part of an input that does the same.
    fn smaller(&self, bytes: &[u8], what: &str) -> Vec<u8> {
        let mut small = bytes.to_vec();
        let mut tries = 0;
        let mut len = small.len() / 2;
        while len > 0 && tries < TRIES {
            let mut at = 0;
            while at + len <= small.len() && tries < TRIES {
                let without = [&small[..at], &small[at + len..]].concat();
                tries += 1;
                match self.wrong(&without).as_deref() == Some(what) {
                    true => small = without,
                    false => at += len,
                }
            }
            len /= 2;
        }
        small
    }
}

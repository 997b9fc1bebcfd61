//! What runs of given models passed or entered.

use std::collections::HashMap;

/// The kind of the runs that every page's models are like.
const CORE: &str = "core";

/// Runs, each of a kind, and which of them passed a point of a binary or entered a function of it.
#[derive(Default)]
pub struct Profile {
    kinds: Vec<String>,
    /// The runs that passed each point, in the order of their numbers.
    passed: HashMap<u32, Vec<u16>>,
}

impl Profile {
    /// Reads what `www/scripts/profile/run.mjs` writes: a line for each run, its kind and the points that it passed. None where it is
    /// something else.
    pub fn read(text: &str) -> Option<Self> {
        let mut profile = Self::default();
        for (run, line) in text.lines().enumerate() {
            let mut words = line.split(' ');
            profile.kinds.push(words.next()?.to_owned());
            for point in words {
                let runs = profile.passed.entry(point.parse().ok()?);
                runs.or_default().push(u16::try_from(run).ok()?);
            }
        }
        Some(profile)
    }

    /// A profile of these runs that knows nothing of them.
    pub fn of_same_runs(&self) -> Self {
        Self {
            kinds: self.kinds.clone(),
            passed: HashMap::new(),
        }
    }

    /// Has the runs `by` pass a point, or enter a function.
    pub fn set(&mut self, number: u32, by: &[u16]) {
        if !by.is_empty() {
            self.passed.insert(number, by.to_vec());
        }
    }

    /// The runs that passed the point, or entered the function.
    pub fn runs(&self, number: u32) -> &[u16] {
        self.passed.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Whether what every page's models are like passed the point, or entered the function.
    pub fn is_core(&self, number: u32) -> bool {
        self.runs(number).iter().any(|run| self.kind(*run) == CORE)
    }

    /// The kind of a run.
    pub fn kind(&self, run: u16) -> &str {
        &self.kinds[usize::from(run)]
    }

    /// The kinds of all runs, in the order of their numbers.
    pub fn kinds(&self) -> &[String] {
        &self.kinds
    }
}

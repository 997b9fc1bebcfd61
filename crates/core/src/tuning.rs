//! Which of several kernels is the fastest on a device: measured once for each class of nodes, and
//! kept with the device.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, ErrorCode, Result};

/// The kernels that a backend has for a node where only measuring tells which is the fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What the answer depends on: nodes of one class get the same kernel. Without tabs and line
    /// breaks.
    pub class: String,
    /// At least two. The first is taken where nothing was measured.
    pub algorithms: Vec<Cow<'static, str>>,
}

impl Choice {
    /// Algorithms of one node, at most.
    pub const MOST: usize = 256;

    /// Whether it can be measured and kept: it has from two to [`Choice::MOST`] algorithms, and all its texts are of
    /// letters that a table can hold.
    pub fn is_possible(&self) -> bool {
        let kept = |text: &str| !text.is_empty() && !text.contains(char::is_control);
        (2..=Choice::MOST).contains(&self.algorithms.len())
            && kept(&self.class)
            && self.algorithms.iter().all(|a| kept(a))
    }
}

/// What was measured of one device. Clones are the same table.
#[derive(Clone, Debug, Default)]
pub struct Tuned(Arc<Mutex<BTreeMap<String, String>>>);

impl Tuned {
    /// A record with one entry.
    pub fn only(class: &str, algorithm: &str) -> Tuned {
        let tuned = Tuned::default();
        tuned.insert(class, algorithm);
        tuned
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the fastest algorithm of a class of nodes.
    pub fn insert(&self, class: &str, algorithm: &str) {
        self.table()
            .insert(class.to_string(), algorithm.to_string());
    }

    /// The index of the algorithm that was measured to be the fastest, if it is one of the choice's.
    pub fn measured(&self, choice: &Choice) -> Option<usize> {
        let table = self.table();
        let known = table.get(&choice.class)?;
        choice.algorithms.iter().position(|a| a == known)
    }

    /// The index of the algorithm to take: of what was measured, else of the first.
    pub fn pick(&self, choice: &Choice) -> usize {
        self.measured(choice).unwrap_or(0)
    }

    /// The table as text: a line for each class, its algorithm behind a tab.
    pub fn save(&self) -> String {
        let table = self.table();
        let mut text = String::new();
        for (class, algorithm) in table.iter() {
            text += class;
            text.push('\t');
            text += algorithm;
            text.push('\n');
        }
        text
    }

    /// Adds what [`Tuned::save`] gave.
    ///
    /// # Errors
    /// `InvalidValue` where it is something else; nothing is added then.
    pub fn load(&self, saved: &[u8]) -> Result<()> {
        let wrong = || Error::new(ErrorCode::InvalidValue, "the tuning table is damaged");
        let text = std::str::from_utf8(saved).map_err(|_| wrong())?;
        let lines = text.lines().map(|line| line.split_once('\t'));
        let lines: Vec<_> = lines.collect::<Option<_>>().ok_or_else(wrong)?;
        for (class, algorithm) in lines {
            self.insert(class, algorithm);
        }
        Ok(())
    }
}

/// What was measured of all devices.
#[derive(Debug, Default)]
pub struct Tuning(Mutex<BTreeMap<String, Tuned>>);

impl Tuning {
    /// The table of a device, driver included, by its [`key`](crate::backend::Description::key).
    pub fn of(&self, device: &str) -> Tuned {
        let mut devices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        devices.entry(device.to_string()).or_default().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_saved_and_given_back() {
        let choice = |class: &str| Choice {
            class: class.to_string(),
            algorithms: vec!["rows".into(), "columns".into()],
        };
        let tuned = Tuned::only("product 2x3", "columns");
        tuned.insert("product 4x5", "of another version");
        let again = Tuned::default();
        again.load(tuned.save().as_bytes()).unwrap();
        assert_eq!(again.measured(&choice("product 2x3")), Some(1));
        assert_eq!(again.measured(&choice("product 4x5")), None);
        assert_eq!(again.pick(&choice("product 4x5")), 0);
        let error = again.load(b"product 6x7\trows\nrubbish").unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
        assert_eq!(again.measured(&choice("product 6x7")), None);
    }
}

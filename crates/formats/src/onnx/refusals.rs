//! What of a model Kilim cannot run, gathered into one error.

use std::fmt::Write;

use kilim_core::error::{Error, Result, unsupported};

/// Everything that was refused so far.
#[derive(Default)]
pub struct Refusals(Vec<Refusal>);

/// Something that Kilim cannot run, with the nodes where it stands.
struct Refusal {
    what: String,
    nodes: Vec<String>,
}

/// The nodes that one refusal names; of the others it says how many they are.
const SHOWN: usize = 8;

impl Refusals {
    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes what a node has that is not supported.
    pub fn add(&mut self, what: String, node: &str) {
        match self.0.iter_mut().find(|r| r.what == what) {
            Some(refusal) => refusal.nodes.push(node.to_string()),
            None => self.0.push(Refusal {
                what,
                nodes: vec![node.to_string()],
            }),
        }
    }

    /// One error for everything that was refused.
    pub fn check(&self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut message = String::from("the model needs what Kilim does not have");
        for (i, refusal) in self.0.iter().enumerate() {
            let lead = if i == 0 { ':' } else { ';' };
            let (shown, more) = refusal.nodes.split_at(refusal.nodes.len().min(SHOWN));
            let shown = shown.join("`, `");
            // Writing to a string cannot fail.
            let _ = write!(message, "{lead} {} at `{shown}`", refusal.what);
            if !more.is_empty() {
                let _ = write!(message, " and {} more", more.len());
            }
        }
        Err(unsupported(message))
    }
}

/// The reason of a refusal with the value it is about.
pub fn reason(error: &Error) -> String {
    match error.input() {
        Some(input) => format!("{} in `{input}`", error.message()),
        None => error.message().to_string(),
    }
}

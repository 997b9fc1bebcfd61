//! What of a model Kilim cannot run, gathered into one error.

use std::collections::HashMap;
use std::fmt::Write;

use kilim_core::error::{Error, ErrorCode, Result, unsupported};

/// Everything that was refused so far.
#[derive(Default)]
pub struct Refusals {
    /// In order of appearance.
    list: Vec<Refusal>,
    /// The place of each reason in the list.
    places: HashMap<String, usize>,
}

/// Something that Kilim cannot run.
struct Refusal {
    what: String,
    /// The first nodes where it stands.
    nodes: Vec<String>,
    /// How many others there are.
    more: usize,
}

/// The reasons that the error spells out; of the others it says how many they are.
const REASONS: usize = 32;

/// The nodes that one refusal names; of the others it says how many they are.
const NODES: usize = 8;

impl Refusals {
    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Notes what a node has that is not supported.
    pub fn add(&mut self, what: String, node: &str) {
        let place = *self.places.entry(what).or_insert_with_key(|what| {
            self.list.push(Refusal {
                what: what.clone(),
                nodes: Vec::new(),
                more: 0,
            });
            self.list.len() - 1
        });
        let refusal = &mut self.list[place];
        match refusal.nodes.len() < NODES {
            true => refusal.nodes.push(node.to_string()),
            false => refusal.more += 1,
        }
    }

    /// What was made of `node`. `None` where Kilim cannot bring it into the graph, which is noted.
    ///
    /// # Errors
    /// Those of the model, with the node and its operator.
    pub fn settle<T>(&mut self, made: Result<T>, operator: &str, node: &str) -> Result<Option<T>> {
        match made {
            Err(error) if error.code() == ErrorCode::Unsupported => {
                self.add_operator(operator, node, &error);
                Ok(None)
            }
            made => made.map(Some).map_err(|error| error.at(node, operator)),
        }
    }

    /// Notes that `node`, of `operator`, cannot be brought into the graph.
    pub fn add_operator(&mut self, operator: &str, node: &str, why: &Error) {
        self.add(format!("{operator}: {}", reason(why)), node);
    }

    /// One error for everything that was refused.
    ///
    /// # Errors
    /// `Unsupported` where anything was.
    pub fn check(&self) -> Result<()> {
        if self.list.is_empty() {
            return Ok(());
        }
        let (shown, more) = self.list.split_at(self.list.len().min(REASONS));
        let mut message = String::from("the model needs what Kilim does not have");
        for (i, refusal) in shown.iter().enumerate() {
            let lead = if i == 0 { ':' } else { ';' };
            let nodes = refusal.nodes.join("`, `");
            // Writing to a string cannot fail.
            let _ = write!(message, "{lead} {} at `{nodes}`", refusal.what);
            if refusal.more > 0 {
                let _ = write!(message, " and {} more", refusal.more);
            }
        }
        if !more.is_empty() {
            let _ = write!(message, "; and {} more reasons", more.len());
        }
        Err(unsupported(message))
    }
}

/// Why an operator that no table has is refused.
pub fn unknown_operator() -> Error {
    unsupported("unknown operator")
}

/// The reason of a refusal with the value it is about.
pub fn reason(error: &Error) -> String {
    match error.input() {
        Some(input) => format!("{} in `{input}`", error.message()),
        None => error.message().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_nodes_are_counted_beyond_the_first() {
        let mut refusals = Refusals::default();
        for node in 0..20 {
            refusals.add("the same".into(), &format!("node{node}"));
        }
        for other in 0..100_000 {
            refusals.add(format!("reason {other}"), "another");
        }
        let error = refusals.check().map_err(|e| e.message().to_string());
        let message = error.expect_err("something was refused");
        assert!(
            message.contains("the same at `node0`, `node1`"),
            "{message}"
        );
        assert!(message.contains("`node7` and 12 more;"), "{message}");
        assert!(
            message.ends_with("reason 30 at `another`; and 99969 more reasons"),
            "{message}"
        );
    }
}

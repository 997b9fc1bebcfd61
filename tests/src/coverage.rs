//! Operators that ran on the first backend of a list, with their element types, and why others did not: what
//! `docs/operators.md` says of the GPU.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use kilim::Session;

/// What is known of one operator.
#[derive(Debug, Default)]
struct Operator {
    /// Element types that ran on the backend asked first.
    runs: BTreeSet<String>,
    /// Reasons why it did not take others, with their element types.
    refusals: BTreeMap<String, BTreeSet<String>>,
}

/// Operators by name.
#[derive(Debug, Default)]
pub struct Coverage {
    operators: BTreeMap<String, Operator>,
}

impl Coverage {
    /// Takes up where the nodes of a session ran.
    pub fn add(&mut self, session: &Session) {
        let report = session.report();
        // Values in bodies, and those of one node of the file, may have the same names: what a name
        // stands for is only known where it is the only one.
        let nodes = || report.nodes.iter().filter(|n| n.scope.is_empty());
        let mut types: HashMap<&str, Option<&str>> = HashMap::new();
        let mut name = |name, dtype| {
            let first = !types.contains_key(name);
            types.insert(name, Some(dtype).filter(|_| first));
        };
        for port in session.inputs() {
            name(&port.name, port.fact.dtype.map_or("", |d| d.name()));
        }
        for output in nodes().flat_map(|n| &n.outputs) {
            name(&output.name, &output.dtype);
        }
        let first = report.backends.first().map(|b| b.id.as_str());
        for node in nodes() {
            let data = match node.inputs.first() {
                Some(name) => types.get(name.as_str()).copied().flatten(),
                None => node.outputs.first().map(|o| o.dtype.as_str()),
            };
            let Some(dtype) = data.filter(|d| !d.is_empty()) else {
                continue;
            };
            let operator = self.operators.entry(node.op.clone()).or_default();
            if Some(node.backend.as_str()) == first {
                operator.runs.insert(dtype.to_string());
            }
            for refusal in node
                .refusals
                .iter()
                .filter(|r| Some(r.backend.as_str()) == first)
            {
                let types = operator.refusals.entry(refusal.reason.clone()).or_default();
                types.insert(dtype.to_string());
            }
        }
    }

    /// The rows of the document's table.
    pub fn table(&self) -> String {
        let mut text = String::from("| operator | runs | does not run, because |\n|---|---|---|\n");
        for (name, operator) in &self.operators {
            let list = |types: &BTreeSet<String>| {
                types
                    .iter()
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let reason = |(why, types): (&String, &BTreeSet<String>)| {
                format!("{}: {}", list(types), why.replace('|', "/"))
            };
            let refusals: Vec<String> = operator.refusals.iter().map(reason).collect();
            if !operator.runs.is_empty() || !refusals.is_empty() {
                let (runs, refusals) = (list(&operator.runs), refusals.join("; "));
                // Writing to a string cannot fail.
                let _ = writeln!(text, "| {name} | {runs} | {refusals} |");
            }
        }
        text
    }

    /// What a document with such a table says runs, and did not: `operator of type`.
    pub fn broken_promises(&self, document: &str) -> Vec<String> {
        let rows = document.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?, cells.next()?))
        });
        let mut broken = Vec::new();
        for (name, promised) in rows.skip_while(|(name, _)| *name != "operator").skip(1) {
            for dtype in promised.split(", ").filter(|d| !d.is_empty()) {
                let ran = self
                    .operators
                    .get(name)
                    .is_some_and(|o| o.runs.contains(dtype));
                if !ran {
                    broken.push(format!("{name} of {dtype}"));
                }
            }
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_promises_what_its_table_says() {
        let mut coverage = Coverage::default();
        let add = coverage.operators.entry("Add".to_string()).or_default();
        add.runs
            .extend(["float32".to_string(), "int32".to_string()]);
        let types = BTreeSet::from(["float64".to_string()]);
        add.refusals.insert("a|b".to_string(), types);
        let document = format!("# Title\n\n{}", coverage.table());
        assert!(document.ends_with("| Add | float32, int32 | float64: a/b |\n"));
        assert!(coverage.broken_promises(&document).is_empty());
        let more = document.replace("int32", "int32, int8") + "| Sub | float32 |  |\n";
        let broken = coverage.broken_promises(&more);
        assert_eq!(broken, ["Add of int8", "Sub of float32"]);
    }
}

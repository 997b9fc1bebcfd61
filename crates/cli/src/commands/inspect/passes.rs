//! What the passes did to a graph: `--passes`.

use std::collections::BTreeMap;

use kilim::core::passes::{Change, NodeName, Rule};

use super::table;

/// Prints every rule with what it does, and every change in its order.
pub fn print(changes: &[Change], without: &[Rule]) {
    let mut times: BTreeMap<Rule, usize> = BTreeMap::new();
    for change in changes {
        *times.entry(change.rule).or_default() += 1;
    }
    let mut rules = table(&["\nrule", "\nchanges", "\nwhat it does"]);
    for &rule in Rule::ALL {
        let count = match times.get(&rule) {
            _ if without.contains(&rule) => "off".to_string(),
            Some(count) => count.to_string(),
            None => "-".to_string(),
        };
        rules.add_row([rule.name(), &count, rule.description()]);
    }
    say!("{rules}");
    say!("\nchanges");
    for change in changes {
        let [before, after] = change.nodes;
        let graph = match change.graph.as_str() {
            "" => String::new(),
            name => format!(" of `{name}`"),
        };
        say!("  {}: {before} nodes{graph}, then {after}", change.rule);
        let kinds = [
            ("removed", &change.removed),
            ("added", &change.added),
            ("replaced", &change.replaced),
        ];
        for (kind, nodes) in kinds {
            for (op, names) in by_operator(nodes) {
                say!("    {kind} {} {op}: {}", names.len(), names.join(", "));
            }
        }
        if change.rewired > 0 {
            say!("    rewired {}", change.rewired);
        }
    }
}

fn by_operator(nodes: &[NodeName]) -> BTreeMap<&str, Vec<&str>> {
    let mut operators: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in nodes {
        operators.entry(&node.op).or_default().push(&node.name);
    }
    operators
}

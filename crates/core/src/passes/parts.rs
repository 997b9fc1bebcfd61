//! Which operators a graph has, and which inputs they have there: what [`Rule::makes`] says is held against it.

use std::any::{Any, TypeId};
use std::collections::BTreeSet;

use super::rules::{Made, Rule};
use crate::error::{Error, ErrorCode, Result};
use crate::graph::{Graph, Node};

/// The types of the operators, and the inputs that nodes of each have; those in bodies of control flow, too.
pub struct Parts(BTreeSet<Part>);

/// A type of operator, or an input of it.
type Part = (TypeId, Option<usize>);

impl Parts {
    pub fn of(graph: &Graph) -> Parts {
        let mut found = BTreeSet::new();
        add(graph, &mut found);
        Parts(found)
    }

    /// Holds the graph that `rule` left against what it was.
    ///
    /// # Errors
    /// `State` where there is an operator or an input that the rule does not list, and that was not there.
    pub fn check(&self, rule: Rule, graph: &Graph) -> Result<()> {
        let made = rule.makes();
        for node in &graph.nodes {
            let new =
                of_node(node).find(|part| !self.0.contains(part) && !listed(&made, node, part));
            if let Some((_, input)) = new {
                let error = |what: &str| {
                    let message = format!("the rule `{rule}` does not list {what} that it makes");
                    let error = Error::new(ErrorCode::State, message);
                    error.at(&node.name, node.op.name())
                };
                return Err(match input {
                    None => error("an operator"),
                    Some(i) => error("an input").with_input(i),
                });
            }
        }
        Ok(())
    }
}

/// Whether one of `made` is this part of a node. Every rule may use the inputs that an operator adds or multiplies with.
fn listed(made: &[Made], node: &Node, &(op, input): &Part) -> bool {
    let whole = made.iter().any(|m| m.op == op && m.input.is_none());
    let Some(i) = input else {
        return whole;
    };
    let name = node.op.signature().input(i);
    let given = made
        .iter()
        .any(|m| m.op == op && m.input == name.as_deref());
    whole || given || [node.op.addend(), node.op.factor()].contains(&input)
}

fn add(graph: &Graph, found: &mut BTreeSet<Part>) {
    for node in &graph.nodes {
        found.extend(of_node(node));
        for body in node.op.subgraphs() {
            add(body, found);
        }
    }
}

fn of_node(node: &Node) -> impl Iterator<Item = Part> {
    let op = (&*node.op as &dyn Any).type_id();
    // How many there are of a list differs from node to node.
    let listed = |&i: &usize| node.op.signature().inputs.get(i).is_some();
    let inputs = (0..node.inputs.len()).filter(|&i| node.input(i).is_some());
    [None]
        .into_iter()
        .chain(inputs.filter(listed).map(Some))
        .map(move |i| (op, i))
}

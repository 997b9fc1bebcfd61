//! What the device says of connected nodes, and of the order of a stage.

use kilim_plugin_abi::guest::{Change, NewNode, NewValues, Node, Subgraph, SubgraphStep, Task};

use crate::layer::is_pair;

/// The attributes of a node under other names; `None` where one cannot be told.
fn renamed(node: &Node, prefix: &str) -> Option<Vec<(String, NewValues)>> {
    let attributes = node.attributes();
    let renamed = attributes.map(|(name, v)| Some((format!("{prefix}{name}"), NewValues::of(v)?)));
    renamed.collect()
}

/// The step that alone reads what a step writes.
fn next(subgraph: &Subgraph, step: &SubgraphStep) -> Option<usize> {
    let written = *step.outputs.first()?;
    let steps = subgraph.steps.iter().enumerate();
    let mut readers = steps.flat_map(|(i, step)| {
        let read = step.inputs.iter().filter(|&&t| t == Some(written));
        read.map(move |_| i)
    });
    let reader = readers.next()?;
    let alone = readers.next().is_none() && !subgraph.tensors[written].escapes;
    alone.then_some(reader)
}

/// One node of two convolutions.
fn pair(first: &SubgraphStep, second: &SubgraphStep) -> Option<NewNode> {
    // What is added to a convolution would be an input more.
    let plain = |step: &SubgraphStep| !is_pair(&step.node) && step.inputs.len() <= 3;
    let follows = second.inputs.first().copied().flatten() == first.outputs.first().copied();
    if !plain(first) || !plain(second) || !follows {
        return None;
    }
    let input = |step: &SubgraphStep, i: usize| step.inputs.get(i).copied().flatten();
    let mut attributes = renamed(&first.node, "first.")?;
    attributes.extend(renamed(&second.node, "second.")?);
    Some(NewNode {
        name: second.node.name.to_string(),
        domain: "com.example".to_string(),
        op: "ConvPair".to_string(),
        attributes,
        inputs: vec![
            input(first, 0),
            input(first, 1),
            input(first, 2),
            input(second, 1),
            input(second, 2),
        ],
        outputs: second.outputs.clone(),
    })
}

/// Makes two convolutions one node where nobody else reads what is between them.
pub fn pairs(subgraph: &Subgraph) -> Vec<Change> {
    let mut taken = vec![false; subgraph.steps.len()];
    let mut changes = Vec::new();
    for (i, first) in subgraph.steps.iter().enumerate() {
        let Some(second) = next(subgraph, first).filter(|&second| !taken[i] && !taken[second])
        else {
            continue;
        };
        if let Some(with) = pair(first, &subgraph.steps[second]) {
            let steps = vec![i, second];
            changes.push(Change::Replace { steps, with });
            (taken[i], taken[second]) = (true, true);
        }
    }
    changes
}

/// Gives the device its work as early as possible, so that it computes beside the others.
pub fn own_first(tasks: &[Task]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    let mut order = Vec::with_capacity(tasks.len());
    while !left.is_empty() {
        let ready = |at: usize| {
            let mut before = left[..at].iter();
            !before.any(|&task| tasks[task].shares_backend(&tasks[left[at]]))
        };
        let own = (0..left.len()).find(|&at| tasks[left[at]].is_own() && ready(at));
        // The first of all waits for nothing.
        let next = own.unwrap_or(0);
        order.push(left.remove(next));
    }
    order
}

//! A graph that is built anew, node by node.

use std::sync::Arc;

use kilim_core::Interrupt;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::{Graph, Node, Operator, ValueId};
use kilim_formats::build::GraphBuilder;

/// A node of the graph, with its inputs in the new one.
pub struct Given<'a> {
    pub graph: &'a Graph,
    pub node: &'a Node,
    pub inputs: &'a [Option<ValueId>],
    /// Whether the node stands in a body of control flow.
    pub in_body: bool,
}

impl Given<'_> {
    /// Input `i` in the new graph, if it is there.
    pub fn input(&self, i: usize) -> Option<ValueId> {
        self.inputs.get(i).copied().flatten()
    }
}

/// What stands in the place of a node: its outputs, or `None` where the node stays.
pub type Replace<'r> = dyn FnMut(&mut GraphBuilder, &Given) -> Result<Option<Vec<ValueId>>> + 'r;

/// A graph, and what stands in it for the values of the one that it was made of.
pub struct Rebuilt {
    pub graph: Graph,
    pub values: Vec<Option<ValueId>>,
}

/// The graph with other nodes in the place of some. Names of inputs, outputs, values and constants stay.
///
/// # Errors
/// What `replace` says, with the node's name.
pub fn rebuild(graph: &Graph, replace: &mut Replace) -> Result<Rebuilt> {
    rebuilt(graph, false, replace)
}

fn rebuilt(graph: &Graph, in_body: bool, replace: &mut Replace) -> Result<Rebuilt> {
    let mut b = GraphBuilder::new(&graph.name, in_body, &Interrupt::NEVER);
    let mut values: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for &input in &graph.inputs {
        let value = graph.value(input);
        let name = value.name.clone();
        values[input.0] = Some(b.graph().add_input(name, value.fact.clone()));
    }
    b.graph().variables.clone_from(&graph.variables);
    b.graph().metadata = graph.metadata.clone();
    for node in &graph.nodes {
        let around = b.enter(&node.name);
        let made = one(&mut b, graph, node, in_body, &mut values, replace);
        made.map_err(|e| e.at(&node.name, node.op.name()))?;
        b.leave(around);
    }
    for &output in &graph.outputs {
        let value = found(&mut b, graph, output, &mut values)?;
        b.graph().outputs.push(value);
    }
    Ok(Rebuilt {
        graph: b.into_graph(),
        values,
    })
}

/// What stands for a value of the graph; constants come along where they are first read.
fn found(
    b: &mut GraphBuilder,
    graph: &Graph,
    v: ValueId,
    values: &mut [Option<ValueId>],
) -> Result<ValueId> {
    if let Some(known) = values[v.0] {
        return Ok(known);
    }
    let value = graph.value(v);
    let missing = || unsupported(format!("nothing produces `{}`", value.name));
    let tensor = value.constant.clone().ok_or_else(missing)?;
    let made = b.graph().add_constant(value.name.clone(), tensor);
    values[v.0] = Some(made);
    Ok(made)
}

fn one(
    b: &mut GraphBuilder,
    graph: &Graph,
    node: &Node,
    in_body: bool,
    values: &mut [Option<ValueId>],
    replace: &mut Replace,
) -> Result<()> {
    let inputs = node.inputs.iter().map(|v| match v {
        Some(v) => found(b, graph, *v, values).map(Some),
        None => Ok(None),
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let given = Given {
        graph,
        node,
        inputs: &inputs,
        in_body,
    };
    if let Some(made) = replace(b, &given)? {
        for (&old, new) in node.outputs.iter().zip(made) {
            let value = graph.value(old);
            let new = b.name(new, &value.name);
            b.graph().value_mut(new).name.clone_from(&value.name);
            b.declare(new, value.fact.clone());
            values[old.0] = Some(new);
        }
        return Ok(());
    }
    let mut outputs = Vec::with_capacity(node.outputs.len());
    for &old in &node.outputs {
        let value = graph.value(old);
        let new = b.graph().add_value(value.name.clone(), value.fact.clone());
        values[old.0] = Some(new);
        outputs.push(new);
    }
    b.push_into(with_bodies(&node.op, replace)?, &inputs, &outputs)
}

/// The operator with its graphs built anew.
fn with_bodies(op: &Arc<dyn Operator>, replace: &mut Replace) -> Result<Arc<dyn Operator>> {
    let Some(bodies) = op.bodies() else {
        return Ok(op.clone());
    };
    let mut built = Vec::with_capacity(bodies.graphs.len());
    for body in bodies.graphs {
        built.push(Arc::new(rebuilt(body, true, replace)?.graph));
    }
    let op = op.with_bodies(built);
    op.ok_or_else(|| unsupported("control flow whose bodies cannot be replaced"))
}

//! What a rewrite has to leave as it was.

use std::collections::HashMap;
use std::sync::Arc;

use crate::dim::{Dim, Shape};
use crate::error::{Error, ErrorCode, Result};
use crate::fact::{Fact, InputFact};
use crate::graph::{Graph, InferContext, Node, Operator, ValueId};

/// Every value is looked at in graphs of at most so many nodes: larger ones load quickly with debug assertions, too.
const LARGEST: usize = 10_000;

/// A node by its first output, as it was.
type Known = (Arc<dyn Operator>, Vec<Option<ValueId>>);

/// What was known of a graph before it is rewritten.
pub struct Before {
    /// What is known of each value; empty where element types change or there are many values.
    facts: Vec<Fact>,
    /// What is known of each output; empty where their element types change.
    outputs: Vec<Fact>,
    /// The number of outputs.
    count: usize,
    /// `None` where there are many.
    nodes: Option<HashMap<ValueId, Known>>,
}

impl Before {
    /// What is known of `graph` now.
    pub fn of(graph: &Graph) -> Before {
        let known = |node: &Node| {
            let first = *node.outputs.first()?;
            Some((first, (node.op.clone(), node.inputs.clone())))
        };
        let outputs: Vec<Fact> = graph
            .outputs
            .iter()
            .map(|&v| graph.fact(v).clone())
            .collect();
        let few = graph.nodes.len() <= LARGEST;
        let values = graph.values.iter().filter(|_| few);
        Before {
            facts: values.map(|v| v.fact.clone()).collect(),
            count: outputs.len(),
            outputs,
            nodes: few.then(|| graph.nodes.iter().filter_map(known).collect()),
        }
    }

    /// Element types change, those of the outputs too if `of_outputs`.
    pub fn forget_types(&mut self, of_outputs: bool) {
        self.facts.clear();
        if of_outputs {
            self.outputs.clear();
        }
    }

    /// Holds the graph against what it was.
    ///
    /// # Errors
    /// `State` where a value is read before it is written, nothing writes it, or it is written twice; and where one
    /// became another.
    pub fn check(&self, graph: &Graph) -> Result<()> {
        let written = written(graph)?;
        if graph.outputs.len() != self.count {
            let message = "a rewrite changed the number of outputs";
            return Err(Error::new(ErrorCode::State, message)
                .with_expected(self.count)
                .with_got(graph.outputs.len()));
        }
        if let Some(&v) = graph.outputs.iter().find(|v| !written[v.0]) {
            return Err(broken(graph, v, "is an output that nothing writes"));
        }
        let outputs = graph.outputs.iter().copied().zip(&self.outputs);
        let values = (0..graph.values.len()).map(ValueId).zip(&self.facts);
        for (v, before) in outputs.chain(values) {
            same(graph, v, before, graph.fact(v))?;
        }
        match &self.nodes {
            Some(nodes) => check_nodes(nodes, graph),
            None => Ok(()),
        }
    }
}

/// Nodes that are new, or read something new, give what is known of their outputs.
fn check_nodes(before: &HashMap<ValueId, Known>, graph: &Graph) -> Result<()> {
    let mut inferred: HashMap<ValueId, Fact> = HashMap::new();
    for node in &graph.nodes {
        let first = node.outputs.first();
        let as_it_was = first
            .and_then(|v| before.get(v))
            .is_some_and(|(op, inputs)| Arc::ptr_eq(op, &node.op) && *inputs == node.inputs);
        if as_it_was {
            continue;
        }
        let input = |v: &Option<ValueId>| {
            let value = graph.value((*v)?);
            let fact = v.and_then(|v| inferred.get(&v));
            Some(InputFact {
                fact: fact.unwrap_or(&value.fact).clone(),
                value: value.constant.clone(),
            })
        };
        let inputs: Vec<Option<InputFact>> = node.inputs.iter().map(input).collect();
        // What does not fit is reported by the inference of the whole graph.
        let facts = node
            .op
            .infer(&InferContext::new(&inputs, node.outputs.len()));
        for (&v, fact) in node.outputs.iter().zip(facts.unwrap_or_default()) {
            let known = graph.fact(v);
            same(graph, v, known, &fact).map_err(|e| e.at(&node.name, node.op.name()))?;
            if *known == Fact::default() {
                inferred.insert(v, fact);
            }
        }
    }
    Ok(())
}

/// Which values are there. Errors as of [`Before::check`].
fn written(graph: &Graph) -> Result<Vec<bool>> {
    let mut there: Vec<bool> = graph.values.iter().map(|v| v.constant.is_some()).collect();
    for v in &graph.inputs {
        there[v.0] = true;
    }
    for node in &graph.nodes {
        let wrong = |v, what| Err(broken(graph, v, what).at(&node.name, node.op.name()));
        if let Some(v) = node.present_inputs().find(|v| !there[v.0]) {
            return wrong(v, "is read before anything writes it");
        }
        for &v in &node.outputs {
            if std::mem::replace(&mut there[v.0], true) {
                return wrong(v, "is written twice");
            }
        }
    }
    Ok(there)
}

fn same(graph: &Graph, v: ValueId, before: &Fact, after: &Fact) -> Result<()> {
    match agree(before, after) {
        true => Ok(()),
        false => Err(broken(graph, v, "is another than before")
            .with_expected(before)
            .with_got(after)),
    }
}

fn broken(graph: &Graph, v: ValueId, what: &str) -> Error {
    let message = format!("after a rewrite the value `{}` {what}", graph.value(v).name);
    Error::new(ErrorCode::State, message)
}

/// Whether two facts can be of one value.
fn agree(a: &Fact, b: &Fact) -> bool {
    let dtypes = a.dtype.is_none() || b.dtype.is_none() || a.dtype == b.dtype;
    let dims = |(a, b): (&Dim, &Dim)| match (a.known(), b.known()) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    };
    let fit = |a: &Shape, b: &Shape| a.rank() == b.rank() && a.0.iter().zip(&b.0).all(dims);
    let shapes = a.shape.as_ref().zip(b.shape.as_ref());
    dtypes && shapes.is_none_or(|(a, b)| fit(a, b))
}

#[cfg(test)]
mod tests {
    use super::super::super::edit::node;
    use super::super::Patch;
    use super::*;
    use crate::dtype::DType;
    use crate::ops::{Cast, Transpose, Unary, UnaryKind};

    fn graph() -> Graph {
        let mut graph = Graph::new("test");
        let fact = Fact::fixed(DType::F32, &[2, 3]);
        let x = graph.add_input("x", fact.clone());
        let y = graph.apply("first", Unary(UnaryKind::Exp), &[x]);
        let z = graph.apply("second", Unary(UnaryKind::Neg), &[y]);
        for v in [y, z] {
            graph.value_mut(v).fact = fact.clone();
        }
        graph.outputs = vec![z];
        graph
    }

    /// The error of a rewrite that does `change` with the two nodes.
    fn error(change: impl Fn(&mut Patch, &mut Graph, [Node; 2])) -> String {
        let mut graph = graph();
        let mut patch = Patch::start(&mut graph);
        let (first, second) = (patch.next_node().unwrap(), patch.next_node().unwrap());
        change(&mut patch, &mut graph, [first, second]);
        patch.finish(&mut graph).unwrap_err().to_string()
    }

    #[test]
    fn what_was_not_asked_for_stays() {
        let mut graph = graph();
        let mut patch = Patch::start(&mut graph);
        let first = patch.next_node().unwrap();
        patch.push(first);
        assert!(!patch.finish(&mut graph).unwrap());
        assert_eq!(graph.nodes.len(), 2);
    }

    #[test]
    fn broken_promises_are_seen() {
        let unwritten = error(|p, _, [_, second]| p.push(second));
        assert!(
            unwritten.contains("`first:0` is read before"),
            "{unwritten}"
        );
        let swapped = error(|p, _, [first, second]| {
            p.push(second);
            p.push(first);
        });
        assert!(swapped.contains("is read before"), "{swapped}");
        let twice = error(|p, _, [first, second]| {
            p.push(first.clone());
            p.push(first);
            p.push(second);
        });
        assert!(twice.contains("is written twice"), "{twice}");
        assert!(error(|p, _, [first, _]| p.push(first)).contains("that nothing writes"));
        let fewer = error(|p, g, [first, second]| {
            p.push(first);
            p.push(second);
            g.outputs.clear();
        });
        assert!(fewer.contains("the number of outputs"), "{fewer}");
    }

    #[test]
    fn values_stay_what_they_are() {
        let turned = error(|p, _, [first, mut second]| {
            p.push(first);
            second.op = Arc::new(Transpose { perm: vec![1, 0] });
            p.push(second);
        });
        assert!(
            turned.contains("`second:0` is another") && turned.contains("second"),
            "{turned}"
        );
        let replaced = error(|p, g, [first, second]| {
            p.push(first);
            let other = g.add_value("other", Fact::fixed(DType::F32, &[3, 2]));
            let perm = vec![1, 0];
            p.push(node(
                "other",
                Transpose { perm },
                second.inputs.clone(),
                other,
            ));
            p.replace(second.outputs[0], other);
        });
        assert!(replaced.contains("`other` is another"), "{replaced}");
        // The type of what a new node gives is known before that of its reader.
        let cast = error(|p, g, [first, mut second]| {
            let half = g.add_value("half", Fact::default());
            p.push(node(
                "half",
                Cast::new(DType::F16),
                first.inputs.clone(),
                half,
            ));
            p.push(first);
            second.inputs = vec![Some(half)];
            p.push(second);
        });
        assert!(cast.contains("`second:0` is another"), "{cast}");
        let known = error(|p, g, [first, second]| {
            g.value_mut(second.outputs[0]).fact.dtype = Some(DType::F16);
            p.push(first);
            p.push(second);
        });
        assert!(known.contains("`second:0` is another"), "{known}");
    }
}

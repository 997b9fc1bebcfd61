//! A rewrite of a graph that is held against what it has to leave as it was.

use super::Rule;
use crate::dim::{Dim, Shape};
use crate::error::{Error, ErrorCode, Result};
use crate::fact::Fact;
use crate::graph::{Graph, ValueId};

/// What was known of a graph's outputs before a rule was applied.
pub struct Patch {
    rule: Rule,
    outputs: Vec<Fact>,
}

impl Patch {
    /// Begins a rewrite of `graph` by `rule`.
    pub fn begin(rule: Rule, graph: &Graph) -> Patch {
        let outputs = graph.outputs.iter().map(|&v| graph.fact(v).clone());
        Patch {
            rule,
            outputs: outputs.collect(),
        }
    }

    /// Holds the graph against the promises of every rule.
    ///
    /// # Errors
    /// `State` with the name of the rule where a value is read before it is written, nothing writes it, or it is written
    /// twice; and where an output of the graph has another element type or shape than before.
    pub fn check(&self, graph: &Graph) -> Result<()> {
        let mut there: Vec<bool> = graph.values.iter().map(|v| v.constant.is_some()).collect();
        for v in &graph.inputs {
            there[v.0] = true;
        }
        for node in &graph.nodes {
            if let Some(v) = node.present_inputs().find(|v| !there[v.0]) {
                let error = self.broken(graph, v, "is read before anything writes it");
                return Err(error.at(&node.name, node.op.name()));
            }
            for &v in &node.outputs {
                if std::mem::replace(&mut there[v.0], true) {
                    let error = self.broken(graph, v, "is written twice");
                    return Err(error.at(&node.name, node.op.name()));
                }
            }
        }
        if graph.outputs.len() != self.outputs.len() {
            let message = format!("the rule `{}` changed the number of outputs", self.rule);
            return Err(Error::new(ErrorCode::State, message)
                .with_expected(self.outputs.len())
                .with_got(graph.outputs.len()));
        }
        for (&v, before) in graph.outputs.iter().zip(&self.outputs) {
            if !there[v.0] {
                return Err(self.broken(graph, v, "is an output that nothing writes"));
            }
            let after = graph.fact(v);
            if !agree(before, after) {
                let error = self.broken(graph, v, "is an output that became another");
                return Err(error.with_expected(before).with_got(after));
            }
        }
        Ok(())
    }

    fn broken(&self, graph: &Graph, v: ValueId, what: &str) -> Error {
        let name = &graph.value(v).name;
        let message = format!("after the rule `{}` the value `{name}` {what}", self.rule);
        Error::new(ErrorCode::State, message)
    }
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
    use super::*;
    use crate::dtype::DType;
    use crate::ops::{Transpose, Unary, UnaryKind};

    fn graph() -> Graph {
        let mut graph = Graph::new("test");
        let fact = Fact::fixed(DType::F32, &[2, 3]);
        let x = graph.add_input("x", fact.clone());
        let y = graph.apply("first", Unary(UnaryKind::Exp), &[x]);
        let z = graph.apply("second", Unary(UnaryKind::Neg), &[y]);
        graph.value_mut(z).fact = fact;
        graph.outputs = vec![z];
        graph
    }

    /// The error that a change of the graph leads to.
    fn error(change: impl Fn(&mut Graph)) -> String {
        let mut graph = graph();
        let patch = Patch::begin(Rule::Views, &graph);
        patch.check(&graph).unwrap();
        change(&mut graph);
        patch.check(&graph).unwrap_err().to_string()
    }

    #[test]
    fn broken_promises_name_the_rule() {
        let unwritten = error(|g| drop(g.nodes.remove(0)));
        assert!(unwritten.contains("`views`") && unwritten.contains("`first:0` is read before"));
        assert!(error(|g| g.nodes.swap(0, 1)).contains("is read before"));
        assert!(error(|g| g.nodes.push(g.nodes[0].clone())).contains("is written twice"));
        assert!(error(|g| drop(g.nodes.pop())).contains("that nothing writes"));
        assert!(error(|g| g.outputs.clear()).contains("the number of outputs"));
        let turned = error(|g| {
            let perm = vec![1, 0];
            let w = g.apply("third", Transpose { perm }, &[g.outputs[0]]);
            g.value_mut(w).fact = Fact::fixed(DType::F32, &[3, 2]);
            g.outputs = vec![w];
        });
        assert!(turned.contains("became another"), "{turned}");
    }
}

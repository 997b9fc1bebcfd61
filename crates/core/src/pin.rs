//! What the options say of single nodes: the backend they run on, whatever the partitioner would do,
//! and the precision they compute in.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result};
use crate::fact::Cost;
use crate::graph::{Graph, Refusal};
use crate::ids::BackendId;

/// Which nodes a [`Pin`] or a [`PrecisionPin`] holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pinned {
    /// All nodes of an operator, by the name that reports show.
    Operator(String),
    /// The node of this name; it takes precedence over its operator.
    Node(String),
}

/// Puts nodes on a backend. A node that the backend does not run is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    pub what: Pinned,
    pub backend: BackendId,
}

/// Has nodes compute in a floating-point type. A node that no backend runs in it is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrecisionPin {
    pub what: Pinned,
    pub dtype: DType,
}

impl FromStr for Pin {
    type Err = Error;

    /// `op:NAME=BACKEND` or `node:NAME=BACKEND`.
    fn from_str(text: &str) -> Result<Pin> {
        match split(text) {
            Some((what, backend)) => Ok(Pin {
                what,
                backend: backend.into(),
            }),
            None => Err(malformed(text, "`op:NAME=BACKEND` or `node:NAME=BACKEND`")),
        }
    }
}

impl FromStr for PrecisionPin {
    type Err = Error;

    /// `op:NAME=TYPE` or `node:NAME=TYPE`, where the type is called as in reports: `float16`.
    fn from_str(text: &str) -> Result<PrecisionPin> {
        let parts = split(text)
            .and_then(|(what, name)| Some((what, DType::from_name(name)?)))
            .filter(|(_, dtype)| dtype.is_float());
        match parts {
            Some((what, dtype)) => Ok(PrecisionPin { what, dtype }),
            None => Err(malformed(
                text,
                "`op:NAME=TYPE` or `node:NAME=TYPE` of float16, bfloat16, float32, float64",
            )),
        }
    }
}

fn split(text: &str) -> Option<(Pinned, &str)> {
    let (what, to) = text.rsplit_once('=')?;
    match what.split_once(':')? {
        ("op", name) => Some((Pinned::Operator(name.to_string()), to)),
        ("node", name) => Some((Pinned::Node(name.to_string()), to)),
        _ => None,
    }
}

fn malformed(text: &str, expected: &str) -> Error {
    Error::new(ErrorCode::InvalidValue, "this is not said of nodes")
        .with_expected(expected)
        .with_got(text)
}

/// The pin that holds a node: the last of those that name it, else of those that name its operator.
fn holding<'a, P>(
    pins: &'a [P],
    what: impl Fn(&P) -> &Pinned,
    node: &str,
    op: &str,
) -> Option<&'a P> {
    let named = |p: &&P| matches!(what(p), Pinned::Node(name) if name == node);
    let typed = |p: &&P| matches!(what(p), Pinned::Operator(name) if name == op);
    let pin = pins.iter().rfind(named);
    pin.or_else(|| pins.iter().rfind(typed))
}

/// The backend that a node is pinned to, if it is to one.
pub fn backend_of<'a>(pins: &'a [Pin], node: &str, op: &str) -> Option<&'a BackendId> {
    holding(pins, |p| &p.what, node, op).map(|p| &p.backend)
}

/// # Errors
/// `NoBackend` where a node of `builtin`'s is pinned by name or as an operator.
pub fn leave_control(pins: &[Pin], node: &str, op: &str) -> Result<()> {
    match backend_of(pins, node, op) {
        Some(to) => {
            let message = format!("`builtin` alone runs this, and the options pin it to `{to}`");
            Err(Error::new(ErrorCode::NoBackend, message).at(node, op))
        }
        None => Ok(()),
    }
}

/// The type that a node is to compute in, if it is to in one.
pub fn precision_of(pins: &[PrecisionPin], node: &str, op: &str) -> Option<DType> {
    holding(pins, |p| &p.what, node, op).map(|p| p.dtype)
}

/// Turns the answers of all other backends than `to` into refusals. `ids` are the backends of the
/// session, in the order of the answers.
pub fn hold(answers: &mut [Result<Cost, Refusal>], ids: &[BackendId], to: &BackendId) {
    for (answer, id) in answers.iter_mut().zip(ids) {
        if id != to {
            *answer = Err(Refusal::new(format!("the options pin the node to `{to}`")));
        }
    }
}

/// # Errors
/// `NoBackend` where a pin names a backend that the session does not have.
pub fn check(pins: &[Pin], ids: &[BackendId]) -> Result<()> {
    match pins.iter().find(|p| !ids.contains(&p.backend)) {
        Some(pin) => {
            let known: Vec<_> = ids.iter().map(BackendId::as_str).collect();
            Err(Error::new(
                ErrorCode::NoBackend,
                format!(
                    "nodes are pinned to `{}`, which the session does not have",
                    pin.backend
                ),
            )
            .with_known(pin.backend.as_str(), &known))
        }
        None => Ok(()),
    }
}

/// Looks for the nodes and operators that pins name, in bodies of control flow too.
///
/// # Errors
/// `InvalidValue` where nothing has such a name.
pub fn find<'a>(graph: &Graph, pinned: impl Iterator<Item = &'a Pinned>) -> Result<()> {
    let mut known: Option<Names> = None;
    for what in pinned {
        let names = known.get_or_insert_with(|| {
            let mut names = Names::default();
            names.collect(graph);
            names
        });
        let (of, name, known) = match what {
            Pinned::Node(name) => ("no node is called", name, &names.nodes),
            Pinned::Operator(name) => ("no node is of the operator", name, &names.operators),
        };
        if !known.contains(name.as_str()) {
            let message = format!("{of} `{name}`, which the options pin, after the passes");
            let known: Vec<&str> = known.iter().copied().collect();
            let error = Error::new(ErrorCode::InvalidValue, message);
            return Err(error.with_known(name, &known));
        }
    }
    Ok(())
}

/// What the nodes of a graph are called, those in bodies of control flow too.
#[derive(Default)]
struct Names<'a> {
    nodes: BTreeSet<&'a str>,
    operators: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    fn collect(&mut self, graph: &'a Graph) {
        for node in &graph.nodes {
            self.nodes.insert(&node.name);
            self.operators.insert(node.op.name());
            for body in node.op.subgraphs() {
                self.collect(body);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_what_separates_them() {
        let pin: Pin = "node:a=b:c=cpu".parse().unwrap();
        assert_eq!(pin.what, Pinned::Node("a=b:c".to_string()));
        assert_eq!(pin.backend, BackendId::new("cpu"));
        assert!("Conv=cpu".parse::<Pin>().is_err());
        assert!("layer:Conv=cpu".parse::<Pin>().is_err());
        let pin: PrecisionPin = "node:a=b:c=float16".parse().unwrap();
        assert_eq!(pin.dtype, DType::F16);
        assert!("op:Conv=int8".parse::<PrecisionPin>().is_err());
    }

    #[test]
    fn a_name_goes_before_an_operator_and_the_last_pin_before_others() {
        let pins: Vec<Pin> = ["node:x=a", "op:Conv=b", "op:Conv=c"]
            .map(|p| p.parse().unwrap())
            .to_vec();
        let at = |node, op| backend_of(&pins, node, op).map(BackendId::as_str);
        assert_eq!(at("x", "Conv"), Some("a"));
        assert_eq!(at("y", "Conv"), Some("c"));
        assert_eq!(at("y", "Relu"), None);
    }
}

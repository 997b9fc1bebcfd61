//! Nodes that the options put on a backend, whatever the partitioner would do.

use std::str::FromStr;

use crate::backend::{BackendId, Refusal};
use crate::error::{Error, ErrorCode, Result};
use crate::ops::Cost;

/// Which nodes a [`Pin`] holds.
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

impl FromStr for Pin {
    type Err = Error;

    /// `op:NAME=BACKEND` or `node:NAME=BACKEND`.
    fn from_str(text: &str) -> Result<Pin> {
        let parts = text
            .rsplit_once('=')
            .and_then(|(what, backend)| Some((what.split_once(':')?, backend)));
        let (what, name, backend) = match parts {
            Some((("op", name), backend)) => (Pinned::Operator as fn(_) -> _, name, backend),
            Some((("node", name), backend)) => (Pinned::Node as fn(_) -> _, name, backend),
            _ => {
                return Err(
                    Error::new(ErrorCode::InvalidValue, "this does not pin a node")
                        .with_expected("`op:NAME=BACKEND` or `node:NAME=BACKEND`")
                        .with_got(text),
                );
            }
        };
        Ok(Pin {
            what: what(name.to_string()),
            backend: backend.into(),
        })
    }
}

/// The backend that a node is pinned to, if it is to one.
pub fn backend_of<'a>(pins: &'a [Pin], node: &str, op: &str) -> Option<&'a BackendId> {
    let named = |p: &&Pin| matches!(&p.what, Pinned::Node(name) if name == node);
    let typed = |p: &&Pin| matches!(&p.what, Pinned::Operator(name) if name == op);
    let pin = pins.iter().rfind(named);
    pin.or_else(|| pins.iter().rfind(typed)).map(|p| &p.backend)
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
            .with_expected(known.join(", ")))
        }
        None => Ok(()),
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

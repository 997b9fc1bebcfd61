//! How the operator of a node is said in ONNX.

use kilim_core::error::Result;

use super::node::NodeForm;

/// The domain of onnxruntime's own operators.
pub const MICROSOFT: &str = "com.microsoft";
/// The domain of classical machine learning.
pub const ML: &str = "ai.onnx.ml";

/// What ONNX says for an attribute.
pub enum Rule {
    /// An attribute of this name with an equal value.
    As(&'static str),
    /// One of these words for each word, or for 0 and 1 where the attribute is a flag.
    Said(&'static str, &'static [(&'static str, &'static str)]),
    /// The number of an element type.
    Type(&'static str),
    /// Nothing: the operator's name, its inputs or another attribute say it.
    Told,
}

/// An operator of ONNX that does what an operator of the graph does with the same inputs and outputs.
///
/// Attributes that no rule names must be 0, empty or absent; otherwise the node is refused, so that nothing is lost in silence.
pub struct Form {
    /// The standard one has the empty name.
    pub domain: &'static str,
    /// The first operator set that has it in this form.
    pub since: i64,
    /// Rules by the attributes' frozen names (`docs/attributes.md`), or by what stands behind the first point of these.
    pub rules: &'static [(&'static str, Rule)],
    /// Whether `also` names all attributes: the operator holds what has no form as one, graphs for instance.
    pub by_hand: bool,
    /// What is changed besides.
    pub also: Option<fn(&mut NodeForm) -> Result<()>>,
}

impl Form {
    /// The operator of the same name, with these rules, in all operator sets that are written.
    pub const fn of(rules: &'static [(&'static str, Rule)]) -> Form {
        Form {
            domain: "",
            since: 0,
            rules,
            by_hand: false,
            also: None,
        }
    }

    /// The operator of the same name, whose attributes `name` sets all.
    pub const fn by_hand(name: fn(&mut NodeForm) -> Result<()>) -> Form {
        let mut form = Form::of(&[]).also(name);
        form.by_hand = true;
        form
    }

    pub const fn since(mut self, opset: i64) -> Form {
        self.since = opset;
        self
    }

    pub const fn in_domain(mut self, domain: &'static str) -> Form {
        self.domain = domain;
        self
    }

    pub const fn also(mut self, change: fn(&mut NodeForm) -> Result<()>) -> Form {
        self.also = Some(change);
        self
    }

    /// The rule for an attribute of the operator.
    pub fn rule(&self, attribute: &str) -> Option<&'static Rule> {
        let find = |name: &str| self.rules.iter().find(|(of, _)| *of == name);
        let inner = attribute.split_once('.').map(|(_, inner)| inner);
        let found = find(attribute).or_else(|| find(inner?));
        found.map(|(_, rule)| rule)
    }
}

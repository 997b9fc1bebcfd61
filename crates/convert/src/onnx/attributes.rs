//! Attributes of a node in a file.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::ops::Attribute;
use kilim_core::reflect::{Items, Leaf, Reflect, Visitor};

use super::form::{Form, Rule};
use super::tensor;
use crate::proto::Message;

/// An attribute as the file has it.
pub enum Stored {
    Attribute(Attribute),
    Graph(Message),
}

impl Stored {
    /// The `AttributeProto`.
    ///
    /// # Errors
    /// `Unsupported` for tensors of types that ONNX does not have.
    pub fn message(self, name: &str) -> Result<Message> {
        let mut message = Message::default();
        message.text(1, name);
        let kind = match self {
            Stored::Graph(graph) => {
                message.message(6, graph);
                5
            }
            Stored::Attribute(attribute) => stored(&mut message, attribute)?,
        };
        message.int(20, kind);
        Ok(message)
    }
}

/// Writes a value into the field that holds values of its kind, and gives the number of the kind (`AttributeProto.AttributeType`).
fn stored(message: &mut Message, attribute: Attribute) -> Result<i64> {
    Ok(match attribute {
        Attribute::Float(x) => {
            message.float(2, x as f32);
            1
        }
        Attribute::Int(n) => {
            message.int(3, n);
            2
        }
        Attribute::Text(text) => {
            message.bytes(4, text.as_bytes());
            3
        }
        Attribute::Bytes(bytes) => {
            message.bytes(4, &bytes);
            3
        }
        Attribute::Tensor(tensor) => {
            message.message(5, tensor::message("", &tensor, None)?);
            4
        }
        Attribute::Floats(list) => {
            list.iter().for_each(|&x| message.float(7, x as f32));
            6
        }
        Attribute::Ints(list) => {
            list.iter().for_each(|&n| message.int(8, n));
            7
        }
        Attribute::Texts(list) => {
            list.iter()
                .for_each(|text| message.bytes(9, text.as_bytes()));
            8
        }
    })
}

/// What ONNX says for the attribute `name` of an operator; `None` where it says nothing.
///
/// # Errors
/// `Unsupported` where ONNX has no words for it.
pub fn said(
    form: &Form,
    name: &str,
    value: &Attribute,
) -> Result<Option<(&'static str, Attribute)>> {
    let unsaid =
        || Err(unsupported(format!("`{name}` has no form in ONNX")).with_got(shown(value)));
    match form.rule(name) {
        None if is_neutral(value) => Ok(None),
        None => unsaid(),
        Some(Rule::Told) => Ok(None),
        Some(Rule::As(_)) if is_empty(value) => Ok(None),
        Some(Rule::As(to)) => Ok(Some((to, value.clone()))),
        Some(Rule::Said(to, words)) => {
            let own = match value {
                Attribute::Text(word) => word.clone(),
                Attribute::Int(n) => n.to_string(),
                _ => return unsaid(),
            };
            match words.iter().find(|(word, _)| *word == own) {
                Some((_, said)) => Ok(Some((to, Attribute::Text((*said).to_string())))),
                None => unsaid(),
            }
        }
        Some(Rule::Type(to)) => match value {
            Attribute::Text(word) => match type_of(word) {
                Some(dtype) => Ok(Some((to, Attribute::Int(tensor::number(dtype)?)))),
                None => unsaid(),
            },
            _ => unsaid(),
        },
    }
}

fn is_empty(value: &Attribute) -> bool {
    matches!(value, Attribute::Ints(list) if list.is_empty())
}

fn is_neutral(value: &Attribute) -> bool {
    is_empty(value) || *value == Attribute::Int(0)
}

fn shown(value: &Attribute) -> String {
    match value {
        Attribute::Int(n) => n.to_string(),
        Attribute::Float(x) => x.to_string(),
        Attribute::Text(text) => text.clone(),
        Attribute::Bytes(_) => "bytes".to_string(),
        Attribute::Ints(list) => format!("{} integers", list.len()),
        Attribute::Floats(list) => format!("{} numbers", list.len()),
        Attribute::Texts(list) => format!("{} texts", list.len()),
        Attribute::Tensor(tensor) => format!("a tensor of {}", tensor.dtype()),
    }
}

/// The element type whose frozen name is `word`.
fn type_of(word: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| {
        let mut name = NameOf("");
        dtype.visit(&mut name);
        name.0 == word
    })
}

/// The frozen name of what it visits.
struct NameOf(&'static str);

impl Visitor for NameOf {
    fn field(&mut self, _: &str, _: &dyn Reflect) {}

    fn list(&mut self, _: &dyn Items) {}

    fn leaf(&mut self, leaf: Leaf) {
        if let Leaf::Name(name) = leaf {
            self.0 = name;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_is_found_by_its_frozen_name() {
        for dtype in DType::ALL {
            let mut name = NameOf("");
            dtype.visit(&mut name);
            assert_eq!(type_of(name.0), Some(dtype));
        }
    }

    #[test]
    fn what_no_rule_names_must_say_nothing() {
        let form = Form::of(&[("axis", Rule::As("axis")), ("max", Rule::Told)]);
        assert!(matches!(
            said(&form, "axis", &Attribute::Int(0)),
            Ok(Some(("axis", _)))
        ));
        assert!(matches!(said(&form, "max", &Attribute::Int(1)), Ok(None)));
        assert!(matches!(said(&form, "other", &Attribute::Int(0)), Ok(None)));
        let error = said(&form, "other", &Attribute::Int(1)).expect_err("it says something");
        assert!(error.to_string().contains("`other`"), "{error}");
    }
}

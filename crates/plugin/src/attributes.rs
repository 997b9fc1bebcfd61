//! What plug-ins see of an operator's attributes.
//!
//! Those of a custom operator are as the file has them. Kilim's own operators are structs whose
//! derived `Debug` form names every field; it is read here, so that no operator lists its attributes
//! a second time. A field `f` that is an enum gives its variant's name under `f` and the variant's
//! fields under `f.field` (`f.value` for the only one without a name).

use kilim_core::Operator;
use kilim_core::backend::Refusal;
use kilim_core::ops::{Attribute, Attributes, Custom};

/// The attributes of an operator by their names.
///
/// # Errors
/// An operator with an attribute that has no form in the interface: a graph, for instance.
pub fn attributes(op: &dyn Operator) -> Result<Attributes, Refusal> {
    if let Some(custom) = op.downcast_ref::<Custom>() {
        return Ok(custom.attributes().clone());
    }
    if !op.subgraphs().is_empty() {
        return Err(Refusal::new("plug-ins do not run control flow"));
    }
    let text = format!("{op:?}");
    let mut reader = Reader { rest: &text };
    let told = reader.form().filter(|_| reader.rest.is_empty());
    let told = told.and_then(|form| {
        let mut out = Attributes::default();
        match form {
            Form::Word(_) => {}
            Form::Fields(_, fields) => {
                for (name, field) in fields {
                    flatten(&name, field, &mut out)?;
                }
            }
            Form::Tuple(_, items) => flatten("value", one_or_list(items), &mut out)?,
            _ => return None,
        }
        Some(out)
    });
    told.ok_or_else(|| {
        Refusal::new(format!(
            "the attributes of {} have no form in the plug-in interface",
            op.name()
        ))
    })
}

/// A value in the syntax of derived `Debug`.
#[derive(Debug)]
enum Form {
    Int(i64),
    Float(f64),
    Text(String),
    Word(String),
    List(Vec<Form>),
    Tuple(String, Vec<Form>),
    Fields(String, Vec<(String, Form)>),
}

fn one_or_list(mut items: Vec<Form>) -> Form {
    match items.len() {
        1 => items.remove(0),
        _ => Form::List(items),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> Option<&'a str> {
        self.rest = self.rest.trim_start();
        let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        let end = self.rest.find(|c| !part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn text(&mut self) -> Option<Form> {
        let mut out = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[i + 1..];
                    return Some(Form::Text(out));
                }
                '\\' => match chars.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    c @ ('"' | '\\' | '\'') => out.push(c),
                    _ => return None,
                },
                c => out.push(c),
            }
        }
        None
    }

    /// The items up to `end`, with a comma between them.
    fn items<T>(
        &mut self,
        end: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let mut list = Vec::new();
        while !self.eat(end) {
            list.push(item(self)?);
            if !self.eat(",") {
                return self.eat(end).then_some(list);
            }
        }
        Some(list)
    }

    fn form(&mut self) -> Option<Form> {
        if self.eat("\"") {
            return self.text();
        }
        if self.eat("[") {
            return self.items("]", Reader::form).map(Form::List);
        }
        if self.eat("(") {
            return self.items(")", Reader::form).map(Form::List);
        }
        let word = self.word()?;
        if let Ok(n) = word.parse::<i64>() {
            return Some(Form::Int(n));
        }
        let number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if number || matches!(word, "inf" | "NaN") {
            return word.parse().ok().map(Form::Float);
        }
        let name = word.to_string();
        if self.eat("(") {
            return self
                .items(")", Reader::form)
                .map(|items| Form::Tuple(name, items));
        }
        if self.eat("{") {
            let field = |r: &mut Self| {
                let name = r.word()?.to_string();
                r.eat(":")
                    .then(|| r.form())
                    .flatten()
                    .map(|form| (name, form))
            };
            return self
                .items("}", field)
                .map(|fields| Form::Fields(name, fields));
        }
        Some(Form::Word(name))
    }
}

fn boolean(word: &str) -> Option<i64> {
    match word {
        "true" => Some(1),
        "false" => Some(0),
        _ => None,
    }
}

fn flatten(name: &str, form: Form, out: &mut Attributes) -> Option<()> {
    match form {
        Form::Int(n) => out.set(name, Attribute::Int(n)),
        Form::Float(x) => out.set(name, Attribute::Float(x)),
        Form::Text(text) => out.set(name, Attribute::Text(text)),
        Form::Word(word) if word == "None" => {}
        Form::Word(word) => out.set(
            name,
            boolean(&word).map_or(Attribute::Text(word), Attribute::Int),
        ),
        Form::List(items) => list(name, items, out)?,
        Form::Tuple(variant, items) if variant == "Some" => {
            flatten(name, one_or_list(items), out)?;
        }
        Form::Tuple(variant, items) => {
            out.set(name, Attribute::Text(variant));
            flatten(&format!("{name}.value"), one_or_list(items), out)?;
        }
        Form::Fields(variant, fields) => {
            out.set(name, Attribute::Text(variant));
            for (field, form) in fields {
                flatten(&format!("{name}.{field}"), form, out)?;
            }
        }
    }
    Some(())
}

/// A list of one kind is one attribute; any other is one for each item, `name.0` and so on.
fn list(name: &str, items: Vec<Form>, out: &mut Attributes) -> Option<()> {
    let ints = items.iter().map(|f| match f {
        Form::Int(n) => Some(*n),
        Form::Word(word) => boolean(word),
        _ => None,
    });
    if let Some(ints) = ints.collect() {
        out.set(name, Attribute::Ints(ints));
        return Some(());
    }
    let floats = items.iter().map(|f| match f {
        Form::Float(x) => Some(*x),
        _ => None,
    });
    if let Some(floats) = floats.collect() {
        out.set(name, Attribute::Floats(floats));
        return Some(());
    }
    let texts = items.iter().map(|f| match f {
        Form::Text(text) => Some(text.clone()),
        Form::Word(word) if word != "None" && boolean(word).is_none() => Some(word.clone()),
        _ => None,
    });
    if let Some(texts) = texts.collect() {
        out.set(name, Attribute::Texts(texts));
        return Some(());
    }
    let mut items = items.into_iter().enumerate();
    items.try_for_each(|(i, item)| flatten(&format!("{name}.{i}"), item, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kilim_core::Tensor;
    use kilim_core::ops::{Activation, ConstantOfShape, Conv, Padding, Unary, UnaryKind};

    #[test]
    fn every_field_of_an_operator_is_told() {
        let conv = Conv {
            strides: vec![2, 1],
            dilations: vec![1, 1],
            padding: Padding::Explicit(vec![0, 1, 0, 1]),
            groups: 3,
            channels_last: true,
            activation: Activation::Clip {
                min: -0.5,
                max: 6.0,
            },
        };
        let told = attributes(&conv).unwrap();
        let get = |name: &str| told.get(name).cloned();
        assert_eq!(get("strides"), Some(Attribute::Ints(vec![2, 1])));
        assert_eq!(get("padding"), Some(Attribute::Text("Explicit".into())));
        assert_eq!(
            get("padding.value"),
            Some(Attribute::Ints(vec![0, 1, 0, 1]))
        );
        assert_eq!(get("groups"), Some(Attribute::Int(3)));
        assert_eq!(get("channels_last"), Some(Attribute::Int(1)));
        assert_eq!(get("activation"), Some(Attribute::Text("Clip".into())));
        assert_eq!(get("activation.min"), Some(Attribute::Float(-0.5)));
        assert_eq!(get("activation.max"), Some(Attribute::Float(6.0)));
        assert_eq!(told.0.len(), 9);
    }

    #[test]
    fn an_operator_that_is_a_kind_tells_the_kind() {
        let leaky = Unary(UnaryKind::LeakyRelu { alpha: 0.25 });
        let told = attributes(&leaky).unwrap();
        assert_eq!(told.text("value"), Some("LeakyRelu"));
        assert_eq!(told.get("value.alpha"), Some(&Attribute::Float(0.25)));
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let value = Tensor::scalar(1.0f32).unwrap();
        let refusal = attributes(&ConstantOfShape { value }).unwrap_err();
        assert!(refusal.reason.contains("ConstantOfShape"), "{refusal:?}");
    }
}

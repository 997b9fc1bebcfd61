//! Attributes as files have them and as backends in libraries see them.

use std::collections::BTreeMap;

use super::{Items, Leaf, Visitor};
use crate::Reflect;
use crate::error::{Result, unsupported};
use crate::tensor::Tensor;

/// An attribute of a node, as files store it and plug-ins see it.
#[derive(Clone, Debug, PartialEq, Reflect)]
pub enum Attribute {
    Int(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
    Tensor(Tensor),
}

/// The attributes of a node by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attributes(pub BTreeMap<String, Attribute>);

impl Attributes {
    /// `None` where the node does not have it.
    pub fn get(&self, name: &str) -> Option<&Attribute> {
        self.0.get(name)
    }

    /// Sets an attribute, in the place of one of this name.
    pub fn set(&mut self, name: impl Into<String>, value: Attribute) {
        self.0.insert(name.into(), value);
    }

    /// An integer attribute; `default` where the node has none of that name and type.
    pub fn int_or(&self, name: &str, default: i64) -> i64 {
        match self.get(name) {
            Some(Attribute::Int(n)) => *n,
            _ => default,
        }
    }

    /// A number; `default` where the node has none of that name and type.
    pub fn float_or(&self, name: &str, default: f64) -> f64 {
        match self.get(name) {
            Some(Attribute::Float(x)) => *x,
            Some(Attribute::Int(n)) => *n as f64,
            _ => default,
        }
    }

    /// `None` where it is not there, or no text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Attribute::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// `None` where it is not there, or no list of integers.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.get(name) {
            Some(Attribute::Ints(list)) => Some(list),
            _ => None,
        }
    }
}

/// A list of names and values: the names of fields are no contents.
impl Reflect for Attributes {
    fn visit(&self, visitor: &mut dyn Visitor) {
        let pairs: Vec<(&String, &Attribute)> = self.0.iter().collect();
        visitor.list(&pairs.as_slice());
    }
}

impl Attributes {
    /// The fields of a value, by their frozen names. `f.g` is field `g` of the struct or of the enum's variant in
    /// field `f`, whose own name is the attribute `f`. A list of one kind is one attribute, of integers
    /// where it is empty; any other list is one attribute for each item, `f.0` and so on. Booleans are 0 and 1.
    ///
    /// # Errors
    /// `Unsupported` with the name of a field that has no form as an attribute.
    pub(crate) fn of(value: &dyn Reflect) -> Result<Attributes> {
        let mut fields = Fields::default();
        value.visit(&mut fields);
        match fields.without_form {
            Some(name) => Err(unsupported(format!("`{name}` has no form as an attribute"))),
            None => Ok(Attributes(fields.found.into_iter().collect())),
        }
    }
}

/// The attributes of a value, or of an item of a list.
#[derive(Default)]
struct Fields {
    is_item: bool,
    /// The name of the field in hand; empty for the value itself.
    path: String,
    found: Vec<(String, Attribute)>,
    /// The first field that has no form.
    without_form: Option<String>,
}

impl Fields {
    fn put(&mut self, attribute: Attribute) {
        self.found.push((self.path.clone(), attribute));
    }

    fn refuse(&mut self, name: String) {
        self.without_form.get_or_insert(name);
    }
}

/// `path.name`, or the one of them that is not empty.
fn joined(path: &str, name: &str) -> String {
    match path.is_empty() || name.is_empty() {
        true => [path, name].concat(),
        false => [path, ".", name].concat(),
    }
}

impl Visitor for Fields {
    fn field(&mut self, name: &str, value: &dyn Reflect) {
        let path = joined(&self.path, name);
        let outer = std::mem::replace(&mut self.path, path);
        value.visit(self);
        self.path = outer;
    }

    fn hidden(&mut self, name: &str, _: &dyn Reflect) {
        self.refuse(joined(&self.path, name));
    }

    fn list(&mut self, items: &dyn Items) {
        let visited = (0..items.count()).map(|i| {
            let mut item = Fields {
                is_item: true,
                ..Fields::default()
            };
            items.visit(i, &mut item);
            item
        });
        let visited: Vec<Fields> = visited.collect();
        let whole = visited.iter().all(|item| item.without_form.is_none());
        if let Some(list) = one_list(&visited).filter(|_| whole) {
            return self.put(list);
        }
        for (i, item) in visited.into_iter().enumerate() {
            let path = joined(&self.path, &i.to_string());
            if let Some(name) = item.without_form {
                self.refuse(joined(&path, &name));
            }
            let found = item.found.into_iter();
            self.found
                .extend(found.map(|(name, attribute)| (joined(&path, &name), attribute)));
        }
    }

    fn leaf(&mut self, leaf: Leaf) {
        let attribute = match leaf {
            Leaf::Absent => return,
            Leaf::Name(_) if self.path.is_empty() && !self.is_item => return,
            Leaf::Name(name) => Attribute::Text(name.to_string()),
            Leaf::Bool(value) => Attribute::Int(value.into()),
            Leaf::Int(value) => Attribute::Int(value),
            Leaf::Float32(value) => Attribute::Float(widened(value)),
            Leaf::Float64(value) => Attribute::Float(value),
            Leaf::Text(text) => Attribute::Text(text.to_string()),
            Leaf::Tensor(tensor) => Attribute::Tensor(tensor.clone()),
            Leaf::Opaque(_) => return self.refuse(self.path.clone()),
        };
        self.put(attribute);
    }
}

/// The items as one attribute, where each is one number or one text and all are of one kind.
fn one_list(items: &[Fields]) -> Option<Attribute> {
    fn all<'a, T>(
        items: &'a [Fields],
        pick: impl Fn(&'a Attribute) -> Option<T>,
    ) -> Option<Vec<T>> {
        let each = items.iter().map(|item| match &item.found[..] {
            [(name, attribute)] if name.is_empty() => pick(attribute),
            _ => None,
        });
        each.collect()
    }
    let ints = all(items, |a| match a {
        Attribute::Int(n) => Some(*n),
        _ => None,
    });
    let floats = || {
        all(items, |a| match a {
            Attribute::Float(x) => Some(*x),
            _ => None,
        })
    };
    let texts = || {
        all(items, |a| match a {
            Attribute::Text(text) => Some(text.clone()),
            _ => None,
        })
    };
    ints.map(Attribute::Ints)
        .or_else(|| floats().map(Attribute::Floats))
        .or_else(|| texts().map(Attribute::Texts))
}

/// The number as `f64`; NaN keeps its sign and payload, which a conversion may change.
fn widened(x: f32) -> f64 {
    if !x.is_nan() {
        return x.into();
    }
    let bits = u64::from(x.to_bits());
    f64::from_bits((bits >> 31) << 63 | 0x7ff << 52 | (bits & 0x007f_ffff) << 29)
}

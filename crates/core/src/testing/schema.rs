//! The types that fields can have, and values of them that are no Rust types yet.

use std::sync::{Arc, OnceLock};

use crate::graph::Graph;
use crate::tensor::Tensor;

/// The type of a field.
#[derive(Debug)]
pub enum Schema {
    Bool,
    Int {
        min: i128,
        max: i128,
    },
    Float32,
    Float64,
    Text,
    Tensor,
    /// Something without contents; there are [`OPAQUE`] of these.
    Opaque,
    Optional(Box<Schema>),
    List {
        item: Box<Schema>,
        /// `None` where the length is no part of the type.
        length: Option<usize>,
    },
    Pair(Box<[Schema; 2]>),
    Struct(Record),
    Enum(Vec<Record>),
}

/// How many values without contents the tests know of a type.
pub const OPAQUE: usize = 3;

/// A struct, or a variant of an enum.
#[derive(Debug)]
pub struct Record {
    pub name: &'static str,
    /// Whether the variant is shown like `Option::None`.
    pub absent: bool,
    /// Name, type, and whether the field is hidden.
    pub fields: Vec<(&'static str, Schema, bool)>,
}

/// A value of a [`Schema`].
#[derive(Clone, Debug)]
pub enum Content {
    Absent,
    Present(Box<Content>),
    Bool(bool),
    Int(i128),
    Float32(f32),
    Float64(f64),
    Text(String),
    Tensor(Tensor),
    /// One of [`OPAQUE`].
    Opaque(usize),
    /// A list or a pair.
    List(Vec<Content>),
    /// A struct, with the number 0, or an enum.
    Record(usize, Vec<Content>),
}

impl Content {
    /// Field `i` of a struct or variant.
    pub fn field<T: Schematic>(&self, i: usize) -> T {
        match self {
            Content::Record(_, fields) => T::build(&fields[i]),
            other => panic!("{other:?} is no struct"),
        }
    }

    /// The number of the variant.
    pub fn variant(&self) -> usize {
        match self {
            Content::Record(variant, _) => *variant,
            other => panic!("{other:?} is no enum"),
        }
    }

    fn items(&self) -> &[Content] {
        match self {
            Content::List(items) => items,
            other => panic!("{other:?} is no list"),
        }
    }
}

/// A type with a schema, whose values can be made of contents.
pub trait Schematic: Sized {
    fn schema() -> Schema;

    /// Equal values of equal contents.
    fn build(content: &Content) -> Self;
}

macro_rules! plain {
    ($($t:ty => $form:ident, $schema:expr;)*) => {$(
        impl Schematic for $t {
            fn schema() -> Schema {
                $schema
            }

            fn build(content: &Content) -> Self {
                match content {
                    Content::$form(value) => value.clone(),
                    other => panic!("{other:?} is of another type"),
                }
            }
        }
    )*};
}
plain! {
    bool => Bool, Schema::Bool;
    f32 => Float32, Schema::Float32;
    f64 => Float64, Schema::Float64;
    String => Text, Schema::Text;
    Tensor => Tensor, Schema::Tensor;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Schematic for $t {
            fn schema() -> Schema {
                Schema::Int { min: <$t>::MIN as i128, max: <$t>::MAX as i128 }
            }

            fn build(content: &Content) -> Self {
                match content {
                    Content::Int(value) => <$t>::try_from(*value).unwrap(),
                    other => panic!("{other:?} is no integer"),
                }
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32, u64, usize);

impl<T: Schematic> Schematic for Option<T> {
    fn schema() -> Schema {
        Schema::Optional(Box::new(T::schema()))
    }

    fn build(content: &Content) -> Self {
        match content {
            Content::Absent => None,
            Content::Present(value) => Some(T::build(value)),
            other => panic!("{other:?} is not optional"),
        }
    }
}

impl<T: Schematic> Schematic for Arc<T> {
    fn schema() -> Schema {
        T::schema()
    }

    fn build(content: &Content) -> Self {
        Arc::new(T::build(content))
    }
}

impl<T: Schematic> Schematic for Vec<T> {
    fn schema() -> Schema {
        Schema::List {
            item: Box::new(T::schema()),
            length: None,
        }
    }

    fn build(content: &Content) -> Self {
        content.items().iter().map(T::build).collect()
    }
}

impl<T: Schematic, const N: usize> Schematic for [T; N] {
    fn schema() -> Schema {
        Schema::List {
            item: Box::new(T::schema()),
            length: Some(N),
        }
    }

    fn build(content: &Content) -> Self {
        std::array::from_fn(|i| T::build(&content.items()[i]))
    }
}

impl<A: Schematic, B: Schematic> Schematic for (A, B) {
    fn schema() -> Schema {
        Schema::Pair(Box::new([A::schema(), B::schema()]))
    }

    fn build(content: &Content) -> Self {
        let items = content.items();
        (A::build(&items[0]), B::build(&items[1]))
    }
}

impl Schematic for Arc<Graph> {
    fn schema() -> Schema {
        Schema::Opaque
    }

    fn build(content: &Content) -> Self {
        static GRAPHS: OnceLock<[Arc<Graph>; OPAQUE]> = OnceLock::new();
        match content {
            Content::Opaque(which) => GRAPHS.get_or_init(Default::default)[*which].clone(),
            other => panic!("{other:?} is no graph"),
        }
    }
}

//! Names that the derive freezes, and what attributes are made of them.

use std::sync::Arc;

use crate::graph::Graph;
use crate::reflect::{Attribute, Attributes, Contents};
use crate::tensor::Tensor;
use crate::{ErrorCode, Reflect};

/// A record with two names that differ from those in Rust.
#[derive(Reflect)]
#[attribute(name = "Outer")]
struct Renamed {
    #[attribute(name = "strides")]
    steps: Vec<usize>,
    inner: Inner,
}

#[derive(Reflect)]
struct Inner {
    mode: Mode,
    list: Vec<Mode>,
    r#type: Option<u8>,
}

#[derive(Clone, Reflect)]
enum Mode {
    #[attribute(name = "Nearest")]
    Closest,
    Cubic {
        a: f32,
    },
    Wrapped(bool),
}

fn names(value: &dyn Reflect) -> Vec<(String, Attribute)> {
    Attributes::of(value).unwrap().0.into_iter().collect()
}

#[test]
fn names_are_the_frozen_ones() {
    let value = Renamed {
        steps: vec![2, usize::MAX],
        inner: Inner {
            mode: Mode::Wrapped(true),
            list: vec![Mode::Closest, Mode::Cubic { a: -0.5 }],
            r#type: Some(3),
        },
    };
    let text = |t: &str| Attribute::Text(t.to_string());
    let want = [
        ("inner", text("Inner")),
        ("inner.list.0", text("Nearest")),
        ("inner.list.1", text("Cubic")),
        ("inner.list.1.a", Attribute::Float(-0.5)),
        ("inner.mode", text("Wrapped")),
        ("inner.mode.value", Attribute::Int(1)),
        ("inner.type", Attribute::Int(3)),
        ("strides", Attribute::Ints(vec![2, usize::MAX as i64])),
    ];
    assert_eq!(names(&value), want.map(|(name, a)| (name.to_string(), a)));
}

#[test]
fn lists_of_names_are_texts_and_empty_ones_are_integers() {
    let inner = |list: Vec<Mode>| Inner {
        mode: Mode::Closest,
        list,
        r#type: None,
    };
    let nearest = Attribute::Text("Nearest".to_string());
    let texts = Attribute::Texts(vec!["Nearest".to_string(); 2]);
    let two = names(&inner(vec![Mode::Closest; 2]));
    assert_eq!(two, [("list", texts), ("mode", nearest.clone())].map(named));
    let none = names(&inner(Vec::new()));
    let empty = Attribute::Ints(Vec::new());
    assert_eq!(none, [("list", empty), ("mode", nearest)].map(named));
}

fn named((name, attribute): (&str, Attribute)) -> (String, Attribute) {
    (name.to_string(), attribute)
}

#[derive(Reflect)]
struct WithoutForm {
    plain: bool,
    nested: Vec<Kept>,
}

#[derive(Reflect)]
struct Kept {
    #[attribute(hidden)]
    table: Vec<f64>,
}

#[test]
fn a_field_without_a_form_is_named() {
    let value = |x: f64| WithoutForm {
        plain: true,
        nested: vec![Kept { table: vec![x] }],
    };
    let error = Attributes::of(&value(0.0)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unsupported);
    assert!(error.message().contains("`nested.0.table`"), "{error}");
    assert!(Contents(&value(0.0)) == Contents(&value(0.0)));
    assert!(Contents(&value(0.0)) != Contents(&value(-0.0)));
}

#[derive(Reflect)]
struct Body {
    graph: Arc<Graph>,
}

#[test]
fn graphs_have_no_form_and_are_the_same_only_as_themselves() {
    let graph = Arc::new(Graph::new("body"));
    let body = |graph: &Arc<Graph>| Body {
        graph: graph.clone(),
    };
    assert!(Attributes::of(&body(&graph)).is_err());
    assert!(Contents(&body(&graph)) == Contents(&body(&graph)));
    let twin = Arc::new(Graph::new("body"));
    assert!(Contents(&body(&graph)) != Contents(&body(&twin)));
}

#[test]
fn single_precision_is_widened_exactly() {
    let wide = |x: f32| match &names(&Mode::Cubic { a: x })[..] {
        [(_, Attribute::Float(wide))] => wide.to_bits(),
        other => panic!("{other:?}"),
    };
    assert_eq!(wide(0.1), f64::from(0.1f32).to_bits());
    assert_eq!(wide(f32::from_bits(0xff80_0001)), 0xfff0_0000_2000_0000);
    assert_eq!(wide(-0.0), (-0.0f64).to_bits());
}

#[test]
fn tensors_are_attributes() {
    let value = Tensor::from_slice(&[2], &[1i64, 2]).unwrap();
    let operator = crate::ops::DictVectorizer {
        keys: value.clone(),
    };
    assert_eq!(
        names(&operator),
        [("keys".to_string(), Attribute::Tensor(value))]
    );
}

//! Definitions that are refused, and the names that others get.

use syn::DeriveInput;

use crate::expand::reflect;
use crate::parse::{Body, Definition};

/// The error of a definition.
fn refused(text: &str) -> String {
    let input: DeriveInput = syn::parse_str(text).unwrap();
    match Definition::new(&input) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{text} is taken"),
    }
}

#[test]
fn what_has_no_frozen_names_is_refused() {
    for (text, why) in [
        ("union Bits { a: u32, b: f32 }", "union"),
        ("struct List<T> { items: Vec<T> }", "parameters"),
        ("struct Pair(u32, u32);", "tuple"),
        ("enum Kind { Both(u32, u32) }", "tuple"),
        (
            "struct Twice { #[attribute(name = \"b\")] a: u32, b: u32 }",
            "`b` is taken",
        ),
        (
            "enum Twice { #[attribute(name = \"B\")] A, B }",
            "`B` is taken",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn options_that_mean_nothing_are_refused() {
    for (text, why) in [
        (
            "struct Odd { #[attribute(name = \"a.b\")] a: u32 }",
            "ASCII",
        ),
        ("struct Odd { #[attribute(name = \"\")] a: u32 }", "ASCII"),
        ("struct Odd { #[attribute(name = \"0\")] a: u32 }", "digit"),
        (
            "struct Odd { #[attribute(names = \"a\")] a: u32 }",
            "name =",
        ),
        ("struct Odd { #[attribute(absent)] a: u32 }", "`absent`"),
        ("#[attribute(hidden)] struct Odd;", "`hidden`"),
        ("enum Odd { #[attribute(hidden)] A }", "`hidden`"),
        ("enum Odd { #[attribute(absent)] A(u32) }", "`absent`"),
    ] {
        let error = refused(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn every_field_is_visited_in_order() {
    let text = "struct Some { first: u32, #[attribute(name = \"second\")] r#type: bool, #[attribute(hidden)] last: f32 }";
    let input: DeriveInput = syn::parse_str(text).unwrap();
    let definition = Definition::new(&input).unwrap();
    let Body::Struct(fields) = &definition.body else {
        panic!("{text} is a struct");
    };
    let names: Vec<(&str, bool)> = fields.iter().map(|f| (&f.name[..], f.hidden)).collect();
    assert_eq!(names, [("first", false), ("second", false), ("last", true)]);
    let code = reflect(&definition).to_string();
    let places = [
        "visitor . field (\"first\"",
        "visitor . field (\"second\"",
        "visitor . hidden (\"last\"",
    ];
    let places = places.map(|call| code.find(call).unwrap());
    assert!(places.is_sorted(), "{code}");
}

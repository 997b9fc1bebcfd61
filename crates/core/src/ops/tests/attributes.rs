//! `docs/attributes.md`: every operator with its attributes as backends in libraries see them.

use crate::Reflect;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::identity::Extreme;
use super::*;
use crate::testing::{Known, Random, Record, Schema, Schematic, content, operators};

/// What an attribute can be.
#[derive(Default)]
struct Row {
    /// `integer`, `texts` and the like; several where variants have fields of one name.
    kinds: BTreeSet<&'static str>,
    /// What a text may be, where not any.
    names: Vec<&'static str>,
    optional: bool,
    /// The variants that have the field.
    only: Vec<String>,
}

type Rows = BTreeMap<String, Row>;

/// The rows of a field that is called `path`; false where it has no form.
fn describe(path: &str, schema: &Schema, optional: bool, rows: &mut Rows) -> bool {
    let mut plain = |kind| {
        let row = rows.entry(path.to_string()).or_default();
        row.kinds.insert(kind);
        row.optional |= optional;
        true
    };
    match schema {
        Schema::Bool => plain("boolean"),
        Schema::Int { .. } => plain("integer"),
        Schema::Float32 | Schema::Float64 => plain("float"),
        Schema::Text => plain("text"),
        Schema::Tensor => plain("tensor"),
        Schema::Opaque => false,
        Schema::Optional(value) => describe(path, value, true, rows),
        Schema::Pair(items) => describe_items(path, &items[0], optional, rows),
        Schema::List { item, .. } => describe_items(path, item, optional, rows),
        Schema::Struct(record) => {
            plain("text");
            named(path, record.name, rows);
            fields(path, record, None, rows)
        }
        Schema::Enum(variants) if is_dtype(variants) => plain("element type"),
        Schema::Enum(variants) => {
            plain("text");
            let mut whole = true;
            for variant in variants {
                match variant.absent {
                    true => rows.entry(path.to_string()).or_default().optional = true,
                    false => named(path, variant.name, rows),
                }
                whole &= fields(path, variant, Some(variant.name), rows);
            }
            whole
        }
    }
}

/// Element types have too many names to be listed again and again.
fn is_dtype(variants: &[Record]) -> bool {
    matches!(DType::schema(), Schema::Enum(all) if all.iter().map(|v| v.name).eq(variants.iter().map(|v| v.name)))
}

fn named(path: &str, name: &'static str, rows: &mut Rows) {
    let row = rows.entry(path.to_string()).or_default();
    if !row.names.contains(&name) {
        row.names.push(name);
    }
}

fn fields(path: &str, record: &Record, variant: Option<&str>, rows: &mut Rows) -> bool {
    let mut whole = true;
    for (name, schema, hidden) in &record.fields {
        let path = match path {
            "" => name.to_string(),
            _ => format!("{path}.{name}"),
        };
        whole &= !hidden && describe(&path, schema, false, rows);
        if let (Some(row), Some(variant)) = (rows.get_mut(&path), variant) {
            row.only.push(variant.to_string());
        }
    }
    whole
}

fn describe_items(path: &str, item: &Schema, optional: bool, rows: &mut Rows) -> bool {
    let each = format!("{path}.N");
    let row = match item {
        Schema::Bool => "booleans",
        Schema::Int { .. } => "integers",
        Schema::Float32 | Schema::Float64 => "floats",
        Schema::Text => "texts",
        Schema::Enum(variants) => {
            for variant in variants.iter().filter(|v| v.fields.is_empty()) {
                named(path, variant.name, rows);
            }
            let full = variants.iter().any(|v| !v.fields.is_empty());
            if full && !describe(&each, item, true, rows) {
                return false;
            }
            "texts"
        }
        _ => return describe(&each, item, false, rows),
    };
    let list = rows.entry(path.to_string()).or_default();
    list.kinds.insert(row);
    list.optional |= optional;
    true
}

/// The rows of an operator; `None` where one of its fields has no form.
fn rows(known: &Known) -> Option<Rows> {
    let mut rows = Rows::new();
    let whole = match &known.schema {
        Schema::Struct(record) => fields("", record, None, &mut rows),
        other => panic!("{other:?} is no operator"),
    };
    whole.then_some(rows)
}

/// All operators but the user's, whose attributes are those of the file.
fn own() -> impl Iterator<Item = Known> {
    operators().into_iter().filter(|o| o.type_name != "Custom")
}

/// Operators of a type, enough to meet every variant.
fn samples(known: &Known) -> impl Iterator<Item = std::sync::Arc<dyn Operator>> {
    let mut taste = Extreme(Random(11));
    (0..2000).map(move |_| (known.build)(&content(&known.schema, &mut taste)))
}

fn cell(row: &Row) -> String {
    let kinds: Vec<_> = row.kinds.iter().copied().collect();
    let mut text = kinds.join(" or ");
    if !row.names.is_empty() {
        text += &format!(": `{}`", row.names.join("`, `"));
    }
    if row.optional {
        text += "; may be absent";
    }
    if !row.only.is_empty() {
        text += &format!("; only of `{}`", row.only.join("`, `"));
    }
    text
}

/// The document behind its introduction.
fn table() -> String {
    let (mut sections, mut without) = (BTreeMap::new(), Vec::new());
    for known in own() {
        let names: BTreeSet<String> = samples(&known).map(|o| o.name().to_string()).collect();
        let names: Vec<String> = names.into_iter().collect();
        let named = signatures::samples(&known);
        let met: Vec<&String> = named.keys().collect();
        assert!(
            met.into_iter().eq(&names),
            "inference takes none of some of {names:?}"
        );
        let mut text = forms::forms(&known, &named);
        match rows(&known) {
            None => without.extend(names.clone()),
            Some(rows) if rows.is_empty() => {}
            Some(rows) => {
                let lines = rows
                    .iter()
                    .map(|(name, row)| format!("| `{name}` | {} |\n", cell(row)));
                let lines: String = lines.collect();
                text += &format!("\n| attribute | value |\n|---|---|\n{lines}");
            }
        }
        sections.insert(names.join(", "), text);
    }
    without.sort();
    let dtypes = DType::ALL.map(|d| format!("`{}` ({d})", variant_name(&d)));
    let mut text = format!(
        "## Element types\n\n{}\n\n| name | element types |\n|---|---|\n{}\n\
         ## Operators that libraries are not offered\n\n{}\n\n## Operators\n",
        dtypes.join(", "),
        signatures::legend(),
        without.join(", ")
    );
    for (names, section) in sections {
        text += &format!("\n### {names}\n{section}");
    }
    text
}

/// The frozen name of an element type.
pub(super) fn variant_name(value: &DType) -> String {
    match &Attributes::of(&Named(*value)).unwrap().0["value"] {
        Attribute::Text(name) => name.clone(),
        other => panic!("{other:?} is no name"),
    }
}

#[derive(Reflect)]
struct Named(DType);

fn document() -> PathBuf {
    root().join("docs/attributes.md")
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `KILIM_BACKEND_VERSION` in the header of the C interface.
fn version() -> String {
    let header = std::fs::read_to_string(root().join("include/kilim_backend.h")).unwrap();
    let (_, rest) = header.split_once("#define KILIM_BACKEND_VERSION ").unwrap();
    rest.split('u').next().unwrap().to_string()
}

#[test]
fn the_document_lists_what_libraries_see() {
    let text = std::fs::read_to_string(document()).unwrap();
    let (head, _) = text.split_once("\nVersion ").unwrap();
    let said = format!(
        "{head}\nVersion {} of the interface.\n\n{}",
        version(),
        table()
    );
    if std::env::var_os("KILIM_WRITE_DOCS").is_some() {
        std::fs::write(document(), &said).unwrap();
        return;
    }
    let mut lines = said.lines().zip(text.lines());
    let first = lines.find(|(want, have)| want != have);
    assert!(
        text == said,
        "docs/attributes.md is not what libraries see, first at {first:?}. Names and values that go or change their \
         meaning need another KILIM_BACKEND_VERSION, or `#[attribute(name = ...)]` that keeps them. \
         KILIM_WRITE_DOCS=1 cargo test -p kilim-core writes the document anew."
    );
}

/// `a.N.b` for `a.7.b`.
fn numbered(name: &str) -> String {
    let part = |p: &str| match p.parse::<usize>() {
        Ok(_) => "N".to_string(),
        Err(_) => p.to_string(),
    };
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}

#[test]
fn operators_have_the_attributes_of_the_document() {
    for known in own() {
        let Some(rows) = rows(&known) else {
            assert!(samples(&known).all(|o| o.attributes().is_err()));
            continue;
        };
        let mut met = BTreeSet::new();
        for operator in samples(&known) {
            for (name, attribute) in operator.attributes().unwrap().0 {
                let name = numbered(&name);
                let what = || format!("{}: {name} {attribute:?}", known.type_name);
                let Some(row) = rows.get(&name) else {
                    // An empty list of what has attributes for each item.
                    let empty = attribute == Attribute::Ints(Vec::new());
                    assert!(
                        empty && rows.contains_key(&format!("{name}.N")),
                        "{}",
                        what()
                    );
                    continue;
                };
                assert!(fits(row, &attribute), "{}", what());
                met.insert(name);
            }
        }
        let all: BTreeSet<String> = rows.into_keys().collect();
        assert_eq!(met, all, "{}", known.type_name);
    }
}

fn fits(row: &Row, attribute: &Attribute) -> bool {
    let named = |text: &String| row.names.is_empty() || row.names.contains(&text.as_str());
    let (kinds, named): (&[&str], bool) = match attribute {
        Attribute::Int(_) => (&["integer", "boolean"], true),
        Attribute::Float(_) => (&["float"], true),
        Attribute::Text(text) if row.kinds.contains("element type") => {
            let known = DType::ALL.iter().any(|d| variant_name(d) == *text);
            (&["element type"], known)
        }
        Attribute::Text(text) => (&["text"], named(text)),
        Attribute::Ints(list) if list.is_empty() => {
            (&["integers", "booleans", "floats", "texts"], true)
        }
        Attribute::Ints(_) => (&["integers", "booleans"], true),
        Attribute::Floats(_) => (&["floats"], true),
        Attribute::Texts(texts) => (&["texts"], texts.iter().all(named)),
        Attribute::Tensor(_) => (&["tensor"], true),
        Attribute::Bytes(_) => (&[], false),
    };
    named && kinds.iter().any(|kind| row.kinds.contains(kind))
}

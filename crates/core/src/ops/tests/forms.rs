//! What passes make of operators, for `docs/attributes.md`.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::Path;

use super::signatures::Samples;
use super::*;
use crate::graph::{Presence, Slot};
use crate::passes::Rule;
use crate::testing::Known;

/// What stands below the heading of an operator: who makes it, and what it may have more than files give it; inputs and outputs.
pub fn forms(known: &Known, named: &BTreeMap<String, Samples>) -> String {
    let Some(samples) = named.values().next() else {
        return String::new();
    };
    let signature = samples.signature();
    let made = made(known, named);
    let mut text = String::new();
    if !made.is_empty() {
        text += &format!("\n{}\n", made.join(" "));
    }
    let inputs = table("input", signature.inputs, &|i| {
        by_name(named, &|s| s.input(i))
    });
    let outputs = table("output", signature.outputs, &|o| {
        by_name(named, &|s| s.output(o))
    });
    text + &inputs + &outputs
}

fn table(what: &str, slots: &[Slot], types: &dyn Fn(usize) -> String) -> String {
    if slots.is_empty() {
        return String::new();
    }
    let line = |(i, slot): (usize, &Slot)| {
        let (number, presence) = match slot.presence {
            Presence::Required => ("", ""),
            Presence::Optional => ("", "may be absent"),
            Presence::List => (".N", "any number"),
        };
        format!("| `{}{number}` | {} | {presence} |\n", slot.name, types(i))
    };
    let lines: String = slots.iter().enumerate().map(line).collect();
    format!("\n| {what} | element type | |\n|---|---|---|\n{lines}")
}

/// What is said of the operators of each name; the names stand where not all are alike.
fn by_name(named: &BTreeMap<String, Samples>, say: &dyn Fn(&Samples) -> String) -> String {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, samples) in named {
        groups.entry(say(samples)).or_default().push(name);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let mut parts = groups.into_iter();
    let mut text = parts.next().map_or_else(String::new, |(said, _)| said);
    for (said, names) in parts {
        text += &format!("; of {} {said}", names.join(", "));
    }
    text
}

fn made(known: &Known, named: &BTreeMap<String, Samples>) -> Vec<String> {
    let all = || named.values().flat_map(|s| &s.operators);
    let Some(op) = all().next() else {
        return Vec::new();
    };
    let slots = op.signature().inputs;
    let id = (&**op as &dyn Any).type_id();
    let rules = |input: Option<&str>| {
        let makes = |r: &&Rule| r.makes().iter().any(|m| m.op == id && m.input == input);
        let found: Vec<_> = Rule::ALL
            .iter()
            .filter(makes)
            .map(|r| format!("`{r}`"))
            .collect();
        (!found.is_empty()).then(|| found.join(", "))
    };
    let mut found = Vec::new();
    if let Some(makers) = rules(None) {
        let alone = match in_formats(known.type_name) {
            true => "",
            false => " alone: no file has it",
        };
        found.push(format!("Made by {makers}{alone}."));
    }
    if all().any(|op| op.with_activation(Activation::Relu).is_some()) {
        found.push(format!(
            "`{}` gives it an `activation`.",
            Rule::FuseActivation
        ));
    }
    let listed = slots.iter().map(|slot| (slot.name, rules(Some(slot.name))));
    let joined = [
        (op.addend(), Rule::FuseResidual),
        (op.factor(), Rule::FuseFactor),
    ];
    let joined = joined
        .into_iter()
        .filter_map(|(i, rule)| Some((slots[i?].name, Some(format!("`{rule}`")))));
    for (input, rules) in listed.chain(joined) {
        found.extend(rules.map(|rules| format!("{rules} may give it `{input}`.")));
    }
    if let Some(spatial) = all().find_map(|op| op.spatial()) {
        let data: Vec<_> = spatial
            .data
            .iter()
            .map(|&i| format!("`{}`", slots[i].name))
            .collect();
        found.push(format!(
            "`{}` sets `channels_last`: of {} and the output.",
            Rule::ChannelsLast,
            data.join(", ")
        ));
    }
    found
}

/// Whether an importer names the type.
fn in_formats(type_name: &str) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/src");
    names(&folder, type_name)
}

fn names(folder: &Path, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return names(&path, word);
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        text.split(|c| !is_name(c)).any(|w| w == word)
    })
}

#[test]
fn what_rules_list_is_there() {
    let known = crate::testing::operators();
    let all: Vec<_> = known
        .iter()
        .flat_map(|known| super::signatures::samples(known).into_values())
        .map(|samples| samples.operators[0].clone())
        .collect();
    for rule in Rule::ALL {
        for made in rule.makes() {
            let op = all
                .iter()
                .find(|op| (&***op as &dyn Any).type_id() == made.op);
            let op = op.unwrap_or_else(|| panic!("{rule} makes no operator"));
            let has = |name| op.signature().inputs.iter().any(|s| s.name == name);
            assert!(
                made.input.is_none_or(has),
                "{rule}: {} has no {:?}",
                op.name(),
                made.input
            );
        }
    }
}

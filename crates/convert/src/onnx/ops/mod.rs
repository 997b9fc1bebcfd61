//! The operators of graphs, and what ONNX has for each. A file holds a family.

pub mod control;
mod index;
mod movement;
mod norm;
mod pointwise;
mod product;
mod quantised;
mod recurrent;
mod sample;
mod values;

use std::sync::Arc;

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::Operator;
use kilim_formats::build::OpTable;

use super::form::Form;

/// The operators of one file by their names ([`Operator::name`]).
type Family = OpTable<&'static str, Form>;

static FAMILIES: [&Family; 10] = [
    &pointwise::OPERATORS,
    &movement::OPERATORS,
    &index::OPERATORS,
    &norm::OPERATORS,
    &product::OPERATORS,
    &sample::OPERATORS,
    &quantised::OPERATORS,
    &recurrent::OPERATORS,
    &control::OPERATORS,
    &values::OPERATORS,
];

/// What ONNX has for an operator.
///
/// # Errors
/// `Unsupported` where it has none.
pub fn find(op: &Arc<dyn Operator>) -> Result<&'static Form> {
    if op.given_attributes().is_some() {
        return Err(unsupported("an operator that the session brings"));
    }
    let mut found = FAMILIES.iter().filter_map(|family| family.find(op.name()));
    found
        .next()
        .ok_or_else(|| unsupported("an operator that ONNX does not have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_stands_once_and_in_order() {
        let mut all = Vec::new();
        for family in FAMILIES {
            let names: Vec<_> = family.0.iter().map(|(name, _)| *name).collect();
            assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
            all.extend(names);
        }
        all.sort_unstable();
        let twice = all.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None);
    }
}

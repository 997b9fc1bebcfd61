//! Control flow.

use kilim_core::error::Result;
use kilim_core::graph::Node;
use kilim_core::ops::{Attribute, Scan};

use super::Family;
use crate::onnx::form::Form;
use crate::onnx::node::NodeForm;
use kilim_formats::build::OpTable;

pub static OPERATORS: Family = OpTable(&[
    ("If", Form::by_hand(|_| Ok(()))),
    ("Loop", Form::by_hand(|_| Ok(()))),
    ("Scan", Form::by_hand(scan)),
]);

/// The attributes that hold the bodies of a node with so many, in the order of [`kilim_core::Operator::bodies`].
pub fn body_names(bodies: usize) -> &'static [&'static str] {
    match bodies {
        2 => &["then_branch", "else_branch"],
        _ => &["body"],
    }
}

/// The inputs of a node that the file has, too: those behind are captures, which bodies read by their names.
pub fn own_inputs(node: &Node) -> usize {
    let captures = node.op.bodies().map(|bodies| bodies.captures());
    captures.unwrap_or(usize::MAX)
}

fn scan(n: &mut NodeForm) -> Result<()> {
    let op = n.op::<Scan>()?;
    n.set_int("num_scan_inputs", op.scan_inputs as i64);
    let flags = |list: &[bool]| list.iter().map(|&flag| flag.into()).collect();
    for (name, list) in [
        ("scan_input_axes", op.input_axes.clone()),
        ("scan_input_directions", flags(&op.input_reverse)),
        ("scan_output_axes", op.output_axes.clone()),
        ("scan_output_directions", flags(&op.output_reverse)),
    ] {
        if !list.is_empty() {
            n.set(name, Attribute::Ints(list));
        }
    }
    Ok(())
}

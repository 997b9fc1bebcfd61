//! Recurrent layers.

use kilim_core::error::Result;
use kilim_core::ops::{Attribute, CellActivation, Gru, Lstm, Recurrent, Rnn};

use super::Family;
use crate::onnx::form::{Form, Rule};
use crate::onnx::node::NodeForm;
use Rule::{As, Said, Told};
use kilim_formats::build::OpTable;

const CELL: Form = Form::of(&[
    ("batch_first", As("layout")),
    ("cell", Told),
    ("cell.activations", Told),
    ("clip", As("clip")),
    (
        "direction",
        Said(
            "direction",
            &[
                ("Bidirectional", "bidirectional"),
                ("Forward", "forward"),
                ("Reverse", "reverse"),
            ],
        ),
    ),
    ("hidden", As("hidden_size")),
    ("input_forget", As("input_forget")),
    ("linear_before_reset", As("linear_before_reset")),
]);

pub static OPERATORS: Family = OpTable(&[
    ("GRU", CELL.also(|n| activations(n, &n.op::<Gru>()?.cell))),
    ("LSTM", CELL.also(|n| activations(n, &n.op::<Lstm>()?.cell))),
    ("RNN", CELL.also(|n| activations(n, &n.op::<Rnn>()?.cell))),
]);

/// The activations of all gates; their parameters stand in the order of those that have some.
fn activations(n: &mut NodeForm, cell: &Recurrent) -> Result<()> {
    let (mut names, mut alphas, mut betas) = (Vec::new(), Vec::new(), Vec::new());
    for &activation in &cell.activations {
        let (name, alpha, beta) = match activation {
            CellActivation::Sigmoid => ("Sigmoid", None, None),
            CellActivation::Tanh => ("Tanh", None, None),
            CellActivation::Relu => ("Relu", None, None),
            CellActivation::Affine { alpha, beta } => ("Affine", Some(alpha), Some(beta)),
            CellActivation::LeakyRelu { alpha } => ("LeakyRelu", Some(alpha), None),
            CellActivation::ThresholdedRelu { alpha } => ("ThresholdedRelu", Some(alpha), None),
            CellActivation::ScaledTanh { alpha, beta } => ("ScaledTanh", Some(alpha), Some(beta)),
            CellActivation::HardSigmoid { alpha, beta } => ("HardSigmoid", Some(alpha), Some(beta)),
            CellActivation::Elu { alpha } => ("Elu", Some(alpha), None),
            CellActivation::Softsign => ("Softsign", None, None),
            CellActivation::Softplus => ("Softplus", None, None),
        };
        names.push(name.to_string());
        alphas.extend(alpha.map(f64::from));
        betas.extend(beta.map(f64::from));
    }
    n.set("activations", Attribute::Texts(names));
    for (name, list) in [("activation_alpha", alphas), ("activation_beta", betas)] {
        if !list.is_empty() {
            n.set(name, Attribute::Floats(list));
        }
    }
    Ok(())
}

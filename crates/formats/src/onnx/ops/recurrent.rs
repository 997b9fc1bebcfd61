//! Recurrent layers.

use kilim_core::error::Result;
use kilim_core::ops::{CellActivation, Direction, Gru, Lstm, Recurrent, Rnn};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("GRU", |b| {
        let cell = recurrent(b, &["Sigmoid", "Tanh"])?;
        let linear_before_reset = b.flag("linear_before_reset")?;
        b.emit_same(Gru {
            cell,
            linear_before_reset,
        })
    }),
    ("LSTM", |b| {
        let cell = recurrent(b, LSTM_ACTIVATIONS)?;
        let input_forget = b.flag("input_forget")?;
        b.emit_same(Lstm {
            cell,
            input_forget,
            cell_clip: None,
            rounds_state: false,
        })
    }),
    ("RNN", |b| {
        let cell = recurrent(b, &["Tanh"])?;
        b.emit_same(Rnn { cell })
    }),
]);

/// The activations of one direction where the node has none.
pub const LSTM_ACTIVATIONS: &[&str] = &["Sigmoid", "Tanh", "Tanh"];

/// `defaults` are the activations of one direction.
pub fn recurrent(b: &mut NodeBuilder, defaults: &[&str]) -> Result<Recurrent> {
    let direction = match b.text_or("direction", "forward")? {
        "forward" => Direction::Forward,
        "reverse" => Direction::Reverse,
        "bidirectional" => Direction::Bidirectional,
        other => return Err(unknown("direction", other)),
    };
    let wanted = defaults.len() * direction.count();
    let names = match b.texts("activations")? {
        // The default of RNN, written out, is for two directions whether there are two or not.
        Some(mut names) if names == ["Tanh", "Tanh"] => {
            names.truncate(wanted);
            names
        }
        Some(names) => names,
        None => (0..direction.count())
            .flat_map(|_| defaults.iter().map(|n| n.to_string()))
            .collect(),
    };
    if names.len() != wanted {
        return Err(invalid(format!(
            "{} activations where {wanted} are needed",
            names.len()
        )));
    }
    let alphas = b.floats("activation_alpha")?.unwrap_or_default();
    let betas = b.floats("activation_beta")?.unwrap_or_default();
    let (mut alphas, mut betas) = (alphas.into_iter(), betas.into_iter());
    let activations = names
        .iter()
        .map(|name| activation(name, &mut alphas, &mut betas))
        .collect::<Result<_>>()?;
    let hidden = match b.int("hidden_size")? {
        Some(_) => b.count("hidden_size", None)?,
        None => {
            let r = b.input(2)?;
            b.fact(r)
                .shape
                .and_then(|s| s.0.last()?.known())
                .ok_or_else(|| invalid("the attribute `hidden_size` is missing"))?
        }
    };
    Ok(Recurrent {
        hidden,
        direction,
        activations,
        clip: b.float("clip")?.filter(|c| *c > 0.0),
        batch_first: b.flag("layout")?,
    })
}

/// The activation `name`. Parameters come from the lists in order, and only activations that have parameters
/// take one.
fn activation(
    name: &str,
    alphas: &mut impl Iterator<Item = f32>,
    betas: &mut impl Iterator<Item = f32>,
) -> Result<CellActivation> {
    let mut alpha = |default| alphas.next().unwrap_or(default);
    let mut beta = |default| betas.next().unwrap_or(default);
    Ok(match name.to_ascii_lowercase().as_str() {
        "sigmoid" => CellActivation::Sigmoid,
        "tanh" => CellActivation::Tanh,
        "relu" => CellActivation::Relu,
        "softsign" => CellActivation::Softsign,
        "softplus" => CellActivation::Softplus,
        "affine" => CellActivation::Affine {
            alpha: alpha(1.0),
            beta: beta(0.0),
        },
        "leakyrelu" => CellActivation::LeakyRelu { alpha: alpha(0.01) },
        "thresholdedrelu" => CellActivation::ThresholdedRelu { alpha: alpha(1.0) },
        "scaledtanh" => CellActivation::ScaledTanh {
            alpha: alpha(1.0),
            beta: beta(1.0),
        },
        "hardsigmoid" => CellActivation::HardSigmoid {
            alpha: alpha(0.2),
            beta: beta(0.5),
        },
        "elu" => CellActivation::Elu { alpha: alpha(1.0) },
        other => return Err(unknown("activations", other)),
    })
}

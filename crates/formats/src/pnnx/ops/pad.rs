//! Data with something around it.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Pad, PadMode};

use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;

/// What PyTorch calls a mode.
///
/// # Errors
/// `Unsupported` where it is unknown.
pub fn mode_of(word: &str) -> Result<PadMode> {
    Ok(match word {
        "" | "constant" => PadMode::Constant,
        "reflect" => PadMode::Reflect,
        "replicate" => PadMode::Edge,
        "circular" => PadMode::Wrap,
        other => return Err(unsupported(format!("the padding mode `{other}`"))),
    })
}

/// The function `F.pad`.
pub fn function(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    let pads = layer.need("pad")?.ints()?;
    padded(imp, layer, mode_of(&layer.word("mode")?)?, &pads)
}

/// A module along `axes` axes.
pub fn module(imp: &mut Import, layer: &Layer, axes: usize, mode: PadMode) -> Result<ValueId> {
    let pads = layer.need("padding")?.ints()?;
    let pads = match pads[..] {
        [one] => vec![one; 2 * axes],
        _ => pads,
    };
    padded(imp, layer, mode, &pads)
}

/// Pads in front and behind, those of the last axis first.
fn padded(imp: &mut Import, layer: &Layer, mode: PadMode, pads: &[i64]) -> Result<ValueId> {
    let x = layer.x()?;
    let rank = imp.rank(x)?;
    if !pads.len().is_multiple_of(2) || pads.len() > 2 * rank {
        return Err(invalid("a padding is for another number of axes")
            .with_expected(format!("at most {} numbers, two for each axis", 2 * rank))
            .with_got(pads.len()));
    }
    let mut both = vec![0; 2 * rank];
    for (i, pair) in pads.chunks_exact(2).enumerate() {
        let axis = rank - 1 - i;
        both[axis] = pair[0];
        both[rank + axis] = pair[1];
    }
    let value = match mode {
        PadMode::Constant => Some(imp.number(layer.float("value", 0.0)?, x)?),
        _ => None,
    };
    let pads = imp.i64s(&both)?;
    imp.step(Pad { mode }, &[Some(x), Some(pads), value])
}

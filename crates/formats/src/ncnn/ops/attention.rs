//! Attention.

use kilim_core::Dim;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::rotary::Angles;
use kilim_core::ops::{Attention, RotaryEmbedding};

use super::quantized::of_rows;
use super::{Outputs, fixed};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

/// The layer `SDPA`: queries, keys and values `[heads, steps, size]`, perhaps a mask that is added to the scores, perhaps keys and
/// values of before. Several heads of queries may share those of keys.
pub fn sdpa(imp: &mut Import, layer: &Layer) -> Outputs {
    layer.params.refuse(18, "products in 8 bits")?;
    let query = layer.input(0)?;
    let (mut key, mut value) = (layer.input(1)?, layer.input(2)?);
    let masked = layer.params.flag(5, false)?;
    let mask = if masked { Some(layer.input(3)?) } else { None };
    let cached = layer.params.flag(7, false)?;
    if cached {
        let past = 3 + usize::from(masked);
        key = imp.concat(&[layer.input(past)?, key], 2)?;
        value = imp.concat(&[layer.input(past + 1)?, value], 2)?;
    }
    let scale = match layer.params.float(6, 0.0)? {
        0.0 => 1.0 / (fixed(imp, query, -1, "the size of heads")? as f32).sqrt(),
        scale => scale,
    };
    let attention = Attention {
        scale,
        ..Attention::default()
    };
    let y = imp.step(attention, &[Some(query), Some(key), Some(value), mask])?;
    Ok(match cached {
        true => vec![y, key, value],
        false => vec![y],
    })
}

/// The layer `MultiHeadAttention`: rows of queries, keys and values are projected, attended to head by head, and projected again.
pub fn multi_head(imp: &mut Import, layer: &Layer) -> Outputs {
    let p = layer.params;
    p.refuse(7, "keys and values of before")?;
    let quantized = p.int(18, 0)?;
    if quantized >= 400 {
        return Err(unsupported("weights in blocks of fewer bits"));
    }
    let (embed, heads, all) = (
        layer.positive(0, 0)?,
        layer.positive(1, 1)?,
        layer.positive(2, 0)?,
    );
    if embed % heads != 0 || all % embed != 0 {
        return Err(invalid("the weights do not divide into heads"));
    }
    let own = all / embed;
    let sizes = [own, layer.positive(3, embed)?, layer.positive(4, embed)?];
    let mut read = |rows: usize, columns: usize| -> Result<_> {
        Ok((imp.stored(&[rows, columns])?, imp.plain("bias", &[rows])?))
    };
    let stored = [
        read(embed, sizes[0])?,
        read(embed, sizes[1])?,
        read(embed, sizes[2])?,
        read(own, embed)?,
    ];
    let mut weights = Vec::new();
    for (i, (stored, bias)) in stored.into_iter().enumerate() {
        let scales = match quantized {
            0 => None,
            _ if i == 3 => Some(imp.plain("scale", &[1])?),
            _ => Some(imp.plain("scales", &[embed, 1])?),
        };
        weights.push((of_rows(imp, stored, scales)?, bias));
    }
    let mut inputs = layer.inputs.clone();
    let mask = match p.flag(5, false)? {
        true => Some(inputs.pop().ok_or_else(|| invalid("the mask is missing"))?),
        false => None,
    };
    let [query, key, value] = match inputs[..] {
        [all] => [all; 3],
        [query, others] => [query, others, others],
        [query, key, value] => [query, key, value],
        _ => return Err(invalid("queries, keys and values are missing")),
    };
    let mut parts = Vec::new();
    for (x, &(weights, bias)) in [query, key, value].into_iter().zip(&weights) {
        let x = imp.linear(x, weights, Some(bias))?;
        let x = imp.reshape(x, &[0, 0, heads as i64, -1])?;
        parts.push(imp.transpose(x, &[0, 2, 1, 3])?);
    }
    let attention = Attention {
        scale: p.float(6, 1.0 / ((embed / heads) as f32).sqrt())?,
        ..Attention::default()
    };
    let y = imp.step(
        attention,
        &[Some(parts[0]), Some(parts[1]), Some(parts[2]), mask],
    )?;
    let y = imp.transpose(y, &[0, 2, 1, 3])?;
    let y = imp.reshape(y, &[0, 0, -1])?;
    let (weights_out, bias_out) = weights[3];
    Ok(vec![imp.linear(y, weights_out, Some(bias_out))?])
}

/// The layer `RotaryEmbed`. Rows of cosines and sines may be longer than the pairs that turn.
pub fn rotary(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    let interleaved = layer.params.flag(0, false)?;
    let pairs = imp.length(x, -1).known().map(|n| n / 2);
    let mut angles = |i: usize| -> Result<ValueId> {
        let angles: ValueId = layer.input(i)?;
        match (pairs, imp.length(angles, -1)) {
            (Some(pairs), Dim::Known(n)) if n == pairs => Ok(angles),
            (Some(pairs), _) => imp.slice(angles, -1, 0, pairs as i64),
            (None, _) => Ok(angles),
        }
    };
    let inputs = [x, angles(1)?, angles(2)?];
    let op = RotaryEmbedding {
        interleaved,
        angles: Angles::OfPairs,
        partial: false,
    };
    Ok(vec![imp.op(op, &inputs)?])
}

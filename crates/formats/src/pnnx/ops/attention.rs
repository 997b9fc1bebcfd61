//! Attention.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::Attention;

use crate::build::number;
use crate::pnnx::import::Import;
use crate::pnnx::invalid;
use crate::pnnx::layer::Layer;
use crate::pnnx::value::Value;

/// A mask as numbers that are added to the scores. `sees` is what a boolean mask has where a query sees a key.
fn bias(imp: &mut Import, mask: ValueId, like: ValueId, sees: bool) -> Result<ValueId> {
    if imp.dtype(mask) != Some(DType::Bool) {
        return imp.cast_like(mask, like);
    }
    let dtype = imp.dtype(like).unwrap_or(DType::F32);
    let [zero, never] = [0.0, f64::NEG_INFINITY].map(|n| number(n, dtype));
    let (zero, never) = (imp.tensor_value(zero?), imp.tensor_value(never?));
    match sees {
        true => imp.choose(mask, zero, never),
        false => imp.choose(mask, never, zero),
    }
}

/// The size of heads, the innermost dimension.
fn head_size(imp: &Import, x: ValueId) -> Result<usize> {
    let known = imp.known_shape(x).and_then(|shape| shape.0.last()?.known());
    known.ok_or_else(|| unsupported("heads of an open size"))
}

/// The function `F.scaled_dot_product_attention`: queries, keys and values `[batch, heads, steps, size]`, or `[batch, steps, size]` of one
/// head.
pub fn scaled(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    if layer.float("dropout_p", 0.0)? != 0.0 {
        return Err(unsupported("what is drawn at random"));
    }
    let mut parts = [
        layer.tensor("query", 0)?,
        layer.tensor("key", 1)?,
        layer.tensor("value", 2)?,
    ];
    let one_head = match imp.rank(parts[0])? {
        4 => false,
        3 => true,
        _ => return Err(unsupported("attention of another number of dimensions")),
    };
    let mut mask = layer.optional_tensor("attn_mask", 3)?;
    if one_head {
        for part in &mut parts {
            *part = imp.unsqueeze(*part, &[1])?;
        }
        if let Some(given) = mask
            && imp.rank(given)? == 3
        {
            mask = Some(imp.unsqueeze(given, &[1])?);
        }
    }
    let mask = mask
        .map(|mask| bias(imp, mask, parts[0], true))
        .transpose()?;
    let own = (head_size(imp, parts[0])? as f64).sqrt().recip();
    let attention = Attention {
        scale: layer.float("scale", own)? as f32,
        causal: layer.flag("is_causal", false)?,
        ..Attention::default()
    };
    let inputs = [Some(parts[0]), Some(parts[1]), Some(parts[2]), mask];
    let y = imp.step(attention, &inputs)?;
    if one_head {
        imp.squeeze(y, &[1])
    } else {
        Ok(y)
    }
}

/// The module `nn.MultiheadAttention`. One input is queries, keys and values, two are queries, and keys and values.
pub fn multi_head(imp: &mut Import, layer: &Layer) -> Result<ValueId> {
    layer.refuse(
        "add_bias_kv",
        Value::Bool(false),
        "a key and a value of the module's own",
    )?;
    layer.refuse(
        "add_zero_attn",
        Value::Bool(false),
        "a key and a value of zeros",
    )?;
    let heads = layer.positive("num_heads", 0)?;
    let mask = layer.optional_tensor("attn_mask", usize::MAX)?;
    let mut inputs = layer.tensors()?;
    if mask.is_some() {
        inputs.pop();
    }
    let [query, key, value] = match inputs[..] {
        [all] => [all; 3],
        [query, others] => [query, others, others],
        [query, key, value] => [query, key, value],
        _ => return Err(invalid("queries, keys and values are missing")),
    };
    let batch_first = layer.flag("batch_first", false)?;
    if imp.rank(query)? != 3 {
        return Err(unsupported("steps without a batch"));
    }
    let embed = layer.positive("embed_dim", 0)?;
    if !embed.is_multiple_of(heads) || u32::try_from(embed).is_err() {
        return Err(invalid("the embedding does not divide into heads"));
    }
    let mut parts = Vec::new();
    for (i, (x, name)) in [(query, "q"), (key, "k"), (value, "v")]
        .into_iter()
        .enumerate()
    {
        let (weights, bias) = projection(imp, layer, i, name, embed)?;
        let x = imp.linear(x, weights, bias)?;
        let x = imp.reshape(x, &[0, 0, heads as i64, (embed / heads) as i64])?;
        // Batch and heads in front of steps.
        let perm = if batch_first {
            [0, 2, 1, 3]
        } else {
            [1, 2, 0, 3]
        };
        parts.push(imp.transpose(x, &perm)?);
    }
    let mask = mask.map(|mask| of_heads(imp, mask, heads)).transpose()?;
    let mask = mask
        .map(|mask| bias(imp, mask, parts[0], false))
        .transpose()?;
    let attention = Attention {
        scale: ((embed / heads) as f32).sqrt().recip(),
        ..Attention::default()
    };
    let y = imp.step(
        attention,
        &[Some(parts[0]), Some(parts[1]), Some(parts[2]), mask],
    )?;
    let perm = if batch_first {
        [0, 2, 1, 3]
    } else {
        [2, 0, 1, 3]
    };
    let y = imp.transpose(y, &perm)?;
    let y = imp.reshape(y, &[0, 0, embed as i64])?;
    let weights = imp.weights(layer, "out_proj.weight", usize::MAX)?;
    let bias = imp.optional_weights(layer, "out_proj.bias", usize::MAX)?;
    imp.linear(y, weights, bias)
}

/// Weights and bias that make queries, keys or values: a part of those of all, or their own.
fn projection(
    imp: &mut Import,
    layer: &Layer,
    i: usize,
    name: &str,
    embed: usize,
) -> Result<(ValueId, Option<ValueId>)> {
    let (begin, end) = ((i * embed) as i64, ((i + 1) * embed) as i64);
    let weights = match imp.stored(layer, "in_proj_weight")? {
        Some(all) => imp.slice(all, 0, begin, end)?,
        None => imp.weights(layer, &format!("{name}_proj_weight"), usize::MAX)?,
    };
    let bias = match imp.stored(layer, "in_proj_bias")? {
        Some(all) => Some(imp.slice(all, 0, begin, end)?),
        None => None,
    };
    Ok((weights, bias))
}

/// A mask `[queries, keys]`, or `[batch * heads, queries, keys]` with the heads apart.
fn of_heads(imp: &mut Import, mask: ValueId, heads: usize) -> Result<ValueId> {
    if imp.rank(mask)? != 3 {
        return Ok(mask);
    }
    let parts = [
        imp.i64s(&[-1, heads as i64])?,
        imp.dim(mask, 1)?,
        imp.dim(mask, 2)?,
    ];
    let shape = imp.vector(&parts)?;
    imp.reshape_to(mask, shape)
}

//! MultiHeadAttention.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::Split;

use super::attention::{attending, finish};
use super::{Family, OpTable};
use crate::onnx::builder::NodeBuilder;
use crate::onnx::ops::attention::{Place, Rules, split_heads};

pub static OPERATORS: Family = OpTable(&[("MultiHeadAttention", multi_head_attention)]);

/// `N` tensors `[batch, sequence, heads * size]` from `[batch, sequence, heads, N, size]`.
fn side_by_side<const N: usize>(b: &mut NodeBuilder, packed: ValueId) -> Result<[ValueId; N]> {
    let parts = b.apply(Split { axis: 3 }, &[Some(packed)], N)?;
    let mut apart = [packed; N];
    for (apart, part) in apart.iter_mut().zip(parts) {
        *apart = b.reshape(part, &[0, 0, -1])?;
    }
    Ok(apart)
}

/// Inputs: query, key, value, bias of all three, mask of keys `[batch, keys]`, bias of the scores,
/// cached key and value. All three, or key and value, may stand side by side in one tensor.
fn multi_head_attention(b: &mut NodeBuilder) -> Result<()> {
    let n = b.count("num_heads", None)?;
    let query = b.input(0)?;
    let mut parts = match (b.rank(query)?, b.optional(1)?, b.optional(2)?) {
        (3, Some(key), Some(value)) => [query, key, value],
        (3, Some(packed), None) => {
            let [key, value] = side_by_side(b, packed)?;
            [query, key, value]
        }
        (5, None, None) => side_by_side(b, query)?,
        _ => return Err(unsupported("queries, keys and values of these shapes")),
    };
    if let Some(bias) = b.optional(3)? {
        let mut sizes = Vec::with_capacity(3);
        for &part in &parts {
            sizes.push(b.dim(part, -1)?);
        }
        let sizes = b.vector(&sizes)?;
        let own = b.apply(Split { axis: 0 }, &[Some(bias), Some(sizes)], 3)?;
        for (part, own) in parts.iter_mut().zip(own) {
            *part = b.add(*part, own)?;
        }
    }
    let query = split_heads(b, parts[0], n)?;
    let mut present = [parts[1], parts[2]];
    let mut place = Place::Start;
    for (i, part) in present.iter_mut().enumerate() {
        match b.rank(*part)? {
            3 => *part = split_heads(b, *part, n)?,
            4 => {}
            _ => return Err(unsupported("packed keys and values")),
        }
        if let (0, Some(past)) = (i, b.optional(6)?) {
            place = Place::behind(b, past, query, *part)?;
        }
        if let Some(past) = b.optional(6 + i)? {
            *part = b.concat(&[past, *part], 2)?;
        }
        b.bind(1 + i, *part)?;
    }
    let rules = Rules {
        place,
        causal: b.flag("unidirectional")?,
        ..Rules::default()
    };
    let mut bias = b.optional(5)?;
    if let Some(mask) = b.optional(4)? {
        if b.rank(mask)? != 2 {
            return Err(unsupported("a mask that is not one number for each key"));
        }
        let filter = b.float_or("mask_filter_value", -10000.0)?;
        let kept = b.cast(mask, DType::Bool)?;
        let kept = b.unsqueeze(kept, &[1, 2])?;
        let zero = b.number(0.0, query)?;
        let filter = b.number(filter.into(), query)?;
        let filter = b.choose(kept, zero, filter)?;
        bias = Some(match bias {
            Some(bias) => b.add(bias, filter)?,
            None => filter,
        });
    }
    finish(b, &attending([query, present[0], present[1]], rules, bias))
}

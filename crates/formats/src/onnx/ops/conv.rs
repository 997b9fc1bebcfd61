//! Convolutions.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Col2Im, Conv, ConvTranspose, DeformConv, Padding};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("Col2Im", col2im),
    ("Conv", |b| {
        let weights = b.input(1)?;
        let conv = attributes(b, weights)?;
        b.emit_same(conv)
    }),
    ("ConvTranspose", conv_transpose),
    ("DeformConv", deform_conv),
]);

/// How many spatial dimensions there are: as many as the kernel has, or the weights after two.
pub fn spatial_rank(b: &mut NodeBuilder, weights: ValueId) -> Result<usize> {
    if let Some(kernel) = b.ints("kernel_shape")? {
        return Ok(kernel.len());
    }
    b.rank(weights)?
        .checked_sub(2)
        .ok_or_else(|| invalid("the weights have less than two dimensions"))
}

/// One number for each of `n` axes, `default` where the attribute is missing.
pub fn per_axis(b: &NodeBuilder, name: &str, n: usize, default: usize) -> Result<Vec<usize>> {
    let given = b.counts(name)?.unwrap_or_else(|| vec![default; n]);
    if given.len() == n {
        Ok(given)
    } else {
        Err(invalid(format!("the attribute `{name}` has a wrong length")).with_expected(n))
    }
}

/// Steps of a window, which are never zero.
pub fn steps(b: &NodeBuilder, name: &str, n: usize) -> Result<Vec<usize>> {
    let steps = per_axis(b, name, n, 1)?;
    if steps.contains(&0) {
        return Err(invalid(format!("the attribute `{name}` holds 0")));
    }
    Ok(steps)
}

/// `pads` or `auto_pad` of a window over `n` axes.
pub fn padding(b: &NodeBuilder, n: usize) -> Result<Padding> {
    Ok(match b.text_or("auto_pad", "NOTSET")? {
        "" | "NOTSET" => Padding::Explicit(per_axis(b, "pads", 2 * n, 0)?),
        "SAME_UPPER" => Padding::SameUpper,
        "SAME_LOWER" => Padding::SameLower,
        "VALID" => Padding::Valid,
        other => return Err(unknown("auto_pad", other)),
    })
}

/// What Conv and its relatives have.
pub fn attributes(b: &mut NodeBuilder, weights: ValueId) -> Result<Conv> {
    let n = spatial_rank(b, weights)?;
    Ok(Conv {
        strides: steps(b, "strides", n)?,
        dilations: steps(b, "dilations", n)?,
        padding: padding(b, n)?,
        groups: groups(b, "group")?,
        channels_last: false,
        activation: Activation::None,
    })
}

fn groups(b: &NodeBuilder, name: &str) -> Result<usize> {
    match b.count(name, Some(1))? {
        0 => Err(invalid(format!("the attribute `{name}` is 0"))),
        n => Ok(n),
    }
}

fn conv_transpose(b: &mut NodeBuilder) -> Result<()> {
    let weights = b.input(1)?;
    let conv = attributes(b, weights)?;
    let n = conv.strides.len();
    // Some exporters give batch and channels too.
    let output_shape = b
        .counts("output_shape")?
        .filter(|s| !s.is_empty())
        .map(|s| s[s.len().saturating_sub(n)..].to_vec());
    let op = ConvTranspose {
        output_padding: per_axis(b, "output_padding", n, 0)?,
        output_shape,
        strides: conv.strides,
        dilations: conv.dilations,
        padding: conv.padding,
        groups: conv.groups,
        channels_last: false,
        activation: Activation::None,
    };
    b.emit_same(op)
}

fn col2im(b: &mut NodeBuilder) -> Result<()> {
    let given = |name: &str| Ok(b.counts(name)?.unwrap_or_default());
    let op = Col2Im {
        strides: given("strides")?,
        dilations: given("dilations")?,
        pads: given("pads")?,
    };
    if op.strides.contains(&0) || op.dilations.contains(&0) {
        return Err(invalid("a step of 0"));
    }
    b.emit_same(op)
}

fn deform_conv(b: &mut NodeBuilder) -> Result<()> {
    let weights = b.input(1)?;
    let n = spatial_rank(b, weights)?;
    let op = DeformConv {
        strides: steps(b, "strides", n)?,
        dilations: steps(b, "dilations", n)?,
        pads: per_axis(b, "pads", 2 * n, 0)?,
        groups: groups(b, "group")?,
        offset_groups: groups(b, "offset_group")?,
    };
    b.emit_same(op)
}

//! What layers have in the file of the weights, one function for each order of buffers (`InterpretResource` in
//! `interpreter/tnn/layer_interpreter/`).

use kilim_core::dtype::DType;
use kilim_core::error::Result;

use crate::tnn::model::Stored;
use crate::tnn::stream::Stream;

/// Nothing.
pub fn nothing(_: &mut Stream) -> Result<Stored> {
    Ok(Vec::new())
}

/// One buffer.
pub fn one(stream: &mut Stream) -> Result<Stored> {
    Ok(vec![stream.buffer()?])
}

/// Factors and biases.
pub fn two(stream: &mut Stream) -> Result<Stored> {
    Ok(vec![stream.buffer()?, stream.buffer()?])
}

/// The layer's name, then a buffer.
pub fn named(stream: &mut Stream) -> Result<Stored> {
    stream.text()?;
    one(stream)
}

/// The name, factors and biases, which the file says whether it has.
pub fn named_with_bias(stream: &mut Stream) -> Result<Stored> {
    stream.text()?;
    let has_bias = stream.int()? != 0;
    let first = stream.buffer()?;
    let bias = if has_bias { stream.buffer()? } else { None };
    Ok(vec![first, bias])
}

/// Weights and biases of a convolution. Behind integers stand their zeros, which older files do not have, and scales.
pub fn convolution(stream: &mut Stream) -> Result<Stored> {
    let mut stored = named_with_bias(stream)?;
    scales(stream, &mut stored)?;
    Ok(stored)
}

/// Weights and biases of a product, as those of a convolution.
pub fn product(stream: &mut Stream) -> Result<Stored> {
    stream.text()?;
    let mut stored = two(stream)?;
    scales(stream, &mut stored)?;
    Ok(stored)
}

/// The zeros and scales of integers, where the first buffer holds any.
fn scales(stream: &mut Stream, stored: &mut Stored) -> Result<()> {
    if is_bytes(stored) {
        stored.extend(zeros_and_scales(stream)?);
    }
    Ok(())
}

fn is_bytes(stored: &Stored) -> bool {
    matches!(stored.first(), Some(Some(buffer)) if buffer.dtype() == DType::I8)
}

fn zeros_and_scales(stream: &mut Stream) -> Result<Stored> {
    let first = stream.buffer()?;
    match &first {
        Some(buffer) if buffer.dtype() == DType::I8 => Ok(vec![first, stream.buffer()?]),
        _ => Ok(vec![None, first]),
    }
}

/// The zeros, scales and biases of a blob.
pub fn blob_scale(stream: &mut Stream) -> Result<Stored> {
    let mut stored = zeros_and_scales(stream)?;
    stored.push(stream.buffer()?);
    Ok(stored)
}

/// A matrix, behind integers their scales.
pub fn matrix(stream: &mut Stream) -> Result<Stored> {
    let mut stored = one(stream)?;
    if is_bytes(&stored) {
        stored.push(stream.buffer()?);
    }
    Ok(stored)
}

/// Data and indices, each where a flag says so; behind integers their scales.
pub fn gather(stream: &mut Stream) -> Result<Stored> {
    let mut stored = Vec::new();
    for _ in 0..2 {
        let is_there = stream.int()? == 1;
        stored.push(if is_there { stream.buffer()? } else { None });
    }
    if is_bytes(&stored) {
        stored.push(stream.buffer()?);
    }
    Ok(stored)
}

/// Indices and updates, each where a flag of one byte says so.
pub fn scatter(stream: &mut Stream) -> Result<Stored> {
    let mut stored = Vec::new();
    for _ in 0..2 {
        let is_there = stream.flag()?;
        stored.push(if is_there { stream.buffer()? } else { None });
    }
    Ok(stored)
}

/// The tables of HDRGuide.
pub fn six(stream: &mut Stream) -> Result<Stored> {
    (0..6).map(|_| stream.buffer()).collect()
}

//! Products with matrices.

use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::ops::{Activation, Gather, MatMul, ReduceKind};
use kilim_core::{DType, Dim};

use super::quantized::{Scales, of_rows, widened};
use super::{Outputs, pointwise};
use crate::ncnn::import::Import;
use crate::ncnn::invalid;
use crate::ncnn::layer::Layer;

fn product(transpose_b: bool, alpha: f32) -> MatMul {
    MatMul {
        transpose_b,
        alpha: (alpha != 1.0).then_some(alpha),
        activation: Activation::None,
    }
}

/// The layer `InnerProduct`: of each row of a matrix whose rows fit the weights, else of all numbers of the blob.
pub fn inner_product(imp: &mut Import, layer: &Layer) -> Outputs {
    let mut x = layer.input(0)?;
    let outputs = layer.positive(0, 0)?;
    let all = layer.positive(2, 0)?;
    if all % outputs != 0 {
        return Err(invalid("the weights do not divide into the outputs").with_got(all));
    }
    let inputs = all / outputs;
    let stored = imp.stored(&[outputs, inputs])?;
    let bias = match layer.params.flag(1, false)? {
        true => Some(imp.plain("bias", &[outputs])?),
        false => None,
    };
    let scales = Scales::read(imp, layer, outputs, 1, false)?;
    let weights = match &scales {
        Some(scales) => {
            x = scales.input(imp, x)?;
            scales.weights(imp, stored)?
        }
        None => widened(imp, stored)?,
    };
    let rank = imp.blob_rank(x)?;
    let rows = match imp.length(x, -1) {
        Dim::Known(n) => rank == 2 && n == inputs,
        _ if rank == 2 => return Err(unsupported("rows of an open size")),
        _ => false,
    };
    if !rows && rank > 1 {
        x = imp.reshape(x, &[1, inputs as i64])?;
    }
    let y = imp.linear(x, weights, bias)?;
    Ok(vec![pointwise::activated(imp, layer, y, [9, 10])?])
}

/// The layer `MatMul`, which takes lists for rows on the left and for columns on the right.
pub fn matmul(imp: &mut Import, layer: &Layer) -> Outputs {
    let (a, b) = (layer.input(0)?, layer.input(1)?);
    let transpose_b = layer.params.flag(0, false)?;
    Ok(vec![match (imp.blob_rank(a)?, imp.blob_rank(b)?) {
        (1, 1) => {
            let products = imp.mul(a, b)?;
            imp.reduce(ReduceKind::Sum, products, &[1], true)?
        }
        (1, _) => {
            let row = imp.unsqueeze(a, &[1])?;
            let y = imp.op(product(transpose_b, 1.0), &[row, b])?;
            imp.squeeze(y, &[-2])?
        }
        (_, 1) => {
            let column = imp.unsqueeze(b, &[1])?;
            let y = imp.op(product(true, 1.0), &[a, column])?;
            imp.squeeze(y, &[-1])?
        }
        _ => imp.op(product(transpose_b, 1.0), &[a, b])?,
    }])
}

/// A matrix of the layer `Gemm`: another blob, whose rows may lie in its channels, or weights.
fn matrix(imp: &mut Import, blob: ValueId) -> Result<ValueId> {
    match imp.blob_rank(blob)? {
        1 => imp.unsqueeze(blob, &[1]),
        2 => Ok(blob),
        3 if imp.length(blob, 2) == Dim::Known(1) => imp.squeeze(blob, &[2]),
        _ => Err(unsupported(
            "a product of blobs with more than rows and columns",
        )),
    }
}

fn turned(imp: &mut Import, x: ValueId) -> Result<ValueId> {
    let rank = imp.rank(x)?;
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(rank - 1, rank - 2);
    imp.transpose(x, &perm)
}

/// The layer `Gemm`: `alpha * A' B' + beta * C`, each a blob or weights (`src/layer/gemm.cpp`).
pub fn gemm(imp: &mut Import, layer: &Layer) -> Outputs {
    let p = layer.params;
    let quantized = p.int(18, 0)?;
    if quantized >= 400 {
        return Err(unsupported("weights in blocks of fewer bits"));
    }
    let (transpose_a, transpose_b) = (p.flag(2, false)?, p.flag(3, false)?);
    let sides = [p.count(7, 0)?, p.count(8, 0)?, p.count(9, 0)?];
    let [m, n, k] = sides;
    let a = match p.flag(4, false)? {
        true => Some(imp.stored(&if transpose_a { [k, m] } else { [m, k] })?),
        false => None,
    };
    let b = match p.flag(5, false)? {
        true => Some(imp.stored(&if transpose_b { [n, k] } else { [k, n] })?),
        false => None,
    };
    let constant_c = p.flag(6, false)?;
    let c_shape: Option<&[usize]> = match p.int(10, 0)? {
        _ if !constant_c => None,
        -1 => None,
        0 => Some(&[1]),
        1 | 2 => Some(&[m, 1]),
        3 => Some(&[m, n]),
        4 => Some(&[n]),
        other => return Err(unsupported(format!("broadcasting number {other}"))),
    };
    let mut c = match c_shape {
        Some(shape) => Some(imp.tagged("c", shape)?),
        None => None,
    };
    let mut blobs = layer.inputs.iter().copied();
    let mut missing = || blobs.next().ok_or_else(|| invalid("an input is missing"));
    // Integers become floats: what ncnn rounds of the other matrix stays as it is.
    let a = match a {
        Some(stored) => {
            let scales = match quantized {
                0 => None,
                _ => Some(imp.plain("scales of a", &if transpose_a { [1, m] } else { [m, 1] })?),
            };
            of_rows(imp, stored, scales)?
        }
        None => matrix(imp, missing()?)?,
    };
    let b = match b {
        Some(stored) => {
            let scale = if quantized == 0 {
                None
            } else {
                Some(imp.plain("scale of b", &[1])?)
            };
            of_rows(imp, stored, scale)?
        }
        None => matrix(imp, missing()?)?,
    };
    let a = if transpose_a { turned(imp, a)? } else { a };
    let mut added = None;
    if !constant_c && let Some(blob) = blobs.next() {
        added = Some(blob);
    }
    let alpha = p.float(0, 1.0)?;
    let mut y = match (c, c_shape, p.float(1, 1.0)?) {
        // A bias of columns.
        (Some(bias), Some([_]), 1.0) if p.int(10, 0)? == 4 => {
            c = None;
            imp.op(product(transpose_b, alpha), &[a, b, bias])?
        }
        _ => imp.op(product(transpose_b, alpha), &[a, b])?,
    };
    // Where both matrices are weights, the dimension in front is missing.
    if imp.rank(y)? == 2 {
        y = imp.unsqueeze(y, &[0])?;
    }
    if let Some(blob) = added {
        c = Some(added_to(imp, blob, y)?);
    }
    if let Some(c) = c {
        let c = imp.scaled(c, p.float(1, 1.0)?)?;
        y = imp.add(y, c)?;
    }
    if p.flag(14, false)? {
        y = turned(imp, y)?;
    }
    if p.flag(11, false)? {
        y = imp.unsqueeze(y, &[2])?;
    }
    Ok(vec![y])
}

/// A blob that is added to a product. A list goes along the columns, or the rows where only these are as many.
fn added_to(imp: &mut Import, blob: ValueId, y: ValueId) -> Result<ValueId> {
    if imp.blob_rank(blob)? != 1 {
        return Ok(blob);
    }
    let (own, rows, columns) = (imp.length(blob, 1), imp.length(y, 1), imp.length(y, 2));
    if own == Dim::Known(1) || own.same(&columns) {
        return imp.unsqueeze(blob, &[1]);
    }
    match own.same(&rows) {
        true => imp.unsqueeze(blob, &[2]),
        false => Err(unsupported("a list along a dimension of an open size")),
    }
}

/// The layer `Embed`: rows of the weights by number.
pub fn embed(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    if imp.dtype(x) != Some(DType::I32) {
        return Err(unsupported("rows whose numbers another layer computes"));
    }
    let (size, rows) = (layer.positive(0, 0)?, layer.positive(1, 0)?);
    let stored = imp.stored(&[rows, size])?;
    let bias = match layer.params.flag(2, false)? {
        true => Some(imp.plain("bias", &[size])?),
        false => None,
    };
    let scale = match layer.params.flag(18, false)? {
        true => Some(imp.plain("scale", &[1])?),
        false => None,
    };
    let table = of_rows(imp, stored, scale)?;
    let mut y = imp.op(Gather { axis: 0 }, &[table, x])?;
    if let Some(bias) = bias {
        y = imp.add(y, bias)?;
    }
    Ok(vec![y])
}

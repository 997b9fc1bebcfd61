//! Operators that move elements.

use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{
    BinaryKind, CenterCropPad, Concat, DepthToSpace, Expand, Flatten, Pad, PadMode, Reshape,
    ReverseSequence, Slice, SpaceToDepth, Split, Squeeze, Tile, Transpose, Trilu, Unsqueeze,
};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub static OPERATORS: Family = OpTable(&[
    ("CenterCropPad", |b| {
        let axes = b.ints("axes")?;
        b.emit_same(CenterCropPad { axes })
    }),
    ("Concat", |b| {
        let axis = match b.version() {
            ..4 => b.int_or("axis", 1)?,
            _ => b
                .int("axis")?
                .ok_or_else(|| invalid("the attribute `axis` is missing"))?,
        };
        b.emit_same(Concat { axis })
    }),
    ("DepthToSpace", depth_to_space),
    ("Expand", |b| b.emit_same(Expand)),
    ("Flatten", |b| {
        let axis = b.int_or("axis", 1)?;
        b.emit_same(Flatten { axis })
    }),
    ("Pad", pad),
    ("Reshape", reshape),
    ("ReverseSequence", |b| {
        let batch_axis = b.count("batch_axis", Some(1))?;
        let time_axis = b.count("time_axis", Some(0))?;
        b.emit_same(ReverseSequence {
            batch_axis,
            time_axis,
        })
    }),
    ("Slice", slice),
    ("SpaceToDepth", space_to_depth),
    ("Split", split),
    ("Squeeze", |b| {
        let inputs = with_axes(b, 13)?;
        b.emit(Squeeze, &inputs)
    }),
    ("Tile", tile),
    ("Transpose", |b| {
        let perm = b.counts("perm")?.unwrap_or_default();
        b.emit_same(Transpose { perm })
    }),
    ("Trilu", |b| {
        let upper = b.int_or("upper", 1)? != 0;
        b.emit_same(Trilu { upper })
    }),
    ("Unsqueeze", |b| {
        let inputs = with_axes(b, 13)?;
        b.emit(Unsqueeze, &inputs)
    }),
]);

/// Data and axes, which are an attribute before operator set `since`. Some files have the attribute
/// later too.
pub fn with_axes(b: &mut NodeBuilder, since: i64) -> Result<Vec<Option<ValueId>>> {
    let data = b.input(0)?;
    let given = if b.version() < since {
        None
    } else {
        b.optional(1)?
    };
    let axes = match (given, b.ints("axes")?) {
        (None, Some(axes)) => Some(b.i64s(&axes)?),
        (given, _) => given,
    };
    Ok(vec![Some(data), axes])
}

fn reshape(b: &mut NodeBuilder) -> Result<()> {
    let data = b.input(0)?;
    let shape = if b.version() < 5 {
        let shape = b.ints("shape")?.unwrap_or_default();
        b.i64s(&shape)?
    } else {
        b.input(1)?
    };
    let allow_zero = b.flag("allowzero")?;
    b.emit(Reshape { allow_zero }, &[Some(data), Some(shape)])
}

fn split(b: &mut NodeBuilder) -> Result<()> {
    let axis = b.int_or("axis", 0)?;
    let data = b.input(0)?;
    let sizes = match (b.optional(1)?, b.ints("split")?) {
        (None, Some(sizes)) => Some(b.i64s(&sizes)?),
        (given, _) => given,
    };
    if let Some(parts) = b.int("num_outputs")?
        && parts != b.output_count() as i64
    {
        return Err(invalid("the number of parts is not that of the outputs"));
    }
    b.emit(Split { axis }, &[Some(data), sizes])
}

fn slice(b: &mut NodeBuilder) -> Result<()> {
    if b.version() >= 10 {
        return b.emit_same(Slice);
    }
    let data = b.input(0)?;
    let starts = b.ints("starts")?.unwrap_or_default();
    let ends = b.ints("ends")?.unwrap_or_default();
    let starts = b.i64s(&starts)?;
    let ends = b.i64s(&ends)?;
    let axes = match b.ints("axes")? {
        Some(axes) => Some(b.i64s(&axes)?),
        None => None,
    };
    b.emit(Slice, &[Some(data), Some(starts), Some(ends), axes])
}

fn pad(b: &mut NodeBuilder) -> Result<()> {
    let mode = match b.text_or("mode", "constant")? {
        "constant" => PadMode::Constant,
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" => PadMode::Wrap,
        other => return Err(unknown("mode", other)),
    };
    if b.version() >= 11 {
        return b.emit_same(Pad { mode });
    }
    let name = if b.version() < 2 { "paddings" } else { "pads" };
    let data = b.input(0)?;
    let pads = b
        .ints(name)?
        .ok_or_else(|| invalid(format!("the attribute `{name}` is missing")))?;
    let pads = b.i64s(&pads)?;
    let value = b.float_or("value", 0.0)?;
    let value = b.number(value.into(), data)?;
    b.emit(Pad { mode }, &[Some(data), Some(pads), Some(value)])
}

fn tile(b: &mut NodeBuilder) -> Result<()> {
    if b.version() >= 6 {
        return b.emit_same(Tile);
    }
    // Before operator set 6: how often along which axis.
    let (x, tiles, axis) = (b.input(0)?, b.input(1)?, b.input(2)?);
    let axes: Vec<i64> = (0..b.rank(x)? as i64).collect();
    let axes = b.i64s(&axes)?;
    let (tiles, axis) = (b.cast(tiles, DType::I64)?, b.cast(axis, DType::I64)?);
    let chosen = b.binary(BinaryKind::Equal, axes, axis)?;
    let once = b.i64(1)?;
    let repeats = b.choose(chosen, tiles, once)?;
    b.emit(Tile, &[Some(x), Some(repeats)])
}

fn depth_to_space(b: &mut NodeBuilder) -> Result<()> {
    let crd = match b.text_or("mode", "DCR")? {
        "DCR" => false,
        "CRD" => true,
        other => return Err(unknown("mode", other)),
    };
    let block = b.count("blocksize", None)?;
    b.emit_same(DepthToSpace {
        block,
        crd,
        channels_last: false,
    })
}

fn space_to_depth(b: &mut NodeBuilder) -> Result<()> {
    let block = b.count("blocksize", None)?;
    let crd = match b.text_or("mode", "DCR")? {
        "DCR" => false,
        "CRD" => true,
        other => return Err(unknown("mode", other)),
    };
    let op = SpaceToDepth {
        block,
        channels_last: false,
    };
    if !crd {
        return b.emit_same(op);
    }
    let x = b.input(0)?;
    let places = block
        .checked_mul(block)
        .ok_or_else(|| invalid("the attribute `blocksize` is too large"))?;
    // The places of a block stand before the channels; they belong behind.
    let y = b.op(op, &[x])?;
    let (batch, places) = (b.i64s(&[0])?, b.i64s(&[places as i64])?);
    let (height, width) = (b.dim(y, 2)?, b.dim(y, 3)?);
    let (channels, all) = (b.dim(x, 1)?, b.dim(y, 1)?);
    let split = b.vector(&[batch, places, channels, height, width])?;
    let split = b.reshape_to(y, split)?;
    let turned = b.transpose(split, &[0, 2, 1, 3, 4])?;
    let shape = b.vector(&[batch, all, height, width])?;
    let y = b.reshape_to(turned, shape)?;
    b.bind(0, y)
}

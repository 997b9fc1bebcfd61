//! Operators that read or write by index, and sorting.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{
    Compress, Gather, GatherElements, GatherNd, NonMaxSuppression, NonZero, OneHot,
    ScatterElements, ScatterNd, ScatterReduction, TensorScatter, TopK, Unique,
};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};

pub static OPERATORS: Family = OpTable(&[
    ("Compress", |b| {
        let axis = b.int("axis")?;
        b.emit_same(Compress { axis })
    }),
    ("Gather", |b| {
        let axis = b.int_or("axis", 0)?;
        b.emit_same(Gather { axis })
    }),
    ("GatherElements", |b| {
        let axis = b.int_or("axis", 0)?;
        b.emit_same(GatherElements { axis })
    }),
    ("GatherND", |b| {
        let batch_dims = b.count("batch_dims", Some(0))?;
        b.emit_same(GatherNd { batch_dims })
    }),
    ("NonMaxSuppression", |b| {
        let center_point_box = b.flag("center_point_box")?;
        b.emit_same(NonMaxSuppression { center_point_box })
    }),
    ("NonZero", |b| b.emit_same(NonZero)),
    ("OneHot", |b| {
        let axis = b.int_or("axis", -1)?;
        b.emit_same(OneHot { axis })
    }),
    ("Scatter", scatter_elements),
    ("ScatterElements", scatter_elements),
    ("ScatterND", |b| {
        let reduction = reduction(b)?;
        b.emit_same(ScatterNd { reduction })
    }),
    ("TensorScatter", tensor_scatter),
    ("TopK", top_k),
    ("Unique", |b| {
        let axis = b.int("axis")?;
        let sorted = b.int_or("sorted", 1)? != 0;
        b.emit_same(Unique { axis, sorted })
    }),
]);

fn reduction(b: &NodeBuilder) -> Result<ScatterReduction> {
    Ok(match b.text_or("reduction", "none")? {
        "none" => ScatterReduction::None,
        "add" => ScatterReduction::Add,
        "mul" => ScatterReduction::Mul,
        "max" => ScatterReduction::Max,
        "min" => ScatterReduction::Min,
        other => return Err(unknown("reduction", other)),
    })
}

fn scatter_elements(b: &mut NodeBuilder) -> Result<()> {
    let axis = b.int_or("axis", 0)?;
    let reduction = reduction(b)?;
    b.emit_same(ScatterElements { axis, reduction })
}

fn tensor_scatter(b: &mut NodeBuilder) -> Result<()> {
    let axis = b.int_or("axis", -2)?;
    let circular = match b.text_or("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => return Err(unknown("mode", other)),
    };
    b.emit_same(TensorScatter { axis, circular })
}

fn top_k(b: &mut NodeBuilder) -> Result<()> {
    let op = TopK {
        axis: b.int_or("axis", -1)?,
        largest: b.int_or("largest", 1)? != 0,
        sorted: b.int_or("sorted", 1)? != 0,
    };
    if b.version() >= 10 {
        return b.emit_same(op);
    }
    let x = b.input(0)?;
    let k = b
        .int("k")?
        .ok_or_else(|| unsupported("a TopK without `k`"))?;
    let k = b.i64s(&[k])?;
    b.emit(op, &[Some(x), Some(k)])
}

//! Blobs of the file, and changes of element type.

use kilim_core::DType;
use kilim_core::error::unsupported;

use super::Outputs;
use crate::ncnn::import::Import;
use crate::ncnn::layer::Layer;

/// The layer `MemoryData`: weights of their own. In files of ncnn they have no tag unless the file says so.
pub fn memory(imp: &mut Import, layer: &Layer) -> Outputs {
    let p = layer.params;
    let [w, h, c, d] = [
        p.count(0, 0)?,
        p.count(1, 0)?,
        p.count(2, 0)?,
        p.count(11, 0)?,
    ];
    let shape = match (w, h, d, c) {
        (0, 0, 0, 0) => return Err(unsupported("a blob without numbers")),
        (w, 0, 0, 0) => vec![1, w],
        (w, h, 0, 0) => vec![1, h, w],
        (w, h, 0, c) => vec![1, c, h, w],
        (w, h, d, c) => vec![1, c, d, h, w],
    };
    Ok(vec![match p.flag(21, true)? {
        true => imp.plain("data", &shape)?,
        false => imp.tagged("data", &shape)?,
    }])
}

/// The layer `Cast`: 1 is `float32`, 2 `float16`, 3 `int8` and 4 `bfloat16`. How exactly floats are stored is not kept.
pub fn cast(imp: &mut Import, layer: &Layer) -> Outputs {
    let x = layer.input(0)?;
    Ok(vec![match layer.params.int(1, 0)? {
        1 | 2 | 4 => imp.cast(x, DType::F32)?,
        other => return Err(unsupported(format!("element type number {other}"))),
    }])
}

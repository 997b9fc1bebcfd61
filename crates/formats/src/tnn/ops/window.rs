//! Paddings that follow from the sizes of blobs.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::Padding;

/// TensorFlow's `SAME` for 0 and `VALID` for 1, of windows that reach `extents` far along the `sizes` of a blob.
///
/// # Errors
/// `Unsupported` for other numbers, and where windows leave out more than one number: TNN lets the first begin later then, by half of
/// them (`pad_along_height / 2` in `layer/conv_layer.cc`).
pub fn found(
    number: i64,
    sizes: &[usize],
    extents: &[usize],
    strides: &[usize],
) -> Result<Padding> {
    let padding = match number {
        0 => Padding::SameUpper,
        1 => Padding::Valid,
        other => return Err(unsupported(format!("padding number {other}"))),
    };
    for ((&n, &extent), &stride) in sizes.iter().zip(extents).zip(strides) {
        let left = match padding {
            Padding::SameUpper => {
                let last = (n.max(1) - 1) / stride * stride;
                n.saturating_sub(last.saturating_add(extent))
            }
            _ => n.saturating_sub(extent) % stride,
        };
        if left > 1 {
            return Err(unsupported(
                "strides that leave out what lies at the border",
            ));
        }
    }
    Ok(padding)
}

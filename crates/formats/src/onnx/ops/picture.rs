//! ImageDecoder.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{ImageDecoder, PixelFormat};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};

pub static OPERATORS: Family = OpTable(&[("ImageDecoder", decoder)]);

fn decoder(b: &mut NodeBuilder) -> Result<()> {
    let reader = b.pictures();
    let reader = reader.ok_or_else(|| unsupported("this build reads no pictures"))?;
    let name = b.text_or("pixel_format", PixelFormat::Rgb.name())?;
    let pixels = PixelFormat::from_name(name).ok_or_else(|| unknown("pixel_format", name))?;
    b.emit_same(ImageDecoder { pixels, reader })
}

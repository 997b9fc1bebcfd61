//! JPEG (ITU-T T.81). The standard leaves the rounding of the inverse transform and the filter that
//! enlarges the colours open; ONNX's reference has those of libjpeg-turbo.

use kilim_core::error::Result;
use kilim_core::ops::unreadable;
use libjpeg_turbo_rs::{DecodeLimits, Decoder, PixelFormat};

use crate::{Format, MAX_PIXELS};

pub const FORMAT: Format = Format {
    knows: |file| file.starts_with(&[0xff, 0xd8, 0xff]),
    size,
    rgb,
};

fn open(file: &[u8]) -> Result<Decoder<'_>> {
    let limits = DecodeLimits {
        max_pixels: MAX_PIXELS as u64,
        ..DecodeLimits::default()
    };
    Decoder::new_with_limits(file, limits).map_err(unreadable)
}

fn size(file: &[u8]) -> Result<[usize; 2]> {
    let decoder = open(file)?;
    let frame = decoder.header();
    Ok([frame.height, frame.width].map(usize::from))
}

fn rgb(file: &[u8]) -> Result<Vec<u8>> {
    let mut decoder = open(file)?;
    decoder.set_output_format(PixelFormat::Rgb);
    Ok(decoder.decode_image().map_err(unreadable)?.data)
}

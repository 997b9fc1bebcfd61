//! What the crate `image` reads.

use std::io::Cursor;

use image::{ImageDecoder, ImageError, ImageReader, Limits};
use kilim_core::error::{Error, Result};
use kilim_core::ops::unreadable;

use crate::{Format, Head, MAX_BYTES, too_large};

pub const FORMAT: Format = Format {
    knows: |file| image::guess_format(file).is_ok_and(|f| f.reading_enabled()),
    head,
    rgb,
};

fn failed(error: ImageError) -> Error {
    match error {
        ImageError::Limits(why) => too_large().with_got(why),
        other => unreadable(other),
    }
}

fn open(file: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>> {
    let reader = ImageReader::new(Cursor::new(file));
    let mut reader = reader.with_guessed_format().map_err(unreadable)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_BYTES as u64);
    reader.limits(limits);
    Ok(reader)
}

fn head(file: &[u8]) -> Result<Head> {
    let decoder = open(file)?.into_decoder().map_err(failed)?;
    let (width, height) = decoder.dimensions();
    let [height, width] = [height, width].map(|n| n as usize);
    // The decoded picture, as much for what its decoder keeps beside it, and the result.
    let decoded = usize::try_from(decoder.total_bytes()).ok();
    let decoded = decoded.and_then(|bytes| bytes.checked_mul(2));
    let result = height.checked_mul(width).and_then(|n| n.checked_mul(3));
    let bytes = decoded.zip(result).and_then(|(a, b)| a.checked_add(b));
    Ok(Head {
        height,
        width,
        bytes,
    })
}

fn rgb(file: &[u8]) -> Result<Vec<u8>> {
    let picture = open(file)?.decode().map_err(failed)?;
    Ok(picture.into_rgb8().into_raw())
}

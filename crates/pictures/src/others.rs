//! What the crate `image` reads.

use std::io::Cursor;

use image::ImageReader;
use kilim_core::error::Result;
use kilim_core::ops::unreadable;

use crate::Format;

pub const FORMAT: Format = Format {
    knows: |file| image::guess_format(file).is_ok_and(|f| f.reading_enabled()),
    size,
    rgb,
};

fn open(file: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>> {
    let reader = ImageReader::new(Cursor::new(file));
    reader.with_guessed_format().map_err(unreadable)
}

fn size(file: &[u8]) -> Result<[usize; 2]> {
    let (width, height) = open(file)?.into_dimensions().map_err(unreadable)?;
    Ok([height as usize, width as usize])
}

fn rgb(file: &[u8]) -> Result<Vec<u8>> {
    let picture = open(file)?.decode().map_err(unreadable)?;
    Ok(picture.into_rgb8().into_raw())
}

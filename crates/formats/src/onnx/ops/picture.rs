//! ImageDecoder, in builds with the feature `pictures`.

use super::OpTable;

#[cfg(not(feature = "pictures"))]
pub fn register(table: &mut OpTable) {
    table.add("ImageDecoder", |_| {
        Err(kilim_core::error::unsupported(
            "this build reads no pictures",
        ))
    });
}

#[cfg(feature = "pictures")]
pub fn register(table: &mut OpTable) {
    table.add("ImageDecoder", reading::decoder);
}

#[cfg(feature = "pictures")]
mod reading {
    use std::io::Cursor;

    use image::{DynamicImage, ImageReader};
    use kilim_core::error::{Result, unsupported};
    use kilim_core::ops::{ImageDecoder, PictureReader, PixelFormat, unreadable};

    use crate::onnx::builder::{NodeBuilder, unknown};

    const FORMATS: &str = "BMP, JPEG, PNG, PNM, TIFF or WebP";
    const READER: PictureReader = PictureReader { size, decode };

    pub fn decoder(b: &mut NodeBuilder) -> Result<()> {
        let pixels = match b.text_or("pixel_format", "RGB")? {
            "RGB" => PixelFormat::Rgb,
            "BGR" => PixelFormat::Bgr,
            "Grayscale" => PixelFormat::Grayscale,
            other => return Err(unknown("pixel_format", other)),
        };
        let reader = READER;
        b.emit_same(ImageDecoder { pixels, reader })
    }

    fn open(file: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>> {
        let reader = ImageReader::new(Cursor::new(file));
        let reader = reader.with_guessed_format().map_err(unreadable)?;
        match reader.format() {
            Some(_) => Ok(reader),
            None => Err(unsupported("a picture of another format").with_expected(FORMATS)),
        }
    }

    fn size(file: &[u8]) -> Result<[usize; 2]> {
        let (width, height) = open(file)?.into_dimensions().map_err(unreadable)?;
        Ok([height as usize, width as usize])
    }

    fn decode(file: &[u8], pixels: PixelFormat) -> Result<Vec<u8>> {
        let picture: DynamicImage = open(file)?.decode().map_err(unreadable)?;
        let mut rgb = picture.into_rgb8().into_raw();
        match pixels {
            PixelFormat::Rgb => {}
            PixelFormat::Bgr => rgb.chunks_exact_mut(3).for_each(<[u8]>::reverse),
            PixelFormat::Grayscale => return Ok(rgb.chunks_exact(3).map(luma).collect()),
        }
        Ok(rgb)
    }

    /// ITU-R 601-2, in the fixed point that the reference of ONNX (Pillow) has it in.
    fn luma(rgb: &[u8]) -> u8 {
        let [r, g, b] = [rgb[0], rgb[1], rgb[2]].map(u32::from);
        ((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16) as u8
    }
}

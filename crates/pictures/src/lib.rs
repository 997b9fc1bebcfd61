//! The files that the operator ImageDecoder reads, decoded to the bytes that ONNX's reference (Pillow)
//! gives. A format is a [`Format`], known by its first bytes.

mod jpeg;
mod jpeg2000;
mod others;

use std::panic::catch_unwind;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::ops::{PictureReader, PixelFormat, unreadable};

/// Reads BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP.
///
/// Both of its functions fail with `InvalidValue` where the file is garbled, `Unsupported` where it is
/// of another format, and `Limit` where it has more than [`MAX_PIXELS`].
pub const READER: PictureReader = PictureReader { size, decode };

/// Where Pillow, too, takes a file for one that was made to exhaust the memory.
pub const MAX_PIXELS: usize = 178_956_970;

/// What reads one format, or several that one library reads.
struct Format {
    knows: fn(&[u8]) -> bool,
    /// Height and width, from the file's header.
    size: fn(&[u8]) -> Result<[usize; 2]>,
    /// `[height, width, 3]`: red, green, blue.
    rgb: fn(&[u8]) -> Result<Vec<u8>>,
}

const FORMATS: [Format; 3] = [jpeg::FORMAT, jpeg2000::FORMAT, others::FORMAT];

fn format(file: &[u8]) -> Result<&'static Format> {
    FORMATS.iter().find(|f| (f.knows)(file)).ok_or_else(|| {
        Error::new(ErrorCode::Unsupported, "a picture of another format")
            .with_expected("BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP")
    })
}

fn size(file: &[u8]) -> Result<[usize; 2]> {
    let format = format(file)?;
    let [height, width] = caught(|| (format.size)(file))?;
    if height.saturating_mul(width) > MAX_PIXELS {
        return Err(Error::new(ErrorCode::Limit, "a picture is too large")
            .with_expected(format!("at most {MAX_PIXELS} pixels"))
            .with_got(format!("{height} × {width}")));
    }
    Ok([height, width])
}

fn decode(file: &[u8], pixels: PixelFormat) -> Result<Vec<u8>> {
    let [height, width] = size(file)?;
    let format = format(file)?;
    let mut rgb = caught(|| (format.rgb)(file))?;
    if rgb.len() != height * width * 3 {
        return Err(unreadable("its size is not what its header says"));
    }
    match pixels {
        PixelFormat::Rgb => {}
        PixelFormat::Bgr => rgb.chunks_exact_mut(3).for_each(<[u8]>::reverse),
        PixelFormat::Grayscale => return Ok(rgb.chunks_exact(3).map(luma).collect()),
    }
    Ok(rgb)
}

/// The decoders are others' code: where one of them panics, the file was garbled in a way that it did
/// not foresee.
fn caught<T>(read: impl Fn() -> Result<T> + std::panic::UnwindSafe) -> Result<T> {
    catch_unwind(read).unwrap_or_else(|_| Err(unreadable("the decoder failed")))
}

/// ITU-R 601-2, in the fixed point that Pillow has it in.
fn luma(rgb: &[u8]) -> u8 {
    let [r, g, b] = [rgb[0], rgb[1], rgb[2]].map(u32::from);
    ((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16) as u8
}

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
/// of another format, and `Limit` where it has more than [`MAX_PIXELS`], where decoding it may take more
/// than [`MAX_BYTES`], or more than the machine has.
pub const READER: PictureReader = PictureReader { size, decode };

/// Where Pillow, too, takes a file for one that was made to exhaust the memory.
pub const MAX_PIXELS: usize = 178_956_970;

/// The most memory that decoding a picture may take, in bytes: twelve for each of [`MAX_PIXELS`], which is
/// what a progressive JPEG of three colours takes.
pub const MAX_BYTES: usize = 12 * MAX_PIXELS;

/// What reads one format, or several that one library reads.
struct Format {
    knows: fn(&[u8]) -> bool,
    /// What the file's header says.
    head: fn(&[u8]) -> Result<Head>,
    /// `[height, width, 3]`: red, green, blue.
    rgb: fn(&[u8]) -> Result<Vec<u8>>,
}

/// What a picture takes.
#[derive(Clone, Copy)]
struct Head {
    height: usize,
    width: usize,
    /// Bytes that decoding takes at most, with the result; `None` is more than the machine can count.
    bytes: Option<usize>,
}

const FORMATS: [Format; 3] = [jpeg::FORMAT, jpeg2000::FORMAT, others::FORMAT];

fn format(file: &[u8]) -> Result<&'static Format> {
    FORMATS.iter().find(|f| (f.knows)(file)).ok_or_else(|| {
        Error::new(ErrorCode::Unsupported, "a picture of another format")
            .with_expected("BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP")
    })
}

/// What the header says, where it is within the limits.
fn head(file: &[u8]) -> Result<Head> {
    let format = format(file)?;
    let head = caught(|| (format.head)(file))?;
    let Head {
        height,
        width,
        bytes,
    } = head;
    if height.saturating_mul(width) > MAX_PIXELS {
        return Err(too_large()
            .with_expected(format!("at most {MAX_PIXELS} pixels"))
            .with_got(format!("{height} × {width}")));
    }
    if bytes.is_none_or(|bytes| bytes > MAX_BYTES) {
        let got = bytes.map_or("more".to_string(), |bytes| format!("{bytes} bytes"));
        return Err(too_large()
            .with_expected(format!("at most {MAX_BYTES} bytes while it is decoded"))
            .with_got(got));
    }
    Ok(head)
}

fn size(file: &[u8]) -> Result<[usize; 2]> {
    head(file).map(|head| [head.height, head.width])
}

fn decode(file: &[u8], pixels: PixelFormat) -> Result<Vec<u8>> {
    let head = head(file)?;
    // Decoders allocate in ways that cannot fail: whether the memory is there is asked beforehand.
    drop(room(head.bytes.unwrap_or(usize::MAX))?);
    let format = format(file)?;
    let mut rgb = caught(|| (format.rgb)(file))?;
    let count = head.height * head.width;
    if rgb.len() != count * 3 {
        return Err(unreadable("its size is not what its header says"));
    }
    match pixels {
        PixelFormat::Rgb => {}
        PixelFormat::Bgr => rgb.chunks_exact_mut(3).for_each(<[u8]>::reverse),
        PixelFormat::Grayscale => {
            for i in 0..count {
                rgb[i] = luma(&rgb[3 * i..][..3]);
            }
            rgb.truncate(count);
        }
    }
    Ok(rgb)
}

/// An empty buffer with room for so many bytes.
fn room(bytes: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes).map_err(|_| {
        Error::new(ErrorCode::Limit, "the machine has no memory for a picture")
            .with_got(format!("{bytes} bytes"))
    })?;
    Ok(room)
}

fn too_large() -> Error {
    Error::new(ErrorCode::Limit, "a picture is too large")
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

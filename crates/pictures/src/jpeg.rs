//! JPEG (ITU-T T.81). The standard leaves the rounding of the inverse transform and the filter that
//! enlarges the colours open; ONNX's reference has those of libjpeg-turbo.

use kilim_core::error::{Error, Result};
use kilim_core::ops::unreadable;
use libjpeg_turbo_rs::{DecodeLimits, Decoder, JpegError, PixelFormat};

use crate::{Format, Head, MAX_BYTES, MAX_PIXELS, too_large};

pub const FORMAT: Format = Format {
    knows: |file| file.starts_with(&[0xff, 0xd8, 0xff]),
    head,
    rgb,
};

/// Bytes of a pixel of the result; the decoder counts its own and reserves them fallibly.
const RESULT: usize = 3;

fn failed(error: JpegError) -> Error {
    match error {
        JpegError::LimitExceeded {
            what,
            actual,
            limit,
        } => too_large()
            .with_expected(format!("{what} of at most {limit}"))
            .with_got(actual),
        JpegError::AllocationFailed { bytes, .. } => {
            too_large().with_got(format!("{bytes} bytes, which the machine does not have"))
        }
        other => unreadable(other),
    }
}

fn open(file: &[u8]) -> Result<Decoder<'_>> {
    let limits = DecodeLimits {
        max_pixels: MAX_PIXELS as u64,
        max_memory: Some(MAX_BYTES as u64),
        ..DecodeLimits::default()
    };
    Decoder::new_with_limits(file, limits).map_err(failed)
}

fn head(file: &[u8]) -> Result<Head> {
    let decoder = open(file)?;
    let frame = decoder.header();
    let [height, width] = [frame.height, frame.width].map(usize::from);
    Ok(Head {
        height,
        width,
        bytes: height
            .checked_mul(width)
            .and_then(|n| n.checked_mul(RESULT)),
    })
}

fn rgb(file: &[u8]) -> Result<Vec<u8>> {
    let mut decoder = open(file)?;
    decoder.set_output_format(PixelFormat::Rgb);
    Ok(decoder.decode_image().map_err(failed)?.data)
}

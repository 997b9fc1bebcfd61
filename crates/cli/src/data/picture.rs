//! Pictures as inputs.

use std::path::Path;

use image::imageops::FilterType;
use image::{DynamicImage, GrayImage, RgbImage};
use kilim::core::error::unsupported;
use kilim::core::ops::PixelFormat;
use kilim::core::tensor::{AlignedBytes, element_count};
use kilim::{DType, Dim, Error, ErrorCode, Fact, Result, SessionOptions, Tensor};

use super::io_error;

/// Reads a picture, with what reads those of the operator ImageDecoder, for an input of shape `[n, c, h, w]` or `[n, h, w, c]` with 1 or 3 channels.
/// Free dimensions become 1 (batch) and the picture's own size. Integer inputs get 0..255, floating
/// ones 0..1.
///
/// # Errors
/// `Io` for a file that is no picture, `Unsupported` in a build that reads none, `Shape` and `DType` for an
/// input that takes none, `Limit` for a picture that is too large.
pub fn tensor(fact: &Fact, file: &Path) -> Result<Tensor> {
    let plan = Layout::of(fact)?;
    let picture = open(file, plan.channels)?;
    let width = plan.width.unwrap_or(picture.width() as usize);
    let height = plan.height.unwrap_or(picture.height() as usize);
    let scaled = scale(&picture, width, height)?;
    let pixels = scaled.into_bytes();
    let c = plan.channels;
    let ordered: Vec<u8> = if plan.channels_first {
        (0..c)
            .flat_map(|k| pixels.iter().skip(k).step_by(c).copied())
            .collect()
    } else {
        pixels
    };
    let mut shape = if plan.channels_first {
        vec![c, height, width]
    } else {
        vec![height, width, c]
    };
    if plan.rank == 4 {
        shape.insert(0, 1);
    }
    match fact.dtype {
        Some(DType::U8) => Tensor::from_slice(&shape, &ordered),
        Some(DType::I8) => {
            let signed: Vec<i8> = ordered
                .iter()
                .map(|&p| (i16::from(p) - 128) as i8)
                .collect();
            Tensor::from_slice(&shape, &signed)
        }
        Some(DType::F32) => {
            let unit: Vec<f32> = ordered.iter().map(|&p| f32::from(p) / 255.0).collect();
            Tensor::from_slice(&shape, &unit)
        }
        _ => Err(Error::new(
            ErrorCode::DType,
            "a picture can only be given to a float32, uint8 or int8 input",
        )
        .with_got(fact)),
    }
}

/// Decodes a picture of whatever format its content has, to one channel or three.
fn open(file: &Path, channels: usize) -> Result<DynamicImage> {
    let reader = SessionOptions::default().pictures;
    let reader = reader.ok_or_else(|| unsupported("this build reads no pictures"))?;
    let unreadable = |e: &dyn std::fmt::Display| {
        io_error(file, e).with_hint("inputs are .npy, .npz, .pb, pictures or the word random")
    };
    let bytes = std::fs::read(file).map_err(|e| unreadable(&e))?;
    let [height, width] = (reader.size)(&bytes).map_err(|e| unreadable(&e))?;
    let pixels = match channels {
        1 => PixelFormat::Grayscale,
        _ => PixelFormat::Rgb,
    };
    let pixels = (reader.decode)(&bytes, pixels).map_err(|e| unreadable(&e))?;
    let picture = match (u32::try_from(width), u32::try_from(height), channels) {
        (Ok(w), Ok(h), 1) => GrayImage::from_raw(w, h, pixels).map(DynamicImage::from),
        (Ok(w), Ok(h), _) => RgbImage::from_raw(w, h, pixels).map(DynamicImage::from),
        _ => None,
    };
    picture.ok_or_else(|| unreadable(&"its size is not what its header says"))
}

fn scale(picture: &DynamicImage, width: usize, height: usize) -> Result<DynamicImage> {
    // The scaler cannot fail: the memory for its four floats a pixel between the two directions, and for
    // what becomes of the result, is asked for beforehand.
    let between = element_count(&[16, picture.width() as usize, height])?;
    AlignedBytes::zeroed(between)?;
    AlignedBytes::zeroed(element_count(&[16, width, height])?)?;
    let sizes = u32::try_from(width).ok().zip(u32::try_from(height).ok());
    let (width, height) = sizes.ok_or_else(|| {
        let message = format!("a picture of {width} by {height} pixels is too large");
        Error::new(ErrorCode::Limit, message)
    })?;
    Ok(picture.resize_exact(width, height, FilterType::Triangle))
}

struct Layout {
    rank: usize,
    channels_first: bool,
    channels: usize,
    height: Option<usize>,
    width: Option<usize>,
}

impl Layout {
    fn of(fact: &Fact) -> Result<Layout> {
        let wrong = || {
            Error::new(
                ErrorCode::Shape,
                "a picture can only be given to an input of shape [n, c, h, w] or [n, h, w, c]",
            )
            .with_got(fact)
        };
        let dims = &fact.shape.as_ref().ok_or_else(wrong)?.0;
        let rank = dims.len();
        let d = match rank {
            3 => dims.as_slice(),
            4 => &dims[1..],
            _ => return Err(wrong()),
        };
        let channels = |d: &Dim| d.known().filter(|c| matches!(c, 1 | 3));
        if let Some(c) = channels(&d[0]) {
            return Ok(Layout {
                rank,
                channels_first: true,
                channels: c,
                height: d[1].known(),
                width: d[2].known(),
            });
        }
        match channels(&d[2]) {
            Some(c) => Ok(Layout {
                rank,
                channels_first: false,
                channels: c,
                height: d[0].known(),
                width: d[1].known(),
            }),
            None => Err(wrong()),
        }
    }
}

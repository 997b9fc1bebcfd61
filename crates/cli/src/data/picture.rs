//! Pictures as inputs.

use std::path::Path;
use std::sync::Arc;

use image::imageops::FilterType;
use image::{DynamicImage, GrayImage, RgbImage};
use kilim::core::error::unsupported;
use kilim::core::ops::PixelFormat;
use kilim::core::tensor::{AlignedBytes, byte_count};
use kilim::{DType, Dim, Error, ErrorCode, Fact, LoadOptions, Result, Tensor};

use super::{DataLimits, io_error};

/// Reads a picture, with what reads those of the operator ImageDecoder, for an input of shape `[n, c, h, w]` or `[n, h, w, c]` with 1 or 3 channels.
/// Free dimensions become 1 (batch) and the picture's own size. Integer inputs get 0..255, floating
/// ones 0..1.
///
/// # Errors
/// `Io` for a file that is no picture, `Unsupported` in a build that reads none, `Shape` and `DType` for an
/// input that takes none, `Limit` for a picture that is larger than `limits` say or than the machine has
/// memory for.
pub fn tensor(fact: &Fact, file: &Path, limits: &DataLimits) -> Result<Tensor> {
    let plan = Layout::of(fact)?;
    let dtype = fact
        .dtype
        .filter(|d| matches!(d, DType::U8 | DType::I8 | DType::F32));
    let dtype = dtype.ok_or_else(|| {
        let message = "a picture can only be given to a float32, uint8 or int8 input";
        Error::new(ErrorCode::DType, message).with_got(fact)
    })?;
    let picture = open(file, &plan, dtype, limits).map_err(|e| e.with_input(file.display()))?;
    let [width, height] = plan.size([picture.width(), picture.height()].map(|n| n as usize));
    let pixels = scale(picture, width, height, limits)?.into_bytes();
    let c = plan.channels;
    let mut shape = match plan.channels_first {
        true => vec![c, height, width],
        false => vec![height, width, c],
    };
    if plan.rank == 4 {
        shape.insert(0, 1);
    }
    let mut bytes = AlignedBytes::zeroed(byte_count(dtype, &shape)?)?;
    let to = bytes.as_mut_slice();
    // The place of an element in the picture's order, `[height, width, channels]`.
    let plane = height * width;
    let place = |i: usize| match plan.channels_first {
        true => i % plane * c + i / plane,
        false => i,
    };
    match dtype {
        DType::F32 => {
            let (to, _) = to.as_chunks_mut();
            for (i, to) in to.iter_mut().enumerate() {
                *to = (f32::from(pixels[place(i)]) / 255.0).to_le_bytes();
            }
        }
        DType::I8 => {
            for (i, to) in to.iter_mut().enumerate() {
                *to = pixels[place(i)] ^ 0x80;
            }
        }
        _ => {
            for (i, to) in to.iter_mut().enumerate() {
                *to = pixels[place(i)];
            }
        }
    }
    Tensor::from_bytes(dtype, &shape, Arc::new(bytes))
}

/// Decodes a picture of whatever format its content has, to one channel or three, where neither it nor
/// the tensor of `dtype` that it becomes is too large.
fn open(file: &Path, plan: &Layout, dtype: DType, limits: &DataLimits) -> Result<DynamicImage> {
    let channels = plan.channels;
    let reader = LoadOptions::default().pictures;
    let reader = reader.ok_or_else(|| unsupported("this build reads no pictures"))?;
    let unreadable = |e: &dyn std::fmt::Display| {
        io_error(file, e).with_hint("inputs are .npy, .npz, .pb, pictures or the word random")
    };
    let undecoded = |e: Error| match e.code() {
        ErrorCode::Limit => e,
        _ => unreadable(&e.sentence()),
    };
    let about = std::fs::metadata(file).map_err(|e| unreadable(&e))?;
    limits.check("the file", usize::try_from(about.len()).ok())?;
    let bytes = std::fs::read(file).map_err(|e| unreadable(&e))?;
    let [height, width] = (reader.size)(&bytes).map_err(undecoded)?;
    limits.check("the picture", volume(&[height, width, channels]))?;
    let [to_width, to_height] = plan.size([width, height]);
    let tensor = volume(&[to_height, to_width, channels, dtype.size()]);
    limits.check("the input that the picture becomes", tensor)?;
    let pixels = match channels {
        1 => PixelFormat::Grayscale,
        _ => PixelFormat::Rgb,
    };
    let pixels = (reader.decode)(&bytes, pixels).map_err(undecoded)?;
    let picture = match (u32::try_from(width), u32::try_from(height), channels) {
        (Ok(w), Ok(h), 1) => GrayImage::from_raw(w, h, pixels).map(DynamicImage::from),
        (Ok(w), Ok(h), _) => RgbImage::from_raw(w, h, pixels).map(DynamicImage::from),
        _ => None,
    };
    picture.ok_or_else(|| unreadable(&"its size is not what its header says"))
}

/// A product of sizes; `None` where it is more than the machine can count.
fn volume(sizes: &[usize]) -> Option<usize> {
    sizes
        .iter()
        .try_fold(1usize, |n, &size| n.checked_mul(size))
}

fn scale(
    picture: DynamicImage,
    width: usize,
    height: usize,
    limits: &DataLimits,
) -> Result<DynamicImage> {
    /// The scaler's bytes of a pixel between its two directions: four floats.
    const BETWEEN: usize = 16;

    let own = [picture.width(), picture.height()].map(|n| n as usize);
    if own == [width, height] {
        return Ok(picture);
    }
    // The scaler cannot fail: whether its memory is there is asked beforehand.
    for sizes in [[own[0], height], [width, height]] {
        let bytes = volume(&[BETWEEN, sizes[0], sizes[1]]);
        limits.check("the picture on its way to another size", bytes)?;
        AlignedBytes::zeroed(bytes.unwrap_or_default())?;
    }
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
    /// Width and height of the input for a picture of this width and height.
    fn size(&self, [width, height]: [usize; 2]) -> [usize; 2] {
        [self.width.unwrap_or(width), self.height.unwrap_or(height)]
    }

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

//! Encoded pictures.

use super::rules::{InputValues, Types};
use crate::Reflect;
use crate::dim::{Dim, Shape};
use crate::dtype::DType;
use crate::error::{Error, Result, value_error};
use crate::fact::Fact;
use crate::graph::{Flow, InferContext, Operator};
use crate::reflect::{Leaf, Visitor};

/// In which order the channels of a picture come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Reflect)]
pub enum PixelFormat {
    Rgb,
    Bgr,
    /// One channel.
    Grayscale,
}

impl PixelFormat {
    /// How many channels a picture has.
    pub const fn channels(self) -> usize {
        match self {
            PixelFormat::Rgb | PixelFormat::Bgr => 3,
            PixelFormat::Grayscale => 1,
        }
    }

    /// The name in ONNX's attribute `pixel_format`.
    pub const fn name(self) -> &'static str {
        match self {
            PixelFormat::Rgb => "RGB",
            PixelFormat::Bgr => "BGR",
            PixelFormat::Grayscale => "Grayscale",
        }
    }

    /// See [`PixelFormat::name`].
    pub fn from_name(name: &str) -> Option<PixelFormat> {
        let all = [PixelFormat::Rgb, PixelFormat::Bgr, PixelFormat::Grayscale];
        all.into_iter().find(|p| p.name() == name)
    }
}

/// What reads pictures; builds differ in the formats they know. Readers are the same where their functions are.
#[derive(Clone, Copy, Debug)]
pub struct PictureReader {
    /// Height and width, without decoding all of it.
    pub size: fn(&[u8]) -> Result<[usize; 2]>,
    /// Bytes `[height, width, channels]`.
    pub decode: fn(&[u8], PixelFormat) -> Result<Vec<u8>>,
}

impl Reflect for PictureReader {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.leaf(Leaf::Opaque(self.size as usize));
        visitor.leaf(Leaf::Opaque(self.decode as usize));
    }
}

/// Input: the bytes of a picture file `[n]`, `uint8`. Output: `[height, width, channels]`, `uint8`.
#[derive(Clone, Debug, Reflect)]
pub struct ImageDecoder {
    pub pixels: PixelFormat,
    #[attribute(hidden)]
    pub reader: PictureReader,
}

impl Operator for ImageDecoder {
    fn name(&self) -> &'static str {
        "ImageDecoder"
    }

    signature! { (file) -> (pixels) }

    fn flow(&self) -> Flow {
        Flow::OPAQUE
    }

    fn infer(&self, ctx: &InferContext) -> Result<Vec<Fact>> {
        ctx.typed(0, &Types::new("uint8", |d| d == DType::U8))?;
        ctx.shape_of_rank(0, 1)?;
        let mut shape = vec![Dim::Unknown; 2];
        if let Some(file) = ctx.value(0) {
            let size = (self.reader.size)(file.as_slice::<u8>()?)?;
            shape = size.into_iter().map(Dim::Known).collect();
        }
        shape.push(Dim::Known(self.pixels.channels()));
        Ok(vec![Fact::new(DType::U8, Shape(shape))])
    }

    fn value_inputs(&self) -> &'static [usize] {
        &[0]
    }
}

/// The picture is garbled, or of a format that is not known.
pub fn unreadable(why: impl std::fmt::Display) -> Error {
    value_error(format!("a picture cannot be read: {why}"))
}

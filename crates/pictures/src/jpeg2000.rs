//! JPEG 2000 (ITU-T T.800): JP2 files and bare codestreams.

use hayro_jpeg2000::{ColorSpace, DecodeSettings, DecoderContext, Image};
use kilim_core::error::{Result, unsupported};
use kilim_core::ops::unreadable;

use crate::{Format, Head, room};

pub const FORMAT: Format = Format {
    knows: |file| file.starts_with(SIGNATURE) || file.starts_with(CODESTREAM),
    head,
    rgb,
};

const SIGNATURE: &[u8] = b"\0\0\0\x0cjP  ";
/// The markers SOC and SIZ.
const CODESTREAM: &[u8] = b"\xff\x4f\xff\x51";
/// The markers SOT, with its parameters, and SOD: no tile takes fewer bytes.
const SMALLEST_TILE: u64 = 14;

fn open(file: &[u8]) -> Result<Image<'_>> {
    check_tiles(file)?;
    let settings = DecodeSettings {
        strict: true,
        ..DecodeSettings::default()
    };
    Image::new(file, &settings).map_err(unreadable)
}

/// The lengths and offsets of the marker SIZ (T.800, table A.9): Xsiz, Ysiz, XOsiz, YOsiz, XTsiz, YTsiz,
/// XTOsiz, YTOsiz; and how many components there are.
fn size_fields(file: &[u8]) -> Result<([u64; 8], usize)> {
    let start = file.windows(CODESTREAM.len()).position(|w| w == CODESTREAM);
    let fields = start.and_then(|at| file.get(at + 8..at + 42));
    let fields = fields.ok_or_else(|| unreadable("it has no header"))?;
    let (lengths, components) = fields.split_at(32);
    let (lengths, _) = lengths.as_chunks();
    let mut read = [0; 8];
    for (to, length) in read.iter_mut().zip(lengths) {
        *to = u64::from(u32::from_be_bytes(*length));
    }
    let components = u16::from_be_bytes([components[0], components[1]]);
    Ok((read, usize::from(components)))
}

/// Refuses files that promise more tiles than they have room for: each costs the decoder memory and
/// time, though it be empty.
fn check_tiles(file: &[u8]) -> Result<()> {
    let (fields, _) = size_fields(file)?;
    let along = |axis: usize| {
        let (end, tile, first) = (fields[axis], fields[4 + axis], fields[6 + axis]);
        end.saturating_sub(first).div_ceil(tile.max(1))
    };
    let tiles = along(0).saturating_mul(along(1));
    if tiles.saturating_mul(SMALLEST_TILE) > file.len() as u64 {
        return Err(unreadable(format!("it lacks most of its {tiles} tiles")));
    }
    Ok(())
}

/// Bytes of a pixel beside those of its components: the decoder's coefficients, one component's before
/// and after its transform and what it is transformed in, and the states of the bits; then the result.
const SHARED: usize = 16 + 8 + 3;
/// Bytes of a pixel's component: a float, and what it is rounded to.
const COMPONENT: usize = 5;

fn head(file: &[u8]) -> Result<Head> {
    let components = size_fields(file)?.1;
    let picture = open(file)?;
    let [height, width] = [picture.height(), picture.width()].map(|n| n as usize);
    let pixel = COMPONENT * components + SHARED;
    Ok(Head {
        height,
        width,
        bytes: height.checked_mul(width).and_then(|n| n.checked_mul(pixel)),
    })
}

fn rgb(file: &[u8]) -> Result<Vec<u8>> {
    let picture = open(file)?;
    let colours = match picture.color_space() {
        ColorSpace::CMYK => None,
        other => Some(other.num_channels()).filter(|n| matches!(n, 1 | 3)),
    };
    let colours = colours.ok_or_else(|| {
        unsupported("a JPEG 2000 picture of other colours").with_expected("gray or RGB")
    })?;
    let channels = usize::from(colours) + usize::from(picture.has_alpha());
    let mut context = DecoderContext::default();
    let decoded = picture.decode(&mut context).map_err(unreadable)?;
    let samples = decoded.data_u8();
    if channels == 3 {
        return Ok(samples);
    }
    let pixels = samples.chunks_exact(channels);
    let mut rgb = room(pixels.len().saturating_mul(3))?;
    match colours {
        1 => pixels.for_each(|p| rgb.extend([p[0]; 3])),
        _ => pixels.for_each(|p| rgb.extend_from_slice(&p[..3])),
    }
    Ok(rgb)
}

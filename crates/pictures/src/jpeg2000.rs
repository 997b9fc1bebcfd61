//! JPEG 2000 (ITU-T T.800): JP2 files and bare codestreams.

use hayro_jpeg2000::{ColorSpace, DecodeSettings, DecoderContext, Image};
use kilim_core::error::{Result, unsupported};
use kilim_core::ops::unreadable;

use crate::Format;

pub const FORMAT: Format = Format {
    knows: |file| file.starts_with(SIGNATURE) || file.starts_with(CODESTREAM),
    size,
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

/// Refuses files that promise more tiles than they have room for: each costs the decoder memory and
/// time, though it be empty.
fn check_tiles(file: &[u8]) -> Result<()> {
    let start = file.windows(CODESTREAM.len()).position(|w| w == CODESTREAM);
    // The lengths and offsets of T.800, table A.9: Xsiz, Ysiz, XOsiz, YOsiz, XTsiz, YTsiz, XTOsiz, YTOsiz.
    let fields = start.and_then(|at| file.get(at + 8..at + 40));
    let fields = fields.ok_or_else(|| unreadable("it has no header"))?;
    let fields: Vec<u64> = fields
        .chunks_exact(4)
        .map(|b| u64::from(u32::from_be_bytes([b[0], b[1], b[2], b[3]])))
        .collect();
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

fn size(file: &[u8]) -> Result<[usize; 2]> {
    let picture = open(file)?;
    Ok([picture.height(), picture.width()].map(|n| n as usize))
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
    let pixels = samples.chunks_exact(channels);
    Ok(match colours {
        1 => pixels.flat_map(|p| [p[0]; 3]).collect(),
        _ => pixels.flat_map(|p| [p[0], p[1], p[2]]).collect(),
    })
}

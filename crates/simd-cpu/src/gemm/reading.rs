//! How elements are read while they are packed.

use std::array::from_fn;

use half::bf16;
use kilim_core::tensor::Element;

use super::Form;
use crate::isa::turn;

/// Columns that are read together: a few, as columns often lie a multiple of 4 KiB apart and then
/// share one set of the first-level cache.
pub(super) const COLUMN_BLOCK: usize = 4;

/// How an element is read while it is packed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// What is smaller than this becomes zero.
    least: f32,
    /// The bound above, for numbers in half precision as their bits.
    least_half: u16,
    scale: f32,
}

impl Reading {
    /// Elements as they are.
    pub(crate) const PLAIN: Reading = Reading {
        least: 0.0,
        least_half: 0,
        scale: 1.0,
    };
    /// Elements of a constant weight. Subnormal numbers, which training leaves behind in channels that it has
    /// given up, make products many times slower and add nothing to a sum.
    pub(crate) const WEIGHT: Reading = Reading {
        least: f32::MIN_POSITIVE,
        ..Reading::PLAIN
    };

    /// This reading for elements of a form. Those in half precision must not be scaled.
    pub(super) fn of(self, form: Form) -> Reading {
        // The subnormal numbers of `float16` are none in `float32`.
        let least_half = match form {
            Form::BFloat16 if self.least > 0.0 => bf16::MIN_POSITIVE.to_bits(),
            _ => 0,
        };
        Reading { least_half, ..self }
    }

    /// Whether elements are multiplied by something.
    pub(super) fn scales(self) -> bool {
        self.scale != 1.0
    }

    /// This reading with every element multiplied by `scale`.
    pub(crate) fn times(self, scale: f32) -> Reading {
        Reading {
            scale: self.scale * scale,
            ..self
        }
    }

    #[inline(always)]
    pub(crate) fn read(self, x: f32) -> f32 {
        let kept = if x.abs() < self.least { 0.0 } else { x };
        kept * self.scale
    }
}

/// Elements that are packed: of `float32`, or the bits of numbers in half precision.
pub(crate) trait Packable: Element {
    fn read(self, reading: Reading) -> Self;

    /// Columns of a square as its rows.
    fn turn(columns: [&[Self; COLUMN_BLOCK]; COLUMN_BLOCK])
    -> [[Self; COLUMN_BLOCK]; COLUMN_BLOCK];
}

impl Packable for f32 {
    #[inline(always)]
    fn read(self, reading: Reading) -> f32 {
        reading.read(self)
    }

    #[inline(always)]
    fn turn(columns: [&[f32; COLUMN_BLOCK]; COLUMN_BLOCK]) -> [[f32; COLUMN_BLOCK]; COLUMN_BLOCK] {
        turn(columns)
    }
}

impl Packable for u16 {
    #[inline(always)]
    fn read(self, reading: Reading) -> u16 {
        let size = self & 0x7fff;
        if size < reading.least_half {
            self - size
        } else {
            self
        }
    }

    #[inline(always)]
    fn turn(columns: [&[u16; COLUMN_BLOCK]; COLUMN_BLOCK]) -> [[u16; COLUMN_BLOCK]; COLUMN_BLOCK] {
        from_fn(|i| columns.map(|column| column[i]))
    }
}

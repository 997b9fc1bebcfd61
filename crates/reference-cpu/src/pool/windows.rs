//! Visiting the windows of a pooling, over any number of spatial axes.

use std::ops::Range;

use kilim_core::Result;
use kilim_core::error::shape_error;
use kilim_core::ops::{PoolGeometry, WindowAxis};

/// Spatial axes at most.
pub const MOST: usize = 6;

/// Where a window is: its position along each axis, and the kernel positions inside the input.
#[derive(Clone)]
pub struct Place {
    pub output: [usize; MOST],
    pub taps: [Range<usize>; MOST],
}

/// The windows of a pooling. Data is seen as `[planes, pixels.., deep]`: channels-last data is
/// pooled for all channels at once.
pub struct Windows {
    pub planes: usize,
    pub deep: usize,
    pub axes: Vec<WindowAxis>,
    pub input: usize,
    pub output: usize,
}

impl Windows {
    pub fn new(g: PoolGeometry) -> Result<Windows> {
        if g.axes.len() > MOST {
            return Err(shape_error(format!("more than {MOST} spatial dimensions")));
        }
        let (planes, deep) = match g.channels_last {
            true => (g.batch, g.channels),
            false => (g.batch * g.channels, 1),
        };
        Ok(Windows {
            planes,
            deep,
            input: g.axes.iter().map(|a| a.input).product(),
            output: g.axes.iter().map(|a| a.output).product(),
            axes: g.axes,
        })
    }

    /// Calls `f` with the number of each window of a plane, and its place.
    pub fn each(&self, mut f: impl FnMut(usize, &Place)) {
        let mut place = Place {
            output: [0; MOST],
            taps: std::array::from_fn(|_| 0..0),
        };
        let mut number = 0;
        self.descend(0, &mut place, &mut |place| {
            f(number, place);
            number += 1;
        });
    }

    fn descend(&self, d: usize, place: &mut Place, f: &mut impl FnMut(&Place)) {
        let Some(axis) = self.axes.get(d) else {
            return f(place);
        };
        for o in 0..axis.output {
            place.output[d] = o;
            place.taps[d] = axis.taps(o);
            self.descend(d + 1, place, f);
        }
    }

    /// Calls `f` with the pixels of the input that a window sees, in order.
    pub fn pixels(&self, place: &Place, mut f: impl FnMut(usize)) {
        self.inside(0, 0, place, &mut f);
    }

    fn inside(&self, d: usize, at: usize, place: &Place, f: &mut impl FnMut(usize)) {
        let Some(axis) = self.axes.get(d) else {
            return f(at);
        };
        let start = axis.start(place.output[d]);
        for k in place.taps[d].clone() {
            let i = (start + (k * axis.dilation) as isize) as usize;
            self.inside(d + 1, at * axis.input + i, place, f);
        }
    }

    /// Where a window would divide by: elements of the input that it sees, or of the padded input.
    pub fn count(&self, place: &Place, padded: bool) -> usize {
        let axes = self.axes.iter().enumerate();
        axes.map(|(d, axis)| match padded {
            true => axis.padded_taps(place.output[d]),
            false => place.taps[d].len(),
        })
        .product()
    }
}

//! Tiles of the input at their points, and of the output from there.

use super::lines::{input_line, output_line};
use crate::isa::{Simd, Task, read, write};
use kilim_host::Shared;

/// An input tile: where its first pixel is, and how far the next row and column are.
pub(super) struct Source<'a> {
    pub data: &'a [f32],
    pub row: usize,
    pub column: usize,
}

/// Transforms an input tile.
pub(super) struct ToPoints<'a, const IN: usize> {
    pub from: Source<'a>,
    pub channels: usize,
    pub to: Shared<f32>,
    /// Where the tile's channels at the first point begin in `to`; the others follow `point` elements apart. Nothing else reads or
    /// writes them meanwhile.
    pub first: usize,
    pub point: usize,
}

impl<const IN: usize> Task for ToPoints<'_, IN> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (c, from) = (self.channels, &self.from);
        assert!((IN - 1) * (from.row + from.column) + c <= from.data.len());
        let whole = c.next_multiple_of(S::LANES);
        let to = self.to.at(self.first, (IN * IN - 1) * self.point + whole);
        let data = from.data.as_ptr();
        for channel in (0..c).step_by(S::LANES) {
            // SAFETY: by the assertions all pixels have `c` channels, and all points whole vectors.
            unsafe {
                if c - channel >= S::LANES {
                    self.vector::<S, true>(s, data.add(channel), S::LANES, to.add(channel));
                } else {
                    self.vector::<S, false>(s, data.add(channel), c - channel, to.add(channel));
                }
            }
        }
    }
}

impl<const IN: usize> ToPoints<'_, IN> {
    /// # Safety
    /// `data` is good for `count` elements at each pixel, `to` for a vector at each point.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    unsafe fn vector<S: Simd, const FULL: bool>(
        &self,
        s: S,
        data: *const f32,
        count: usize,
        to: *mut f32,
    ) {
        let mut t = [[s.splat(0.0); IN]; IN];
        for x in 0..IN {
            let mut line = [s.splat(0.0); IN];
            for (y, v) in line.iter_mut().enumerate() {
                let at = y * self.from.row + x * self.from.column;
                // SAFETY: `data` has `count` elements at each pixel, or a vector if `FULL`.
                *v = unsafe { read::<S, FULL>(s, data.add(at), count) };
            }
            for (t, v) in t.iter_mut().zip(input_line(s, line)) {
                t[x] = v;
            }
        }
        for (y, line) in t.into_iter().enumerate() {
            let line = input_line(s, line);
            for (x, v) in line.into_iter().enumerate() {
                // SAFETY: `to` has room for a vector at each point.
                unsafe { s.store(to.add((y * IN + x) * self.point), v) }
            }
        }
    }
}

/// Transforms products back, and finishes an output tile.
pub(super) struct FromPoints<'a, const IN: usize> {
    /// The tile's channels at the first point; the others follow `point` elements apart.
    pub from: &'a [f32],
    pub point: usize,
    pub channels: usize,
    pub bias: Option<&'a [f32]>,
    pub residual: Option<&'a [f32]>,
    pub clamp: (f32, f32),
    pub output: Shared<f32>,
    /// The tile's first element in the output, and elements of a row of the output.
    pub first: usize,
    pub row: usize,
    pub rows: usize,
    pub columns: usize,
}

impl<const IN: usize> Task for FromPoints<'_, IN> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let m = self.channels;
        let whole = m.next_multiple_of(S::LANES);
        assert!((IN * IN - 1) * self.point + whole <= self.from.len());
        assert!(self.bias.is_none_or(|b| b.len() == m));
        let end = self.first + (self.rows - 1) * self.row + self.columns * m;
        assert!(self.residual.is_none_or(|r| end <= r.len()));
        for channel in (0..m).step_by(S::LANES) {
            // SAFETY: by the assertions; each tile of the output is written once.
            unsafe {
                if m - channel >= S::LANES {
                    self.vector::<S, true>(s, channel, S::LANES);
                } else {
                    self.vector::<S, false>(s, channel, m - channel);
                }
            }
        }
    }
}

impl<const IN: usize> FromPoints<'_, IN> {
    /// # Safety
    /// `run` checked the sizes; `channel` is one of the output's, with `count` from there on.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    unsafe fn vector<S: Simd, const FULL: bool>(&self, s: S, channel: usize, count: usize) {
        let from = self.from[channel..].as_ptr();
        let bias = match self.bias {
            // SAFETY: bias has `count` channels from `channel` on.
            Some(bias) => unsafe { read::<S, FULL>(s, bias[channel..].as_ptr(), count) },
            None => s.splat(0.0),
        };
        let (low, high) = (s.splat(self.clamp.0), s.splat(self.clamp.1));
        let mut t = [[s.splat(0.0); IN]; IN];
        for x in 0..IN {
            let mut line = [s.splat(0.0); IN];
            for (y, v) in line.iter_mut().enumerate() {
                // SAFETY: every point has whole vectors.
                *v = unsafe { s.load(from.add((y * IN + x) * self.point)) };
            }
            for (t, v) in t.iter_mut().zip(output_line(s, line)) {
                t[x] = v;
            }
        }
        for (y, line) in t.into_iter().enumerate().take(self.rows) {
            let line = output_line(s, line);
            for (x, v) in line.into_iter().enumerate().take(self.columns) {
                let at = self.first + y * self.row + x * self.channels + channel;
                let mut v = s.add(v, bias);
                // SAFETY: `run` checked that the tile is inside of the residual; parts of the
                // output that belong to different tiles and channels do not overlap.
                unsafe {
                    if let Some(residual) = self.residual {
                        let r = residual[at..].as_ptr();
                        v = s.add(v, read::<S, FULL>(s, r, count));
                    }
                    v = s.min(s.max(v, low), high);
                    let out = self.output.part(at, count).as_mut_ptr();
                    write::<S, FULL>(s, out, v, count);
                }
            }
        }
    }
}

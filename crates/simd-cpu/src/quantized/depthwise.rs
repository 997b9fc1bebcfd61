//! One output channel for each input channel, vectors across channels.

use kilim_core::Result;
use kilim_host::CpuRun;

use crate::isa::{IntegerTask, Integers, Isa};

/// Pixels that are computed together.
const PIXELS: usize = 4;

/// Channels filled up to whole vectors.
pub(super) fn width(isa: Isa, channels: usize) -> usize {
    channels.next_multiple_of(isa.integer_sizes().0)
}

/// Some pixels of a padded strip of `i16`.
#[derive(Clone, Copy)]
pub(super) struct Pixels<'a> {
    pub input: *const i16,
    /// Where the window of each pixel begins.
    pub starts: &'a [u32],
    /// Where each tap is in a window.
    pub taps: &'a [usize],
    /// `[taps, width]`, in the lower half of each number.
    pub weights: *const i32,
    /// `[width]`.
    pub bias: *const i32,
    pub channels: usize,
    pub output: *mut i32,
}

/// Computes all channels of the pixels.
///
/// # Errors
/// `Aborted` where the run is to stop.
///
/// # Safety
/// `input` is valid for reads from each start and tap on, of the channels filled up to whole vectors;
/// `weights` and `bias` have the sizes said above; `output` is valid for writes of `channels` elements for each
/// start.
pub(super) unsafe fn compute(cpu: &CpuRun, isa: Isa, pixels: &Pixels) -> Result<()> {
    isa.dispatch_integers(Compute(pixels, cpu))
}

/// Exists only under the contract of [`compute`].
struct Compute<'a>(&'a Pixels<'a>, &'a CpuRun<'a>);

impl IntegerTask for Compute<'_> {
    type Output = Result<()>;

    #[inline(always)]
    fn run<P: Integers>(self, p: P) -> Result<()> {
        let count = self.0.starts.len();
        let whole = count - count % PIXELS;
        let pixel = self
            .0
            .taps
            .len()
            .saturating_mul(self.0.channels.div_ceil(P::LANES));
        // SAFETY: the contract of `compute`; the pixels are below `count`.
        unsafe {
            for first in (0..whole).step_by(PIXELS) {
                self.1.spend(PIXELS * pixel)?;
                tile::<P, PIXELS>(p, self.0, first);
            }
            for first in whole..count {
                self.1.spend(pixel)?;
                tile::<P, 1>(p, self.0, first);
            }
        }
        Ok(())
    }
}

/// `N` pixels from `first` on.
///
/// # Safety
/// As for [`compute`].
#[inline(always)]
unsafe fn tile<P: Integers, const N: usize>(p: P, pixels: &Pixels, first: usize) {
    let channels = pixels.channels;
    let width = channels.next_multiple_of(P::LANES);
    let mut inputs = [pixels.input; N];
    for (input, &start) in inputs.iter_mut().zip(&pixels.starts[first..]) {
        *input = input.wrapping_add(start as usize);
    }
    for channel in (0..channels).step_by(P::LANES) {
        // SAFETY: vectors of channels are inside of the strip, its slack, and the weights.
        unsafe {
            let weights = pixels.weights.add(channel);
            let mut sums = [p.load(pixels.bias.add(channel)); N];
            for (t, &tap) in pixels.taps.iter().enumerate() {
                let weight = p.load(weights.add(t * width));
                for (input, sum) in inputs.iter().zip(&mut sums) {
                    let x = p.load_words(input.add(tap + channel));
                    *sum = p.dot(x, weight, *sum);
                }
            }
            for (i, sum) in sums.into_iter().enumerate() {
                let output = pixels.output.add((first + i) * channels + channel);
                if channels - channel >= P::LANES {
                    p.store(output, sum);
                } else {
                    let mut whole = [0; 16];
                    p.store(whole.as_mut_ptr(), sum);
                    let rest = whole.iter().take(channels - channel).enumerate();
                    for (k, &sum) in rest {
                        *output.add(k) = sum;
                    }
                }
            }
        }
    }
}

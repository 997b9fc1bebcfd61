//! Which place of an axis an element of a resized axis stands for.

use super::resize::{CoordinateMode, NearestMode, Resize, ResizeAxis, ResizeMode, ratio};

impl ResizeAxis {
    /// `o` in elements of the input. Exact where the scale is that of the lengths. Elements are chosen where a
    /// quotient by another scale lies in single precision, as PyTorch and onnxruntime choose them: 3 / 0.6 is 5.
    fn unscaled(&self, o: f64, chosen: bool) -> f64 {
        if self.scale == ratio(self.output, self.input) {
            o * self.input as f64 / self.output as f64
        } else if chosen {
            f64::from(o as f32 / self.scale as f32)
        } else {
            o / self.scale
        }
    }

    /// The length that `align_corners` spreads over the input: that of the output, as in PyTorch and onnxruntime.
    /// Where a scale shrinks to a fraction and elements are combined, the conformance suite takes the fraction.
    fn aligned_length(&self, chosen: bool) -> f64 {
        let fraction = self.scale * self.input as f64;
        if self.scale < 1.0 && !chosen {
            fraction
        } else {
            self.output as f64
        }
    }
}

impl Resize {
    /// Where element `o` of a resized axis lies on the axis of the input, in elements.
    pub fn coordinate(&self, a: &ResizeAxis, o: usize) -> f64 {
        let chosen = matches!(self.mode, ResizeMode::Nearest(_));
        let unscaled = |o: f64| a.unscaled(o, chosen);
        let (o, input, output) = (o as f64, a.input as f64, a.output as f64);
        match self.coordinates {
            CoordinateMode::HalfPixel => unscaled(o + 0.5) - 0.5,
            CoordinateMode::HalfPixelSymmetric => {
                // What rounding the output's size moved is divided between both ends.
                let adjustment = if chosen {
                    f64::from(a.output as f32 / (a.scale as f32 * a.input as f32))
                } else {
                    output / (a.scale * input)
                };
                input / 2.0 * (1.0 - adjustment) + unscaled(o + 0.5) - 0.5
            }
            CoordinateMode::PytorchHalfPixel if a.output > 1 => unscaled(o + 0.5) - 0.5,
            CoordinateMode::PytorchHalfPixel => 0.0,
            CoordinateMode::AlignCorners => {
                let length = a.aligned_length(chosen);
                match (length - 1.0).abs() < 1e-9 {
                    true => 0.0,
                    false => o * (input - 1.0) / (length - 1.0),
                }
            }
            CoordinateMode::Asymmetric => unscaled(o),
            CoordinateMode::TfCropAndResize => {
                let (start, end) = a.roi;
                if a.output > 1 {
                    start * (input - 1.0) + o * (end - start) * (input - 1.0) / (output - 1.0)
                } else {
                    0.5 * (start + end) * (input - 1.0)
                }
            }
            CoordinateMode::TfHalfPixelForNearest => unscaled(o + 0.5),
        }
    }

    /// True where an element at this coordinate is the extrapolation value.
    pub fn is_outside(&self, a: &ResizeAxis, at: f64) -> bool {
        self.coordinates == CoordinateMode::TfCropAndResize
            && !(0.0..=a.input as f64 - 1.0).contains(&at)
    }
}

impl NearestMode {
    /// The element of an axis of `n` that is the nearest to a coordinate.
    pub fn of(self, at: f64, n: usize) -> usize {
        let nearest = match self {
            NearestMode::RoundPreferFloor => (at - 0.5).ceil(),
            NearestMode::RoundPreferCeil => (at + 0.5).floor(),
            NearestMode::Floor => at.floor(),
            NearestMode::Ceil => at.ceil(),
        };
        nearest.clamp(0.0, n.saturating_sub(1) as f64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::AspectPolicy;

    fn op(mode: ResizeMode, coordinates: CoordinateMode) -> Resize {
        Resize {
            mode,
            coordinates,
            antialias: false,
            exclude_outside: false,
            extrapolation: 0.0,
            axes: None,
            policy: AspectPolicy::Stretch,
        }
    }

    fn axis(input: usize, output: usize, scale: f64) -> ResizeAxis {
        ResizeAxis {
            input,
            output,
            scale,
            roi: (0.0, 1.0),
        }
    }

    #[test]
    fn nearest_by_a_scale_of_single_precision() {
        let op = op(
            ResizeMode::Nearest(NearestMode::Floor),
            CoordinateMode::Asymmetric,
        );
        // What PyTorch and onnxruntime make of a scale of 0.6.
        let shrunk = axis(10, 6, 0.6f32.into());
        let chosen: Vec<usize> = (0..6)
            .map(|o| NearestMode::Floor.of(op.coordinate(&shrunk, o), 10))
            .collect();
        assert_eq!(chosen, [0, 1, 3, 5, 6, 8]);
        // Sizes: 49 elements of 98 are exactly every second.
        let halved = axis(98, 49, 49.0 / 98.0);
        assert!((0..49).all(|o| op.coordinate(&halved, o) == 2.0 * o as f64));
        let thinned = axis(7 * 11, 11, 11.0 / 77.0);
        assert!((0..11).all(|o| op.coordinate(&thinned, o) == 7.0 * o as f64));
    }

    #[test]
    fn corners_of_a_fractional_length() {
        let linear = op(ResizeMode::Linear, CoordinateMode::AlignCorners);
        // 5 elements by 1.5 are 7, and the last of the 7 is the last of the 5.
        assert_eq!(linear.coordinate(&axis(5, 7, 1.5), 6), 4.0);
        // The suite's `resize_downsample_scales_linear_align_corners`: 4 by 0.6 are 2.4.
        let at = linear.coordinate(&axis(4, 2, 0.6), 1);
        assert!((at - 3.0 / 1.4).abs() < 1e-12);
        let nearest = op(
            ResizeMode::Nearest(NearestMode::Floor),
            CoordinateMode::AlignCorners,
        );
        assert_eq!(nearest.coordinate(&axis(4, 2, 0.6), 1), 3.0);
    }
}

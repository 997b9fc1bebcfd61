//! Operators on real numbers, in `float64`: what quantised ones are held against.

use kilim_core::Tensor;

/// What the bytes of a tensor stand for: `scale * (byte - zero)`.
#[derive(Clone, Copy)]
pub struct Quanta {
    pub scale: f64,
    pub zero: i32,
}

pub fn quanta(scale: f32, zero: i32) -> Quanta {
    Quanta {
        scale: scale.into(),
        zero,
    }
}

impl Quanta {
    pub fn real(&self, tensor: &Tensor) -> Vec<f64> {
        let bytes = tensor.to_f64s().unwrap();
        let real = |v: f64| self.scale * (v - f64::from(self.zero));
        bytes.into_iter().map(real).collect()
    }

    /// A real number in steps, not rounded.
    pub fn steps(&self, real: f64) -> f64 {
        real / self.scale + f64::from(self.zero)
    }
}

/// The elements of a tensor of `shape` as those of one of `to` that it broadcasts to.
pub fn broadcast(data: &[f64], shape: &[usize], to: &[usize]) -> Vec<f64> {
    let count: usize = to.iter().product();
    let at = |mut i: usize| {
        let (mut at, mut stride) = (0, 1);
        for (axis, &size) in to.iter().enumerate().rev() {
            let index = i % size;
            i /= size;
            let own = (axis + shape.len())
                .checked_sub(to.len())
                .map_or(1, |a| shape[a]);
            at += if own == 1 { 0 } else { index * stride };
            stride *= own;
        }
        data[at]
    };
    (0..count).map(at).collect()
}

/// A window over height and width.
#[derive(Clone, Copy)]
pub struct Geometry {
    pub kernel: usize,
    pub stride: usize,
    pub pad: usize,
    pub dilation: usize,
}

impl Geometry {
    pub fn output(&self, input: usize) -> usize {
        (input + 2 * self.pad - (self.kernel - 1) * self.dilation - 1) / self.stride + 1
    }

    /// Elements `k` of window `o` that are not in the padding: `(k, place)`.
    fn places(&self, input: usize, o: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let g = *self;
        (0..g.kernel).filter_map(move |k| {
            let at = (o * g.stride + k * g.dilation).checked_sub(g.pad)?;
            (at < input).then_some((k, at))
        })
    }
}

/// The convolution of pictures `[n, h, w, c]` with weights `[m, c / groups, k, k]` and a bias of `m`.
pub fn convolution(
    x: &[f64],
    [n, h, w, c]: [usize; 4],
    weights: &[f64],
    bias: &[f64],
    groups: usize,
    g: Geometry,
) -> Vec<f64> {
    let (m, part) = (bias.len(), c / groups);
    let (oh, ow) = (g.output(h), g.output(w));
    let mut y = Vec::with_capacity(n * oh * ow * m);
    for i in 0..n * oh * ow * m {
        let (out, pixel) = (i % m, i / m);
        let (ox, oy, image) = (pixel % ow, pixel / ow % oh, pixel / ow / oh);
        let first = out / (m / groups) * part;
        let mut sum = bias[out];
        for (ky, iy) in g.places(h, oy) {
            for (kx, ix) in g.places(w, ox) {
                for k in 0..part {
                    let weight = ((out * part + k) * g.kernel + ky) * g.kernel + kx;
                    sum += x[((image * h + iy) * w + ix) * c + first + k] * weights[weight];
                }
            }
        }
        y.push(sum);
    }
    y
}

/// The average of windows of pictures `[n, h, w, c]`, without what is in the padding.
pub fn average(x: &[f64], [n, h, w, c]: [usize; 4], g: Geometry) -> Vec<f64> {
    let (oh, ow) = (g.output(h), g.output(w));
    let mut y = Vec::with_capacity(n * oh * ow * c);
    for i in 0..n * oh * ow * c {
        let (channel, pixel) = (i % c, i / c);
        let (ox, oy, image) = (pixel % ow, pixel / ow % oh, pixel / ow / oh);
        let (mut sum, mut count) = (0.0, 0);
        for (_, iy) in g.places(h, oy) {
            for (_, ix) in g.places(w, ox) {
                sum += x[((image * h + iy) * w + ix) * c + channel];
                count += 1;
            }
        }
        y.push(sum / f64::from(count));
    }
    y
}

/// Over rows of `size`.
pub fn softmax(x: &[f64], size: usize) -> Vec<f64> {
    let row = |row: &[f64]| {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let powers: Vec<f64> = row.iter().map(|v| (v - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(move |p| p / sum)
    };
    x.chunks_exact(size).flat_map(row).collect()
}

/// Pictures `[n, h, w, c]`, interpolated between neighbours to `[n, oh, ow, c]`.
pub fn bilinear(
    x: &[f64],
    [n, h, w, c]: [usize; 4],
    [oh, ow]: [usize; 2],
    align_corners: bool,
    half_pixel: bool,
) -> Vec<f64> {
    let place = |o: usize, input: usize, output: usize| {
        let (from, to) = match align_corners && output > 1 {
            true => (input - 1, output - 1),
            false => (input, output),
        };
        let scale = from as f64 / to as f64;
        let at = match half_pixel {
            true => (o as f64 + 0.5) * scale - 0.5,
            false => o as f64 * scale,
        };
        let at = at.clamp(0.0, (input - 1) as f64);
        let low = at.floor() as usize;
        (low, (low + 1).min(input - 1), at - at.floor())
    };
    let mut y = Vec::with_capacity(n * oh * ow * c);
    for i in 0..n * oh * ow * c {
        let (channel, pixel) = (i % c, i / c);
        let (image, oy, ox) = (pixel / ow / oh, pixel / ow % oh, pixel % ow);
        let (top, bottom, dy) = place(oy, h, oh);
        let (left, right, dx) = place(ox, w, ow);
        let at = |iy: usize, ix: usize| x[((image * h + iy) * w + ix) * c + channel];
        let across = |iy: usize| at(iy, left) * (1.0 - dx) + at(iy, right) * dx;
        y.push(across(top) * (1.0 - dy) + across(bottom) * dy);
    }
    y
}

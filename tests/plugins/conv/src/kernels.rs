//! Convolutions on floats, in two ways.

use std::sync::Arc;

use kilim_plugin_abi::guest::{Data, Failure, Kernel, Result};

use crate::Device;
use crate::layer::{Conv, Layer};

/// Weights in the device's form.
pub struct Floats(Vec<f32>);

/// Packs weights.
pub fn floats(elements: &[u8]) -> Result<Floats> {
    let (words, _) = elements.as_chunks();
    Ok(Floats(
        words.iter().map(|w| f32::from_ne_bytes(*w)).collect(),
    ))
}

/// A node made ready.
pub struct Convolutions {
    layer: Layer,
    device: Arc<Device>,
    /// Whether rows of the output are computed one after another.
    pub rows: bool,
    /// The run in which the device is lost.
    pub lose: Option<i64>,
    /// Inputs behind the first, where they are known.
    pub packed: Vec<Option<Arc<Floats>>>,
    /// What is between two convolutions.
    between: Vec<f32>,
}

impl Convolutions {
    pub fn new(layer: Layer, device: Arc<Device>) -> Convolutions {
        Convolutions {
            layer,
            device,
            rows: false,
            lose: None,
            packed: Vec::new(),
            between: Vec::new(),
        }
    }
}

impl Kernel for Convolutions {
    fn run(&mut self, inputs: &[Option<&Data>], outputs: &mut [Data]) -> Result {
        self.device.start(self.lose)?;
        let input = |i: usize| match i.checked_sub(1).and_then(|at| self.packed.get(at)) {
            Some(Some(floats)) => Some(&floats.0[..]),
            _ => inputs.get(i).copied().flatten().map(Data::f32s),
        };
        let missing = || Failure::device("an input is missing");
        let [.., result] = outputs else {
            return Err(Failure::device("the output is missing"));
        };
        let (x, result) = (input(0).ok_or_else(missing)?, result.f32s_mut());
        let weights = |i: usize| input(1 + 2 * i).ok_or_else(missing);
        let by = match self.rows {
            true => Conv::by_rows,
            false => Conv::by_points,
        };
        match &self.layer.convolutions[..] {
            [conv] => by(conv, x, weights(0)?, [input(2), input(3)], result),
            [first, second] => {
                self.between.resize(first.sizes().iter().product(), 0.0);
                let between = &mut self.between[..];
                by(first, x, weights(0)?, [input(2), None], between);
                by(second, between, weights(1)?, [input(4), None], result);
            }
            _ => return Err(Failure::device("neither one convolution nor two")),
        }
        Ok(())
    }

    fn replica(&self) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Convolutions {
            rows: self.rows,
            lose: self.lose,
            packed: self.packed.clone(),
            ..Convolutions::new(self.layer.clone(), self.device.clone())
        }))
    }
}

impl Conv {
    /// Where along an axis a point of the result meets the image; `None` in the padding.
    fn meets(&self, axis: usize, result: usize, weight: usize) -> Option<usize> {
        let padded = result * self.strides[axis] + weight * self.dilations[axis];
        let at = padded.checked_sub(self.before[axis])?;
        (at < self.image[axis]).then_some(at)
    }

    fn finished(&self, sum: f32) -> f32 {
        if self.relu { sum.max(0.0) } else { sum }
    }

    fn by_points(&self, x: &[f32], w: &[f32], add: [Option<&[f32]>; 2], y: &mut [f32]) {
        let [bias, residual] = add;
        let [rows, columns] = self.kernel;
        let ([height, width], area) = (self.result, self.image[0] * self.image[1]);
        let (each, filters) = (self.from / self.groups, self.to / self.groups);
        // How far apart points and channels are.
        let (step, plane) = if self.last { (self.from, 1) } else { (1, area) };
        for (place, y) in y.iter_mut().enumerate() {
            let (point, filter) = match self.last {
                true => (place / self.to, place % self.to),
                false => {
                    let (plane, point) = (place / (height * width), place % (height * width));
                    (plane / self.to * height * width + point, plane % self.to)
                }
            };
            let (row, column) = (point / width % height, point % width);
            let image = &x[point / (height * width) * self.from * area..];
            let mut sum = bias.map_or(0.0, |b| b[filter]) + residual.map_or(0.0, |r| r[place]);
            for ky in 0..rows {
                let Some(iy) = self.meets(0, row, ky) else {
                    continue;
                };
                for kx in 0..columns {
                    let Some(ix) = self.meets(1, column, kx) else {
                        continue;
                    };
                    let at = (iy * self.image[1] + ix) * step;
                    for i in 0..each {
                        let weight = w[((filter * each + i) * rows + ky) * columns + kx];
                        sum += image[(filter / filters * each + i) * plane + at] * weight;
                    }
                }
            }
            *y = self.finished(sum);
        }
    }

    fn by_rows(&self, x: &[f32], w: &[f32], add: [Option<&[f32]>; 2], y: &mut [f32]) {
        let [bias, residual] = add;
        let [rows, columns] = self.kernel;
        let ([height, width], area) = (self.result, self.image[0] * self.image[1]);
        let (each, filters) = (self.from / self.groups, self.to / self.groups);
        for (plane, y) in y.chunks_exact_mut(height * width).enumerate() {
            let (image, filter) = (plane / self.to, plane % self.to);
            y.fill(bias.map_or(0.0, |b| b[filter]));
            for tap in 0..each * rows * columns {
                let (ky, kx) = (tap / columns % rows, tap % columns);
                let channel = filter / filters * each + tap / columns / rows;
                let data = &x[(image * self.from + channel) * area..][..area];
                let weight = w[filter * each * rows * columns + tap];
                for (row, y) in y.chunks_exact_mut(width).enumerate() {
                    let Some(iy) = self.meets(0, row, ky) else {
                        continue;
                    };
                    let line = &data[iy * self.image[1]..][..self.image[1]];
                    for (column, y) in y.iter_mut().enumerate() {
                        if let Some(ix) = self.meets(1, column, kx) {
                            *y += weight * line[ix];
                        }
                    }
                }
            }
            for (i, y) in y.iter_mut().enumerate() {
                let added = residual.map_or(0.0, |r| r[plane * height * width + i]);
                *y = self.finished(*y + added);
            }
        }
    }
}

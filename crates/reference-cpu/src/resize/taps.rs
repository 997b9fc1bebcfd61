//! Which elements of an axis an output element is made of, and with which weights.

use kilim_core::ops::{NearestMode, Resize, ResizeAxis, ResizeMode};

/// The nearest element for every output element; `None` where it lies outside.
pub fn nearest(mode: NearestMode, op: &Resize, a: &ResizeAxis) -> Vec<Option<usize>> {
    (0..a.output)
        .map(|o| {
            let at = op.coordinate(a, o);
            (!op.is_outside(a, at)).then(|| mode.of(at, a.input))
        })
        .collect()
}

/// The elements that make up each output element: as many for each.
#[derive(Debug)]
pub struct Taps {
    pub count: usize,
    /// `count` for each output element.
    pub elements: Vec<usize>,
    pub weights: Vec<f64>,
    /// For each output element.
    pub outside: Vec<bool>,
}

impl Taps {
    pub fn new(op: &Resize, a: &ResizeAxis) -> Taps {
        // When shrinking without aliasing, the filter is as wide as the step over the input.
        let squeeze = if op.antialias { a.scale.min(1.0) } else { 1.0 };
        let radius = match op.mode {
            ResizeMode::Cubic { .. } => 2.0,
            _ => 1.0,
        };
        let first = (-radius / squeeze).floor() as i64 + 1;
        let count = (2 - 2 * first) as usize;
        let mut taps = Taps {
            count,
            elements: Vec::with_capacity(count * a.output),
            weights: Vec::with_capacity(count * a.output),
            outside: Vec::with_capacity(a.output),
        };
        for o in 0..a.output {
            let at = op.coordinate(a, o);
            taps.outside.push(op.is_outside(a, at));
            let base = at.floor();
            let begin = taps.weights.len();
            for i in first..first + count as i64 {
                let distance = (i as f64 - (at - base)) * squeeze;
                let element = base as i64 + i;
                let inside = (0..a.input as i64).contains(&element);
                let weight = match op.mode {
                    _ if op.exclude_outside && !inside => 0.0,
                    ResizeMode::Cubic { a } => cubic(distance.abs(), a.into()),
                    _ => (1.0 - distance.abs()).max(0.0),
                };
                taps.elements
                    .push(element.clamp(0, a.input as i64 - 1) as usize);
                taps.weights.push(weight);
            }
            let weights = &mut taps.weights[begin..];
            if op.exclude_outside || op.antialias {
                let sum: f64 = weights.iter().sum();
                weights.iter_mut().for_each(|w| *w /= sum);
            }
        }
        taps
    }
}

/// Keys' cubic convolution kernel.
pub fn cubic(x: f64, a: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}

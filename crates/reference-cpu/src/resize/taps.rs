//! Which elements of an axis an output element is made of, and with which weights.

use kilim_core::Result;
use kilim_core::memory::{out_of_memory, vec_with_room};
use kilim_core::ops::{NearestMode, Resize, ResizeAxis, ResizeMode};
use kilim_core::tensor::element_count;

use crate::frame::CpuRun;

/// Operations of finding the elements that an output element is made of.
const COST: usize = 64;

/// The nearest element for every output element; `None` where it lies outside.
///
/// # Errors
/// `Limit` where memory is short, `Aborted` where the building is to stop.
pub fn nearest(
    cpu: &CpuRun,
    mode: NearestMode,
    op: &Resize,
    a: &ResizeAxis,
) -> Result<Vec<Option<usize>>> {
    let one = |o: usize| {
        let at = op.coordinate(a, o);
        (!op.is_outside(a, at)).then(|| mode.of(at, a.input))
    };
    cpu.collect((0..a.output).map(one), COST)
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
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub fn new(cpu: &CpuRun, op: &Resize, a: &ResizeAxis) -> Result<Taps> {
        // When shrinking without aliasing, the filter is as wide as the step over the input.
        let squeeze = if op.antialias { a.scale.min(1.0) } else { 1.0 };
        let radius = match op.mode {
            ResizeMode::Cubic { .. } => 2.0,
            _ => 1.0,
        };
        let first = (-radius / squeeze).floor() as i64 + 1;
        let count = first.checked_mul(-2).and_then(|n| n.checked_add(2));
        let count = count.and_then(|n| usize::try_from(n).ok());
        let count = count.ok_or_else(|| out_of_memory(usize::MAX))?;
        let all = element_count(&[count, a.output])?;
        let mut taps = Taps {
            count,
            elements: vec_with_room(all)?,
            weights: vec_with_room(all)?,
            outside: vec_with_room(a.output)?,
        };
        for o in 0..a.output {
            cpu.spend(COST)?;
            let at = op.coordinate(a, o);
            taps.outside.push(op.is_outside(a, at));
            let base = at.floor();
            let begin = taps.weights.len();
            for i in first..first + count as i64 {
                cpu.spend(COST)?;
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
        Ok(taps)
    }

    /// Whether each output element is the input element at the same place.
    ///
    /// # Errors
    /// `Aborted` where the building is to stop.
    pub fn keep_all(&self, cpu: &CpuRun) -> Result<bool> {
        let mut same = true;
        cpu.pieces(self.weights.len(), 2, |piece| {
            same &= piece.into_iter().all(|t| {
                let (i, w) = (self.elements[t], self.weights[t]);
                w == 0.0 || (i == t / self.count && w == 1.0)
            });
            Ok(())
        })?;
        Ok(same)
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

//! Which elements of an axis an output element is made of, and with which weights.

use kilim_core::Result;
use kilim_core::memory::{out_of_memory, vec_of};
use kilim_core::ops::{NearestMode, Resize, ResizeAxis, ResizeMode};
use kilim_core::tensor::element_count;
use kilim_host::{Build, Table};

use crate::common::Real;

/// Operations of finding the elements that an output element is made of.
const COST: usize = 64;

/// The nearest element for every output element, times the stride of the axis; `None` where it lies outside.
///
/// # Errors
/// `Limit` where memory is short, `Aborted` where the building is to stop.
pub fn nearest(
    build: &Build,
    mode: NearestMode,
    op: &Resize,
    a: &ResizeAxis,
    stride: usize,
) -> Result<Table<Option<usize>>> {
    let one = |o: usize| {
        let at = op.coordinate(a, o);
        (!op.is_outside(a, at)).then(|| mode.of(at, a.input) * stride)
    };
    build.table((0..a.output).map(one), COST)
}

/// The elements that make up each output element: as many for each.
#[derive(Debug)]
pub struct Taps {
    pub count: usize,
    /// `count` for each output element.
    pub elements: Table<usize>,
    /// For each output element.
    pub outside: Table<bool>,
    /// Whether each output element is the input element at the same place.
    pub keep_all: bool,
}

/// How far an output element sees, in input elements times what these are squeezed by.
struct Filter {
    /// When shrinking without aliasing, the filter is as wide as the step over the input.
    squeeze: f64,
    first: i64,
    count: usize,
}

impl Filter {
    fn new(op: &Resize, a: &ResizeAxis) -> Result<Filter> {
        let squeeze = if op.antialias { a.scale.min(1.0) } else { 1.0 };
        let radius = match op.mode {
            ResizeMode::Cubic { .. } => 2.0,
            _ => 1.0,
        };
        let first = (-radius / squeeze).floor() as i64 + 1;
        let count = first.checked_mul(-2).and_then(|n| n.checked_add(2));
        let count = count.and_then(|n| usize::try_from(n).ok());
        Ok(Filter {
            squeeze,
            first,
            count: count.ok_or_else(|| out_of_memory(usize::MAX))?,
        })
    }
}

impl Taps {
    /// The taps of an axis with their weights: `count` for each output element.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Aborted` where the building is to stop.
    pub fn new<T: Real>(build: &Build, op: &Resize, a: &ResizeAxis) -> Result<(Taps, Table<T>)> {
        let filter = Filter::new(op, a)?;
        let mut weights = build.room(element_count(&[filter.count, a.output])?)?;
        let taps = Taps::weighted(build, op, a, &filter, &mut |w| weights.push(T::of(w)))?;
        Ok((taps, weights))
    }

    fn weighted(
        build: &Build,
        op: &Resize,
        a: &ResizeAxis,
        filter: &Filter,
        push: &mut dyn FnMut(f64),
    ) -> Result<Taps> {
        let &Filter {
            squeeze,
            first,
            count,
        } = filter;
        let cpu = build.cpu();
        let mut taps = Taps {
            count,
            elements: build.room(element_count(&[count, a.output])?)?,
            outside: build.room(a.output)?,
            keep_all: true,
        };
        let mut weights = vec_of(0.0, count)?;
        for o in 0..a.output {
            cpu.spend(COST)?;
            let at = op.coordinate(a, o);
            taps.outside.push(op.is_outside(a, at));
            let base = at.floor();
            for (i, weight) in (first..).zip(&mut weights) {
                cpu.spend(COST)?;
                let distance = (i as f64 - (at - base)) * squeeze;
                let element = base as i64 + i;
                let inside = (0..a.input as i64).contains(&element);
                *weight = match op.mode {
                    _ if op.exclude_outside && !inside => 0.0,
                    ResizeMode::Cubic { a } => cubic(distance.abs(), a.into()),
                    _ => (1.0 - distance.abs()).max(0.0),
                };
                taps.elements
                    .push(element.clamp(0, a.input as i64 - 1) as usize);
            }
            if op.exclude_outside || op.antialias {
                let sum: f64 = weights.iter().sum();
                weights.iter_mut().for_each(|w| *w /= sum);
            }
            let elements = &taps.elements[o * count..];
            let mut own = elements.iter().zip(&weights);
            taps.keep_all &= own.all(|(&i, &w)| w == 0.0 || (i == o && w == 1.0));
            weights.iter().for_each(|&w| push(w));
        }
        Ok(taps)
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

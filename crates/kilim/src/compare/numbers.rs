//! The elements of an output beside those of its reference.

use kilim_core::error::value_error;
use kilim_core::{Result, Tensor};

/// Two tensors of numbers with the same count of elements.
pub struct Numbers {
    pub got: Vec<f64>,
    pub want: Vec<f64>,
}

fn same(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}

/// How far two numbers are apart: infinitely, where one of them is not finite and the other another.
fn difference(a: f64, b: f64) -> f64 {
    if same(a, b) {
        0.0
    } else if (a - b).is_finite() {
        (a - b).abs()
    } else {
        f64::INFINITY
    }
}

fn rms(squares: impl Iterator<Item = f64>, count: usize) -> f64 {
    (squares.sum::<f64>() / count.max(1) as f64).sqrt()
}

/// A difference in units of `scale`; nothing is infinitely much of zero.
fn in_units(difference: f64, scale: f64) -> f64 {
    if difference == 0.0 {
        0.0
    } else {
        difference / scale
    }
}

impl Numbers {
    pub fn of(got: &Tensor, want: &Tensor) -> Result<Numbers> {
        Ok(Numbers {
            got: got.to_f64s()?,
            want: want.to_f64s()?,
        })
    }

    fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.got.iter().copied().zip(self.want.iter().copied())
    }

    fn finite(&self) -> impl Iterator<Item = f64> {
        self.want.iter().copied().filter(|v| v.is_finite())
    }

    /// The numbers, where the output holds integers.
    ///
    /// # Errors
    /// `InvalidValue` where it does not: nobody knows how large its quanta are.
    pub fn quanta(&self, output: &Tensor) -> Result<&Numbers> {
        match output.dtype().is_integer() {
            true => Ok(self),
            false => Err(value_error("quanta are compared of integers").with_got(output.dtype())),
        }
    }

    /// The largest difference.
    pub fn largest(&self) -> f64 {
        self.pairs()
            .map(|(a, b)| difference(a, b))
            .fold(0.0, f64::max)
    }

    /// The root mean square of the differences.
    pub fn rms(&self) -> f64 {
        let squares = self.pairs().map(|(a, b)| difference(a, b).powi(2));
        rms(squares, self.want.len())
    }

    /// A difference in units of the largest magnitude of the reference.
    pub fn share(&self, difference: f64) -> f64 {
        in_units(difference, self.finite().fold(0.0, |m, v| m.max(v.abs())))
    }

    /// A difference in units of the root mean square of the reference.
    pub fn share_of_rms(&self, difference: f64) -> f64 {
        let count = self.finite().count();
        in_units(difference, rms(self.finite().map(|v| v * v), count))
    }

    /// The share of the elements that are not equal.
    pub fn unequal(&self) -> f64 {
        let equal = self.pairs().filter(|&(a, b)| same(a, b)).count();
        1.0 - equal as f64 / self.want.len().max(1) as f64
    }

    /// The largest difference in units of what is allowed of its element.
    pub fn excess(&self, rtol: f64, atol: f64) -> f64 {
        let excess = |(a, b): (f64, f64)| match difference(a, b) {
            0.0 => 0.0,
            // What is allowed of a reference that is infinite or no number is no number.
            d if d.is_infinite() => d,
            d => d / (atol + rtol * b.abs()),
        };
        self.pairs().map(excess).fold(0.0, f64::max)
    }
}

//! The two types that kernels of floating-point mathematics compute in.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use kilim_core::Result;
use kilim_core::ops::Activation;
use kilim_host::elements::Wide;
use kilim_host::{CpuRun, by};

use super::activation;

/// `f32` or `f64`. Narrower types are widened before such a kernel sees them.
pub trait Real:
    Wide
    + Default
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
{
    /// `v`, rounded to this type.
    fn of(v: f64) -> Self;
    /// The number in `float64`, exactly.
    fn wide(self) -> f64;
    /// Applies an activation, which only operators on `float32` have.
    fn activate(activation: Activation, data: &mut [Self]);
}

impl Real for f32 {
    fn of(v: f64) -> f32 {
        v as f32
    }

    fn wide(self) -> f64 {
        self.into()
    }

    fn activate(activation: Activation, data: &mut [f32]) {
        activation::apply(activation, data);
    }
}

impl Real for f64 {
    fn of(v: f64) -> f64 {
        v
    }

    fn wide(self) -> f64 {
        self
    }

    fn activate(activation: Activation, data: &mut [f64]) {
        for v in data {
            let mut narrow = [*v as f32];
            if activation != Activation::None {
                activation::apply(activation, &mut narrow);
                *v = narrow[0].into();
            }
        }
    }
}

/// Applies an activation in place.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub fn activate<T: Real>(cpu: &CpuRun, activation: Activation, data: &mut [T]) -> Result<()> {
    if activation == Activation::None {
        return Ok(());
    }
    cpu.rows(data.len(), by(data, 1), COST, |_, data, _| {
        T::activate(activation, data);
        Ok(())
    })
}

/// Operations of an activation; the hyperbolic tangent takes the longest.
const COST: usize = 16;

/// Calls a generic function with the [`Real`] type of an element type, of complex numbers that of their parts.
#[macro_export]
#[doc(hidden)]
macro_rules! by_real {
    ($dtype:expr, $t:ident => $body:expr) => {
        if $dtype.part() == kilim_core::DType::F64 {
            type $t = f64;
            $body
        } else {
            type $t = f32;
            $body
        }
    };
}

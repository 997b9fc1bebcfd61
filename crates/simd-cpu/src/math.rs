//! Functions on vectors: exponentials and what follows from them, and activations.

use kilim_core::Result;
use kilim_core::ops::Activation;
use kilim_host::{CpuRun, by};

use super::isa::{Constant, Isa, Simd, Task, constant};

/// `c[0] + x c[1] + x^2 c[2] ..`
#[inline(always)]
pub(crate) fn polynomial<S: Simd>(s: S, x: S::V, c: &'static [Constant]) -> S::V {
    let mut sum = s.splat(0.0);
    for (i, c) in c.iter().rev().enumerate() {
        sum = if i == 0 {
            s.constant(c)
        } else {
            s.fma(sum, x, s.constant(c))
        };
    }
    sum
}

/// Within two units in the last place; infinity above 88.7, subnormal numbers below -87.3.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::V) -> S::V {
    let x = s.min(s.max(x, constant!(s, -104.0)), constant!(s, 89.0));
    let n = s.round(s.mul(x, constant!(s, std::f32::consts::LOG2_E)));
    // ln 2 in two parts, the first with few digits so that its products are exact.
    let r = s.fma(n, constant!(s, -0.693_359_4), x);
    let r = s.fma(n, constant!(s, 2.121_944_4e-4), r);
    // Cephes `expf`.
    let p = polynomial(
        s,
        r,
        const {
            &Constant::all([
                5e-1,
                1.666_666_5e-1,
                4.166_579_6e-2,
                8.333_452e-3,
                1.398_2e-3,
                1.987_569_1e-4,
            ])
        },
    );
    let p = s.add(s.fma(p, s.mul(r, r), r), constant!(s, 1.0));
    // In two steps, since 2^n alone may not be a normal number.
    let half = s.round(s.mul(n, constant!(s, 0.5)));
    s.mul(s.mul(p, s.exp2_whole(half)), s.exp2_whole(s.sub(n, half)))
}

#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::V) -> S::V {
    let one = constant!(s, 1.0);
    let e = exp(s, s.neg(s.abs(x)));
    let positive = s.div(one, s.add(one, e));
    s.select(s.less(x, s.splat(0.0)), s.mul(e, positive), positive)
}

#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::V) -> S::V {
    let a = s.abs(x);
    let z = s.mul(x, x);
    // Cephes `tanhf` below 0.625.
    let p = polynomial(
        s,
        z,
        const {
            &Constant::all([
                -3.333_328e-1,
                1.333_144_2e-1,
                -5.373_971_6e-2,
                2.063_909e-2,
                -5.704_988e-3,
            ])
        },
    );
    let small = s.fma(s.mul(p, z), x, x);
    let one = constant!(s, 1.0);
    let e = exp(s, s.add(a, a));
    let large = s.sub(one, s.div(constant!(s, 2.0), s.add(e, one)));
    let large = s.select(s.less(x, s.splat(0.0)), s.neg(large), large);
    s.select(s.less(a, constant!(s, 0.625)), small, large)
}

/// Where erf turns from one approximation to the other.
const ERF_MIDDLE: f32 = 0.927_734_4;

/// erf for small arguments.
#[inline(always)]
fn erf_small<S: Simd>(s: S, x: S::V) -> S::V {
    let p = polynomial(
        s,
        s.mul(x, x),
        const {
            &Constant::all([
                1.283_791_7e-1,
                -3.761_253_4e-1,
                1.128_199_2e-1,
                -2.676_813_5e-2,
                4.991_194e-3,
                -5.967_617e-4,
            ])
        },
    );
    s.fma(p, x, x)
}

/// `1 - erf(a)` for large arguments: its logarithm is smooth. Zero from 10 on.
#[inline(always)]
fn erfc_large<S: Simd>(s: S, a: S::V) -> S::V {
    let t = s.min(a, constant!(s, 10.0));
    let q = polynomial(
        s,
        t,
        const {
            &Constant::all([
                -1.287_175_1e-1,
                -6.348_467e-1,
                -1.067_778_8e-1,
                2.425_462_2e-2,
                -3.883_964_4e-3,
                3.831_971_3e-4,
                -1.728_534_7e-5,
            ])
        },
    );
    exp(s, s.fma(q, t, s.neg(t)))
}

/// Within a few units in the last place.
#[inline(always)]
pub(crate) fn erf<S: Simd>(s: S, x: S::V) -> S::V {
    let a = s.abs(x);
    let large = s.sub(constant!(s, 1.0), erfc_large(s, a));
    let large = s.select(s.less(x, s.splat(0.0)), s.neg(large), large);
    s.select(s.less(constant!(s, ERF_MIDDLE), a), large, erf_small(s, x))
}

/// `x / 2 * erfc(-x / sqrt 2)`, without the cancellation of `1 + erf`.
#[inline(always)]
pub(crate) fn gelu<S: Simd>(s: S, x: S::V) -> S::V {
    let z = s.mul(x, constant!(s, std::f32::consts::FRAC_1_SQRT_2));
    let a = s.abs(z);
    let e = erfc_large(s, a);
    let large = s.select(s.less(x, s.splat(0.0)), e, s.sub(constant!(s, 2.0), e));
    let small = s.add(constant!(s, 1.0), erf_small(s, z));
    let erfc = s.select(s.less(constant!(s, ERF_MIDDLE), a), large, small);
    s.mul(s.mul(x, constant!(s, 0.5)), erfc)
}

#[inline(always)]
pub(crate) fn hard_sigmoid<S: Simd>(s: S, x: S::V, alpha: f32, beta: f32) -> S::V {
    let y = s.fma(x, s.splat(alpha), s.splat(beta));
    s.min(s.max(y, s.splat(0.0)), constant!(s, 1.0))
}

/// A function of one vector.
pub(crate) trait Map: Copy {
    /// Implementations are `#[inline(always)]`.
    fn apply<S: Simd>(self, s: S, x: S::V) -> S::V;
}

/// `to[i] = map(from[i])` over as many elements as both have; `from` null means in place.
struct MapSlice<'a, M> {
    map: M,
    from: Option<&'a [f32]>,
    to: &'a mut [f32],
}

impl<M: Map> Task for MapSlice<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (to, count) = (self.to.as_mut_ptr(), self.to.len());
        let from = match self.from {
            Some(from) => {
                assert!(from.len() >= count);
                from.as_ptr()
            }
            None => to.cast_const(),
        };
        let whole = count - count % S::LANES;
        let mut i = 0;
        // SAFETY: `i + LANES <= count` in the loop, and the rest is shorter than a vector.
        unsafe {
            while i < whole {
                s.store(to.add(i), self.map.apply(s, s.load(from.add(i))));
                i += S::LANES;
            }
            if i < count {
                let rest = count - i;
                let x = s.load_part(from.add(i), rest);
                s.store_part(to.add(i), self.map.apply(s, x), rest);
            }
        }
    }
}

/// Applies `map` to each element of `from`, or of `to` itself. A function of its own: an operator and an activation have
/// one loop.
#[inline(never)]
pub(crate) fn map_slice<M: Map>(isa: Isa, map: M, from: Option<&[f32]>, to: &mut [f32]) {
    isa.dispatch(MapSlice { map, from, to });
}

pub(crate) fn map_in_place<M: Map>(isa: Isa, map: M, data: &mut [f32]) {
    map_slice(isa, map, None, data);
}

/// Maps by the formula for a vector.
macro_rules! maps {
    ($($name:ident { $($field:ident),* } = |$s:ident, $x:ident| $e:expr;)*) => { $(
        #[derive(Clone, Copy)]
        pub(crate) struct $name { $(pub $field: f32),* }
        impl $crate::math::Map for $name {
            #[inline(always)]
            fn apply<S: Simd>(self, $s: S, $x: S::V) -> S::V {
                let $name { $($field),* } = self;
                $e
            }
        }
    )* };
}
pub(crate) use maps;

maps! {
    Clamp { low, high } = |s, x| s.min(s.max(x, s.splat(low)), s.splat(high));
    Leaky { alpha } = |s, x| s.select(s.less(x, s.splat(0.0)), s.mul(x, s.splat(alpha)), x);
    Exp {} = |s, x| exp(s, x);
    Sigmoid {} = |s, x| sigmoid(s, x);
    Tanh {} = |s, x| tanh(s, x);
    Erf {} = |s, x| erf(s, x);
    HardSigmoid { alpha, beta } = |s, x| hard_sigmoid(s, x, alpha, beta);
    HardSwish {} = |s, x| s.mul(x, hard_sigmoid(s, x, 1.0 / 6.0, 0.5));
    Swish { alpha } = |s, x| s.mul(x, sigmoid(s, s.mul(x, s.splat(alpha))));
    Gelu {} = |s, x| gelu(s, x);
    GeluTanh {} = |s, x| {
        let cube = s.mul(s.mul(x, x), x);
        let inner = s.mul(s.fma(cube, constant!(s, 0.044715), x), constant!(s, 0.797_884_6));
        let half = s.mul(x, constant!(s, 0.5));
        s.fma(half, tanh(s, inner), half)
    };
}

/// Operations of an activation of one element.
pub(crate) const ACTIVATION_COST: usize = 1;

/// Applies an activation in place.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub(crate) fn activate(
    cpu: &CpuRun,
    isa: Isa,
    activation: Activation,
    data: &mut [f32],
) -> Result<()> {
    if activation == Activation::None {
        return Ok(());
    }
    cpu.rows(data.len(), by(data, 1), ACTIVATION_COST, |_, data, _| {
        activate_piece(isa, activation, data);
        Ok(())
    })
}

pub(crate) fn activate_piece(isa: Isa, activation: Activation, data: &mut [f32]) {
    match activation {
        Activation::None => {}
        Activation::Relu => map_in_place(
            isa,
            Clamp {
                low: 0.0,
                high: f32::INFINITY,
            },
            data,
        ),
        Activation::Clip { min, max } => map_in_place(
            isa,
            Clamp {
                low: min,
                high: max,
            },
            data,
        ),
        Activation::LeakyRelu { alpha } => map_in_place(isa, Leaky { alpha }, data),
        Activation::Sigmoid => map_in_place(isa, Sigmoid {}, data),
        Activation::Tanh => map_in_place(isa, Tanh {}, data),
        Activation::HardSwish => map_in_place(isa, HardSwish {}, data),
        Activation::HardSigmoid { alpha, beta } => {
            map_in_place(isa, HardSigmoid { alpha, beta }, data)
        }
        Activation::Silu => map_in_place(isa, Swish { alpha: 1.0 }, data),
    }
}

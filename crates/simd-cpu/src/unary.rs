//! Functions of one `float32` tensor.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::error::unsupported;
use kilim_core::ops::{Clip, Unary, UnaryKind};
use kilim_core::{DType, Result};

use super::isa::{Isa, Simd};
use super::math::{self, Map, map_slice};
use kilim_host::registry::KernelRegistry;
use kilim_host::{Io, Kernel, by};

/// Operations of a function of one element.
const COST: usize = 1;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add::<Unary>(
        |op, node| match (node.input(0), kernel(op.0, Isa::best())) {
            (Some(x), Some(_)) if x.dtype == DType::F32 => Ok(()),
            _ => Err(Refusal::new("the SIMD kernels have no such function")),
        },
        |op, _, _| kernel(op.0, Isa::best()).ok_or_else(|| unsupported("this function")),
    );
    registry.add::<Clip>(
        |_, node| match (node.input(0), bounds(node)) {
            (Some(x), Some(_)) if x.dtype == DType::F32 => Ok(()),
            _ => Err(Refusal::new(
                "the SIMD Clip: not float32, or bounds that are computed",
            )),
        },
        |_, node, _| {
            let (low, high) = bounds(node).ok_or_else(|| unsupported("computed bounds"))?;
            Ok(boxed(Isa::best(), math::Clamp { low, high }))
        },
    );
}

/// The bounds of Clip, if they are known.
fn bounds(node: &NodeSpec) -> Option<(f32, f32)> {
    let bound = |i: usize, none: f32| match node.input(i) {
        None => Some(none),
        Some(spec) => spec
            .value
            .as_ref()?
            .as_slice::<f32>()
            .ok()?
            .first()
            .copied(),
    };
    Some((bound(1, f32::NEG_INFINITY)?, bound(2, f32::INFINITY)?))
}

struct Pointwise<M> {
    isa: Isa,
    map: M,
}

impl<M: Map + Send + Sync> Kernel for Pointwise<M> {
    fn run(&self, io: &mut Io) -> Result<()> {
        let (from, to) = (io.input::<f32>(0), io.output::<f32>(0));
        io.cpu().rows(to.len(), by(to, 1), COST, |piece, to, _| {
            map_slice(self.isa, self.map, Some(&from[piece]), to);
            Ok(())
        })
    }
}

fn boxed<M: Map + Send + Sync + 'static>(isa: Isa, map: M) -> Box<dyn Kernel> {
    Box::new(Pointwise { isa, map })
}

super::math::maps! {
    Absolute {} = |s, x| s.abs(x);
    Negate {} = |s, x| s.neg(x);
    SquareRoot {} = |s, x| s.sqrt(x);
    Reciprocal {} = |s, x| s.div(s.splat(1.0), x);
    Floor {} = |s, x| s.floor(x);
    Ceil {} = |s, x| s.ceil(x);
    Round {} = |s, x| s.round(x);
    Softsign {} = |s, x| s.div(x, s.add(s.splat(1.0), s.abs(x)));
    Mish {} = |s, x| {
        // x tanh(ln(1 + e)) with e = exp(x): the square of 1 + e makes the logarithm vanish.
        let e = math::exp(s, s.min(x, s.splat(20.0)));
        let n = s.mul(e, s.add(e, s.splat(2.0)));
        s.mul(x, s.div(n, s.add(n, s.splat(2.0))))
    };
    Threshold { alpha } = |s, x| s.select(s.less(s.splat(alpha), x), x, s.splat(0.0));
}

/// The kernel of a function, if there is one.
pub(crate) fn kernel(kind: UnaryKind, isa: Isa) -> Option<Box<dyn Kernel>> {
    use UnaryKind as K;
    Some(match kind {
        K::Abs => boxed(isa, Absolute {}),
        K::Neg => boxed(isa, Negate {}),
        K::Exp => boxed(isa, math::Exp {}),
        K::Sqrt => boxed(isa, SquareRoot {}),
        K::Reciprocal => boxed(isa, Reciprocal {}),
        K::Floor => boxed(isa, Floor {}),
        K::Ceil => boxed(isa, Ceil {}),
        K::Round => boxed(isa, Round {}),
        K::Tanh => boxed(isa, math::Tanh {}),
        K::Erf => boxed(isa, math::Erf {}),
        K::Sigmoid => boxed(isa, math::Sigmoid {}),
        K::Relu => boxed(
            isa,
            math::Clamp {
                low: 0.0,
                high: f32::INFINITY,
            },
        ),
        K::Softsign => boxed(isa, Softsign {}),
        K::LeakyRelu { alpha } => boxed(isa, math::Leaky { alpha }),
        K::HardSigmoid { alpha, beta } => boxed(isa, math::HardSigmoid { alpha, beta }),
        K::HardSwish => boxed(isa, math::HardSwish {}),
        K::Mish => boxed(isa, Mish {}),
        K::Gelu { tanh: false } => boxed(isa, math::Gelu {}),
        K::Gelu { tanh: true } => boxed(isa, math::GeluTanh {}),
        K::ThresholdedRelu { alpha } => boxed(isa, Threshold { alpha }),
        K::Swish { alpha } => boxed(isa, math::Swish { alpha }),
        K::Clip { min, max } => boxed(
            isa,
            math::Clamp {
                low: min as f32,
                high: max as f32,
            },
        ),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run_kernel;
    #[cfg(target_arch = "wasm32")]
    use crate::testing::test;
    use kilim_host::testing::tensor;

    /// Everything that the functions are asked to get right: many magnitudes, both signs, halves.
    fn inputs() -> Vec<f32> {
        let mut x = vec![
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            1e-40,
            88.5,
            -87.0,
        ];
        for i in 0..4000 {
            x.push((i as f32 - 2000.0) * 0.0125);
            x.push((i as f32 * 0.02 - 40.0).exp2());
            x.push(-(i as f32 * 0.02 - 40.0).exp2());
            x.push((i as f32 - 2000.0) * 0.05);
        }
        x
    }

    fn sigmoid(x: f64) -> f64 {
        if x < 0.0 {
            x.exp() / (1.0 + x.exp())
        } else {
            1.0 / (1.0 + (-x).exp())
        }
    }

    /// Relative error at most `relative`, or absolute error at most `absolute`.
    fn check(kind: UnaryKind, want: impl Fn(f64) -> f64, relative: f64, absolute: f64) {
        let x = inputs();
        let t = tensor(&[x.len()], &x);
        for isa in Isa::available() {
            let op = Unary(kind);
            let got = run_kernel(&op, &[Some(&t)], &[x.len()], |_, _| {
                Ok(super::kernel(kind, isa).expect("a kernel"))
            });
            for (&x, got) in x.iter().zip(got) {
                let (w, g) = (want(x.into()), f64::from(got));
                let fits = (w.is_nan() && g.is_nan())
                    || w as f32 == got
                    || (g - w).abs() <= relative * w.abs() + absolute;
                assert!(fits, "{kind:?} of {x} is {g} instead of {w} with {isa:?}");
            }
        }
    }

    #[test]
    fn exact() {
        check(UnaryKind::Abs, f64::abs, 0.0, 0.0);
        check(UnaryKind::Neg, |x| -x, 0.0, 0.0);
        check(UnaryKind::Sqrt, f64::sqrt, 6e-8, 0.0);
        check(UnaryKind::Reciprocal, |x| 1.0 / x, 6e-8, 1e-38);
        check(UnaryKind::Floor, f64::floor, 0.0, 0.0);
        check(UnaryKind::Ceil, f64::ceil, 0.0, 0.0);
        check(UnaryKind::Round, f64::round_ties_even, 0.0, 0.0);
        let relu = |x: f64| if x < 0.0 { 0.0 } else { x };
        check(UnaryKind::Relu, relu, 0.0, 0.0);
        let clip = |x: f64| if x.is_nan() { x } else { x.clamp(-1.5, 2.0) };
        check(
            UnaryKind::Clip {
                min: -1.5,
                max: 2.0,
            },
            clip,
            0.0,
            0.0,
        );
        let leaky = |x: f64| if x < 0.0 { f64::from(0.1f32) * x } else { x };
        check(UnaryKind::LeakyRelu { alpha: 0.1 }, leaky, 1e-7, 1e-44);
        let threshold = |x: f64| if x > 1.0 { x } else { 0.0 };
        check(
            UnaryKind::ThresholdedRelu { alpha: 1.0 },
            threshold,
            0.0,
            0.0,
        );
    }

    #[test]
    fn exponentials() {
        check(UnaryKind::Exp, f64::exp, 3e-7, 2e-45);
        check(UnaryKind::Sigmoid, sigmoid, 4e-7, 2e-45);
        check(UnaryKind::Tanh, f64::tanh, 4e-7, 1e-45);
        check(UnaryKind::Erf, libm::erf, 4e-7, 1e-45);
        let sign = |x: f64| x / (1.0 + x.abs());
        let swish = |x: f64| {
            if x == f64::NEG_INFINITY {
                f64::NAN
            } else {
                x * sigmoid(x)
            }
        };
        check(UnaryKind::Swish { alpha: 1.0 }, swish, 6e-7, 1e-37);
        let softsign = |x: f64| if x.is_infinite() { f64::NAN } else { sign(x) };
        check(UnaryKind::Softsign, softsign, 3e-7, 1e-45);
    }

    #[test]
    fn smooth_units() {
        let gelu = |x: f64| {
            if x == f64::NEG_INFINITY {
                f64::NAN
            } else {
                0.5 * x * (1.0 + libm::erf(x * std::f64::consts::FRAC_1_SQRT_2))
            }
        };
        check(UnaryKind::Gelu { tanh: false }, gelu, 1e-6, 3e-7);
        let gelu_tanh = |x: f64| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
            if x == f64::NEG_INFINITY {
                f64::NAN
            } else {
                0.5 * x * (1.0 + inner.tanh())
            }
        };
        check(UnaryKind::Gelu { tanh: true }, gelu_tanh, 1e-6, 5e-7);
        let mish = |x: f64| {
            if x == f64::NEG_INFINITY {
                f64::NAN
            } else if x > 30.0 {
                x
            } else {
                x * x.exp().ln_1p().tanh()
            }
        };
        check(UnaryKind::Mish, mish, 1e-6, 1e-36);
        let hard = |x: f64| (x / 6.0 + 0.5).clamp(0.0, 1.0);
        check(
            UnaryKind::HardSigmoid {
                alpha: 1.0 / 6.0,
                beta: 0.5,
            },
            hard,
            3e-7,
            6e-8,
        );
        let swish = |x: f64| {
            if x == f64::NEG_INFINITY {
                f64::NAN
            } else {
                x * hard(x)
            }
        };
        check(UnaryKind::HardSwish, swish, 3e-7, 2e-7);
    }
}

//! Quantised arithmetic in fixed point, and products and convolutions of 8-bit integers with constant weights. Bytes
//! are multiplied as they are where the machine does so exactly and the weights fit, else widened to `i16` without their zero
//! points; products are summed in `i32`, and sums scaled or quantised again. Nothing is rounded on the way, so that all
//! instruction sets give the same bytes.

mod bytewise;
mod conv;
mod depthwise;
mod finish;
mod fixed;
mod linear;
mod matmul;
mod pairwise;
mod product;
mod real;
mod resize;
mod steps;
#[cfg(test)]
mod tests;
mod weights;

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{
    Activation, Affine, AffineQuantize, ConvInteger, MatMulInteger, MatMulIntegerToFloat,
    QLinearBinary, QLinearConv, QLinearMatMul, QuantizedBinary, QuantizedResize, Requantize,
    TableLookup, clamped_range,
};

use self::finish::{Finish, Fixed, Floats, Rounded};
use self::weights::{Order, Weights};
use super::isa::{IntegerTask, Integers, Isa};
use kilim_host::Io;
use kilim_host::registry::{KernelRegistry, any};
use kilim_host::rules;

pub(crate) fn register(registry: &mut KernelRegistry) {
    use Places as P;
    registry.add::<QLinearConv>(
        |op, node| accepts(conv::Plan::of(&op.conv, None, node, &P::Q_LINEAR)),
        |op, node, build| {
            let plan = conv::Plan::of(&op.conv, None, node, &P::Q_LINEAR);
            conv::kernel(plan, node, build, Isa::best())
        },
    );
    registry.add::<ConvInteger>(
        |op, node| {
            let again = op.requantize.as_ref();
            accepts(conv::Plan::of(&op.conv, again, node, &P::INTEGER))
        },
        |op, node, build| {
            let again = op.requantize.as_ref();
            let plan = conv::Plan::of(&op.conv, again, node, &P::INTEGER);
            conv::kernel(plan, node, build, Isa::best())
        },
    );
    registry.add::<QLinearMatMul>(
        |op, node| accepts(matmul::Plan::of(op.activation, None, node, &P::Q_LINEAR)),
        |op, node, build| {
            let plan = matmul::Plan::of(op.activation, None, node, &P::Q_LINEAR);
            matmul::kernel(plan, node, build, Isa::best())
        },
    );
    registry.add::<MatMulInteger>(
        |op, node| {
            let again = op.requantize.as_ref();
            accepts(matmul::Plan::of(Activation::None, again, node, &P::INTEGER))
        },
        |op, node, build| {
            let again = op.requantize.as_ref();
            let plan = matmul::Plan::of(Activation::None, again, node, &P::INTEGER);
            matmul::kernel(plan, node, build, Isa::best())
        },
    );
    registry.add::<MatMulIntegerToFloat>(
        |_, node| accepts(matmul::Plan::of(Activation::None, None, node, &P::TO_FLOAT)),
        |_, node, build| {
            let plan = matmul::Plan::of(Activation::None, None, node, &P::TO_FLOAT);
            matmul::kernel(plan, node, build, Isa::best())
        },
    );
    registry.add::<Requantize>(fixed::accepts, fixed::build_requantize);
    registry.add::<AffineQuantize>(rules::reals, fixed::build_affine);
    registry.add::<TableLookup>(any, fixed::build_lookup);
    registry.add::<QuantizedBinary>(fixed::accepts, fixed::build_binary);
    registry.add::<QLinearBinary>(any, real::build);
    registry.add::<QuantizedResize>(resize::accepts, |op, node, build| {
        resize::kernel(op, node, build, Isa::best())
    });
    linear::register(registry);
}

fn accepts<T>(plan: Option<T>) -> Result<(), Refusal> {
    match plan {
        Some(_) => Ok(()),
        None => Err(Refusal::new(
            "the SIMD integer products: weights, scales or a bias that are not constant, not 8 bits, \
             or more than two spatial axes",
        )),
    }
}

/// What a product of quantised tensors has beside its sizes.
struct Terms {
    weights: Weights,
    /// The input of the weights.
    place: usize,
    bias: Option<Vec<i32>>,
    data: Data,
    finish: Finish,
}

/// Where the inputs of an operator are.
struct Places {
    weights: usize,
    data_zero: usize,
    weights_zero: usize,
    /// The bias in whole numbers.
    bias: Option<usize>,
    results: Results,
}

/// What an operator makes of sums.
enum Results {
    /// Whole numbers, unless they are quantised again by attributes.
    Whole,
    /// Quantised numbers: scales of data, weights and output, zero point of the output.
    Quantized([usize; 4]),
    /// Real numbers: scales of data and weights, and the bias.
    Real { scales: [usize; 2], bias: usize },
}

impl Places {
    const Q_LINEAR: Places = Places {
        weights: 3,
        data_zero: 2,
        weights_zero: 5,
        bias: Some(8),
        results: Results::Quantized([1, 4, 6, 7]),
    };
    const INTEGER: Places = Places {
        weights: 1,
        data_zero: 2,
        weights_zero: 3,
        bias: Some(4),
        results: Results::Whole,
    };
    const TO_FLOAT: Places = Places {
        weights: 1,
        data_zero: 4,
        weights_zero: 5,
        bias: None,
        results: Results::Real {
            scales: [2, 3],
            bias: 6,
        },
    };

    /// What becomes of the sums of `channels`; `None` where it depends on data, or on an activation that
    /// does more than clamp.
    fn finish(
        &self,
        node: &NodeSpec,
        channels: usize,
        activation: Activation,
        again: Option<&Requantize>,
    ) -> Option<Finish> {
        let output = node.outputs[0].dtype;
        let places = match self.results {
            Results::Quantized(places) => places,
            Results::Whole => {
                (activation == Activation::None).then_some(())?;
                return Some(match again {
                    None => Finish::Sum,
                    Some(r) if is_narrow(output) => Finish::Fixed(Fixed::new(r, channels)),
                    Some(_) => return None,
                });
            }
            Results::Real { scales, bias } => {
                return Floats::of(node, scales, bias, channels).map(Finish::Floats);
            }
        };
        is_narrow(output).then_some(())?;
        let [x, w, y, zero] = places.map(|i| known(node, i));
        let (x, w, y, zero) = (x?, w?, y?, zero?);
        let one = |v: &[f32]| v.len() == 1;
        (one(&x) && one(&y) && one(&zero) && (one(&w) || w.len() == channels)).then_some(())?;
        let result = Affine {
            scale: y[0],
            zero: zero[0],
        };
        let factors = (0..channels).map(|i| x[0] * w[i % w.len()] / y[0]);
        Some(Finish::Real(Rounded::new(
            factors.collect(),
            zero[0] as i16,
            clamped_range(output, activation, result)?.map(|r| r as i16),
        )))
    }

    /// The bias for `channels`, if there is one; `None` where it is not known.
    fn bias(&self, node: &NodeSpec, channels: usize) -> Option<Option<Vec<i32>>> {
        let Some(spec) = self.bias.and_then(|i| node.input(i)) else {
            return Some(None);
        };
        let bias = spec.value.as_ref()?.as_slice::<i32>().ok()?;
        (bias.len() == channels).then(|| Some(bias.to_vec()))
    }

    /// What a product of `channels` outputs has beside its sizes; `None` where it is not known.
    fn terms(
        &self,
        node: &NodeSpec,
        channels: usize,
        order: Order,
        activation: Activation,
        again: Option<&Requantize>,
    ) -> Option<Terms> {
        let weights = Weights::of(node, [self.weights, self.weights_zero], channels, order)?;
        let bias = self.bias(node, channels)?;
        let largest = (bias.iter().flatten()).fold(0, |most, b| b.unsigned_abs().max(most));
        // Factors without their zero points are no larger than a byte.
        let most = weights.depth() as f64 * 255.0 * 255.0 + f64::from(largest);
        let finish = self.finish(node, channels, activation, again)?;
        Some(Terms {
            weights,
            place: self.weights,
            bias,
            data: Data::of(node, self.data_zero)?,
            finish: finish.of_at_most(most),
        })
    }
}

fn is_narrow(dtype: DType) -> bool {
    is_signed(dtype).is_some()
}

/// Whether bytes are signed; `None` where they are no numbers of eight bits.
fn is_signed(dtype: DType) -> Option<bool> {
    match dtype {
        DType::I8 => Some(true),
        DType::U8 => Some(false),
        _ => None,
    }
}

/// The elements of a known tensor of floating point or bytes; a missing one is a single zero.
fn known(node: &NodeSpec, i: usize) -> Option<Vec<f32>> {
    match node.input(i) {
        None => Some(vec![0.0]),
        Some(spec) => {
            let values = spec.value.as_ref()?.to_f64s().ok()?;
            Some(values.into_iter().map(|v| v as f32).collect())
        }
    }
}

/// The elements of a known tensor of bytes.
fn numbers(node: &NodeSpec, i: usize) -> Option<Vec<i16>> {
    let value = node.input(i)?.value.as_ref()?;
    let bytes = value.read().ok()?.iter();
    match is_signed(value.dtype())? {
        true => Some(bytes.map(|&b| (b as i8).into()).collect()),
        false => Some(bytes.map(|&b| b.into()).collect()),
    }
}

/// The highest bit, which an unsigned byte and the signed one that is less by 128 have different.
const HIGHEST: u8 = 0x80;

/// The data: 8 bits, and its zero point, known or an input.
#[derive(Clone, Copy, Debug)]
struct Data {
    signed: bool,
    zero: Option<i16>,
    zero_input: usize,
}

impl Data {
    fn of(node: &NodeSpec, zero_input: usize) -> Option<Data> {
        let signed = is_signed(node.input(0)?.dtype)?;
        let zero = match node.input(zero_input) {
            None => Some(0),
            Some(spec) if spec.elements() != 1 => return None,
            Some(spec) if spec.value.is_none() => None,
            Some(_) => Some(*numbers(node, zero_input)?.first()?),
        };
        Some(Data {
            signed,
            zero,
            zero_input,
        })
    }

    fn zero(&self, io: &Io) -> i16 {
        self.zero
            .unwrap_or_else(|| self.number(io.input_bytes(self.zero_input)[0]))
    }

    #[inline(always)]
    fn number(&self, byte: u8) -> i16 {
        match self.signed {
            true => (byte as i8).into(),
            false => byte.into(),
        }
    }

    /// Widens bytes and takes off their zero point.
    fn widen(&self, isa: Isa, zero: i16, from: &[u8], to: &mut [i16]) {
        isa.dispatch_integers(Widen {
            signed: self.signed,
            zero,
            from,
            to,
        });
    }
}

struct Widen<'a> {
    signed: bool,
    zero: i16,
    from: &'a [u8],
    to: &'a mut [i16],
}

impl IntegerTask for Widen<'_> {
    type Output = ();

    // Written without vectors: the compiler makes them for each instruction set.
    #[inline(always)]
    fn run<P: Integers>(self, _: P) {
        let both = self.to.iter_mut().zip(self.from);
        if self.signed {
            both.for_each(|(to, &from)| *to = i16::from(from as i8) - self.zero);
        } else {
            both.for_each(|(to, &from)| *to = i16::from(from) - self.zero);
        }
    }
}

/// `i16` behind all data that vectors may read, but whose products are dropped or zero.
const SLACK: usize = 32;

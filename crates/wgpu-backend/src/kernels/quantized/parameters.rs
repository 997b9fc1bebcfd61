//! What becomes of the sums of a product: the table that `shaders/shared/requantize.wgsl` reads, made
//! here where everything is known, else on the device.

use kilim_core::DType;
use kilim_core::ops::{Activation, Affine, Requantize, clamped_range};

use super::{is_byte, known, range};
use crate::lowering::{Lowering, Lowers, refuse};
use crate::shaders::quantized::parameters::{Launch, Params};
use crate::shaders::{Finish, Operand};

/// Where the inputs of an operator are.
pub(super) struct Places {
    pub weights: usize,
    pub data_zero: usize,
    pub weights_zero: usize,
    pub bias: usize,
    pub results: Results,
}

/// What an operator makes of sums.
pub(super) enum Results {
    /// Whole numbers, unless they are quantised again by attributes.
    Whole,
    /// Quantised numbers: scales of data, weights and output, zero point of the output.
    Quantized([usize; 4]),
    /// Real numbers: scales of data and weights.
    Real([usize; 2]),
}

impl Places {
    pub const Q_LINEAR: Places = Places {
        weights: 3,
        data_zero: 2,
        weights_zero: 5,
        bias: 8,
        results: Results::Quantized([1, 4, 6, 7]),
    };
    pub const INTEGER: Places = Places {
        weights: 1,
        data_zero: 2,
        weights_zero: 3,
        bias: 4,
        results: Results::Whole,
    };
    pub const TO_FLOAT: Places = Places {
        weights: 1,
        data_zero: 4,
        weights_zero: 5,
        bias: 6,
        results: Results::Real([2, 3]),
    };

    /// The scales of data, weights and output, and the zero point of the output, as far as the operator has them.
    fn scales(&self) -> [Option<usize>; 4] {
        match self.results {
            Results::Whole => [None; 4],
            Results::Quantized(all) => all.map(Some),
            Results::Real([x, w]) => [Some(x), Some(w), None, None],
        }
    }

    fn inputs(&self) -> impl Iterator<Item = usize> {
        [self.data_zero, self.weights_zero, self.bias]
            .into_iter()
            .chain(self.scales().into_iter().flatten())
    }

    fn is_real(&self) -> bool {
        matches!(self.results, Results::Real(_))
    }

    /// The bits of a bias that is left out: of real numbers the zero that leaves zeros of both signs as they are.
    fn no_bias(&self) -> u32 {
        if self.is_real() {
            (-0.0f32).to_bits()
        } else {
            0
        }
    }

    /// Refuses inputs of other types or lengths than the shaders read.
    fn check(&self, l: &Lowering, channels: usize) -> Lowers {
        let [x, w, y, _] = self.scales();
        for i in self.inputs() {
            let Some(spec) = l.optional(i) else { continue };
            let per_channel = [self.weights_zero, self.bias].contains(&i) || w == Some(i);
            let one = spec.elements() == 1 && i != self.bias;
            let fits = one || per_channel && spec.elements() == channels;
            if !fits {
                return refuse(format!("input {i} is not one for all, or for each channel"));
            }
            if [x, w, y].contains(&Some(i)) {
                l.want(i, DType::F32)?;
            } else if i == self.bias {
                l.want(
                    i,
                    if self.is_real() {
                        DType::F32
                    } else {
                        DType::I32
                    },
                )?;
            } else if !is_byte(spec.dtype) {
                return refuse(format!("the zero point at input {i} is {}", spec.dtype));
            }
        }
        let quantized = matches!(self.results, Results::Quantized(_));
        if quantized && !is_byte(l.output(0)?.dtype) {
            return refuse("the output is not of 8 bits");
        }
        let mut scales = self.scales().into_iter().flatten();
        scales.try_for_each(|i| l.input(i).map(drop))
    }
}

/// A row for all, and one for each channel.
fn table(l: &mut Lowering, all: [i32; 4], rows: impl Iterator<Item = [u32; 4]>) -> Operand {
    let words = all.map(|v| v as u32).into_iter().chain(rows.flatten());
    l.table(words.collect())
}

/// The table of a product with as many output channels, and what the shader does to sums. `moved` is what is
/// taken off the weights' numbers.
pub(super) fn of_product(
    l: &mut Lowering,
    places: &Places,
    channels: usize,
    moved: i32,
    activation: Activation,
    again: Option<&Requantize>,
) -> Lowers<(Finish, Operand)> {
    places.check(l, channels)?;
    let finish = match (&places.results, again) {
        (Results::Quantized(_), _) => Finish::Real,
        (Results::Real(_), _) => Finish::Floats,
        (Results::Whole, Some(_)) => Finish::Fixed,
        (Results::Whole, None) => Finish::Sum,
    };
    if places.inputs().all(|i| known(l, i).is_some()) {
        return Ok((
            finish,
            at_once(l, places, channels, moved, activation, again)?,
        ));
    }
    if finish == Finish::Fixed || activation != Activation::None {
        return refuse("clamps and fixed point need parameters that are known while planning");
    }
    let [low, high] = match places.results {
        Results::Quantized(_) => range(l.output(0)?.dtype)?,
        _ => [0, 0],
    };
    let count = |l: &Lowering, i: usize| l.optional(i).map_or(1, |s| s.elements());
    let [x, w, y, zero] = places.scales();
    let params = Params {
        channels,
        scales: w.map_or(1, |w| count(l, w)),
        zeros: count(l, places.weights_zero),
        biases: count(l, places.bias),
        moved: moved.into(),
        low: low.into(),
        high: high.into(),
    };
    let mut given = |i: Option<usize>, missing: u32| match i.filter(|&i| l.optional(i).is_some()) {
        Some(i) => Operand::Input(i),
        None => l.table(vec![missing]),
    };
    let [x_scale, w_scale, y_scale] = [x, w, y].map(|i| given(i, 1f32.to_bits()));
    let zeros = [Some(places.data_zero), Some(places.weights_zero), zero];
    let [x_zero, w_zero, y_zero] = zeros.map(|i| given(i, 0));
    let bias = given(Some(places.bias), places.no_bias());
    let made = l.scratch((channels + 1) * 16);
    let launch = Launch {
        x_scale,
        w_scale,
        y_scale,
        x_zero,
        w_zero,
        y_zero,
        bias,
        y: made,
        params,
    };
    l.linear(launch, channels + 1);
    Ok((finish, made.into()))
}

/// Where all inputs are known.
fn at_once(
    l: &mut Lowering,
    places: &Places,
    channels: usize,
    moved: i32,
    activation: Activation,
    again: Option<&Requantize>,
) -> Lowers<Operand> {
    // One for all, or one for each; zero where there are none.
    let numbers = |l: &Lowering, i: usize| known(l, i).unwrap_or_default();
    fn each(numbers: &[f64], c: usize) -> f64 {
        match numbers {
            [] => 0.0,
            _ => numbers[c % numbers.len()],
        }
    }
    let (zeros, biases) = (numbers(l, places.weights_zero), numbers(l, places.bias));
    let (mut all, factors): ([i32; 4], Vec<[u32; 2]>) = match (&places.results, again) {
        (Results::Real(scales), _) => {
            let [x, w] = scales.map(|i| numbers(l, i));
            let factor = |c: usize| each(&x, 0) as f32 * each(&w, c) as f32;
            let factors = (0..channels).map(|c| [factor(c).to_bits(), 0]);
            ([0; 4], factors.collect())
        }
        (Results::Quantized(scales), _) => {
            let [x, w, y, zero] = scales.map(|i| numbers(l, i));
            let [x, y, zero] = [x, y, zero].map(|v| each(&v, 0) as f32);
            let output = l.output(0)?.dtype;
            let Some(range) = clamped_range(output, activation, Affine { scale: y, zero }) else {
                return refuse(format!(
                    "{activation:?} of quantised numbers is not on the GPU"
                ));
            };
            let [low, high] = range.map(|r| (r - zero) as i32);
            let factor = |c: usize| x * each(&w, c) as f32 / y;
            let factors = (0..channels).map(|c| [factor(c).to_bits(), 0]);
            ([0, zero as i32, low, high], factors.collect())
        }
        (Results::Whole, Some(again)) => {
            let factors = (0..channels).map(|c| fixed_factor(again, c));
            (fixed_range(again), factors.collect())
        }
        (Results::Whole, None) => ([0; 4], vec![[0; 2]; channels]),
    };
    all[0] = each(&numbers(l, places.data_zero), 0) as i32;
    let bias = |c: usize| match (&biases[..], places.is_real()) {
        ([], _) => places.no_bias(),
        (biases, true) => (each(biases, c) as f32).to_bits(),
        (biases, false) => each(biases, c) as i32 as u32,
    };
    let rows = factors.into_iter().enumerate().map(|(c, [m, s])| {
        let zero = each(&zeros, c) as i32 - moved;
        [zero as u32, bias(c), m, s]
    });
    Ok(table(l, all, rows))
}

fn fixed_range(again: &Requantize) -> [i32; 4] {
    let zero = again.zero_point;
    let [low, high] = again.range.map(|r| r.saturating_sub(zero));
    [0, zero, low, high]
}

fn fixed_factor(again: &Requantize, c: usize) -> [u32; 2] {
    let factor = again.factors[c % again.factors.len()];
    [factor.multiplier as u32, factor.shift as u32]
}

/// The table of a Requantize on its own.
pub(super) fn of_requantize(l: &mut Lowering, op: &Requantize) -> Operand {
    let rows = (0..op.factors.len()).map(|c| {
        let [m, s] = fixed_factor(op, c);
        [0, 0, m, s]
    });
    table(l, fixed_range(op), rows)
}

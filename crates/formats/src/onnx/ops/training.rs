//! Steps of optimisers, written out.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;
use kilim_core::ops::{BinaryKind, UnaryKind};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};
use crate::onnx::proto::invalid;

pub const DOMAIN: &str = "ai.onnx.preview.training";

pub static OPERATORS: Family = OpTable(&[
    ("Adagrad", |b| each(b, 1, adagrad)),
    ("Adam", |b| each(b, 2, adam)),
    ("Momentum", |b| each(b, 1, momentum)),
]);

/// What one tensor is optimised with.
struct Step {
    rate: ValueId,
    /// Whether there was an update before.
    later: ValueId,
    count: ValueId,
    x: ValueId,
    /// The gradient with the regularisation.
    gradient: ValueId,
    state: Vec<ValueId>,
}

/// Inputs: rate, update count, then all tensors, all their gradients, and all of each state.
/// Outputs: the new tensors and states in the same order.
fn each(
    b: &mut NodeBuilder,
    states: usize,
    step: fn(&mut NodeBuilder, Step) -> Result<Vec<ValueId>>,
) -> Result<()> {
    let (rate, count) = (b.input(0)?, b.input(1)?);
    let tensors = b.required_from(2)?;
    let n = tensors.len() / (states + 2);
    if n == 0 || tensors.len() != n * (states + 2) {
        return Err(invalid("a wrong number of inputs"));
    }
    let zero = b.number(0.0, count)?;
    let later = b.binary(BinaryKind::Greater, count, zero)?;
    let norm = b.float_or("norm_coefficient", 0.0)?;
    for i in 0..n {
        let (x, gradient) = (tensors[i], tensors[n + i]);
        let weight = b.number(norm.into(), x)?;
        let pull = b.mul(x, weight)?;
        let gradient = b.add(pull, gradient)?;
        let state = (0..states).map(|s| tensors[(2 + s) * n + i]).collect();
        let updated = step(
            b,
            Step {
                rate,
                later,
                count,
                x,
                gradient,
                state,
            },
        )?;
        for (k, value) in updated.into_iter().enumerate() {
            b.bind(k * n + i, value)?;
        }
    }
    Ok(())
}

/// `a * weight + c * (other weight)`.
fn blend(b: &mut NodeBuilder, a: ValueId, weight: f64, c: ValueId, other: f64) -> Result<ValueId> {
    let weight = b.number(weight, a)?;
    let other = b.number(other, c)?;
    let (a, c) = (b.mul(a, weight)?, b.mul(c, other)?);
    b.add(a, c)
}

/// `x - rate * direction`.
fn descend(b: &mut NodeBuilder, x: ValueId, rate: ValueId, direction: ValueId) -> Result<ValueId> {
    let rate = b.cast_like(rate, x)?;
    let way = b.mul(rate, direction)?;
    b.sub(x, way)
}

fn adagrad(b: &mut NodeBuilder, step: Step) -> Result<Vec<ValueId>> {
    let decay = b.float_or("decay_factor", 0.0)?;
    let epsilon = b.float_or("epsilon", 0.0)?;
    let count = b.cast_like(step.count, step.rate)?;
    let decay = b.number(decay.into(), step.rate)?;
    let slow = b.mul(count, decay)?;
    let one = b.number(1.0, step.rate)?;
    let slow = b.add(slow, one)?;
    let rate = b.div(step.rate, slow)?;
    let square = b.mul(step.gradient, step.gradient)?;
    let sum = b.add(step.state[0], square)?;
    let root = b.unary(UnaryKind::Sqrt, sum)?;
    let epsilon = b.number(epsilon.into(), sum)?;
    let root = b.add(root, epsilon)?;
    let direction = b.div(step.gradient, root)?;
    Ok(vec![descend(b, step.x, rate, direction)?, sum])
}

fn adam(b: &mut NodeBuilder, step: Step) -> Result<Vec<ValueId>> {
    let alpha = f64::from(b.float_or("alpha", 0.9)?);
    let beta = f64::from(b.float_or("beta", 0.999)?);
    let epsilon = b.float_or("epsilon", 1e-6)?;
    let after = f64::from(b.float_or("norm_coefficient_post", 0.0)?);
    let mean = blend(b, step.state[0], alpha, step.gradient, 1.0 - alpha)?;
    let square = b.mul(step.gradient, step.gradient)?;
    let variance = blend(b, step.state[1], beta, square, 1.0 - beta)?;
    let root = b.unary(UnaryKind::Sqrt, variance)?;
    let epsilon = b.number(epsilon.into(), root)?;
    let root = b.add(root, epsilon)?;
    // rate * sqrt(1 - beta^count) / (1 - alpha^count), from the second update on.
    let count = b.cast_like(step.count, step.rate)?;
    let one = b.number(1.0, step.rate)?;
    let rest = |b: &mut NodeBuilder, base: f64| -> Result<ValueId> {
        let base = b.number(base, step.rate)?;
        let power = b.binary(BinaryKind::Pow, base, count)?;
        b.sub(one, power)
    };
    let above = rest(b, beta)?;
    let above = b.unary(UnaryKind::Sqrt, above)?;
    let below = rest(b, alpha)?;
    let factor = b.div(above, below)?;
    let adjusted = b.mul(step.rate, factor)?;
    let rate = b.choose(step.later, adjusted, step.rate)?;
    let direction = b.div(mean, root)?;
    let x = descend(b, step.x, rate, direction)?;
    let keep = b.number(1.0 - after, x)?;
    Ok(vec![b.mul(x, keep)?, mean, variance])
}

fn momentum(b: &mut NodeBuilder, step: Step) -> Result<Vec<ValueId>> {
    let alpha = b.float_or("alpha", 0.0)?;
    let beta = b.float_or("beta", 0.0)?;
    let x = step.x;
    let alpha = b.number(alpha.into(), x)?;
    let beta = b.number(beta.into(), x)?;
    let one = b.number(1.0, x)?;
    let beta = b.choose(step.later, beta, one)?;
    let (kept, new) = (b.mul(alpha, step.state[0])?, b.mul(beta, step.gradient)?);
    let speed = b.add(kept, new)?;
    let direction = match b.text_or("mode", "standard")? {
        "standard" => speed,
        "nesterov" => {
            let ahead = b.mul(alpha, speed)?;
            b.add(step.gradient, ahead)?
        }
        other => return Err(unknown("mode", other)),
    };
    Ok(vec![descend(b, x, step.rate, direction)?, speed])
}

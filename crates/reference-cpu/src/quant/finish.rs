//! What becomes of the 32-bit sums of a quantised product.

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::error::{shape_error, unsupported};
use kilim_core::ops::{Activation, Affine, Requantize, clamped_range};
use kilim_core::{DType, Result};
use kilim_host::elements::{Codec, Wide};
use kilim_host::rules::{range, required};
use kilim_host::{CpuRun, Io, by};

use super::linear::quantize;

/// What becomes of the 32-bit sums of a quantised product when they are written to the output.
pub enum Finish {
    /// The output is the sums themselves, `int32`.
    Sums,
    /// Scaled in `float32` and rounded to bytes, as the QLinear operators of ONNX do.
    Real(Scales),
    /// Scaled in `float32`, and with a bias.
    Floats(Floats),
    /// Scaled in fixed point, as TFLite does.
    Fixed {
        /// The factors of the channels, and the output's type, zero point and range.
        requantize: Requantize,
        /// Neighbours in the output that share a channel.
        run: usize,
        /// How the output's elements are written.
        y: Codec<i64>,
    },
}

impl Finish {
    /// Scaled in fixed point, or as they are; `run` neighbours in the output share a factor.
    pub fn fixed(requantize: Option<&Requantize>, run: usize) -> Finish {
        match requantize {
            None => Finish::Sums,
            Some(r) => Finish::Fixed {
                requantize: r.clone(),
                run: run.max(1),
                y: i64::codec(r.output),
            },
        }
    }

    /// The finish of a QLinear product, scaled in `float32`; `run` neighbours in the output share one of the
    /// scales of the second factor.
    ///
    /// # Errors
    /// Where a scale that must be a scalar is none, and for activations that [`accepts_clamp`] refuses.
    pub fn real(node: &NodeSpec, run: usize, activation: Activation) -> Result<Finish> {
        let (scales, zero) = ([FACTORS[0], FACTORS[1], RESULT[0]], RESULT[1]);
        let out = node.outputs[0].dtype;
        let mut codecs = [f64::codec(DType::F32); 3];
        for (codec, &i) in codecs.iter_mut().zip(&scales) {
            *codec = f64::codec(required(node, i)?.dtype);
        }
        if required(node, scales[0])?.elements() != 1 || required(node, scales[2])?.elements() != 1
        {
            return Err(shape_error(
                "the scales of the first factor and of the output are scalars",
            ));
        }
        Ok(Finish::Real(Scales {
            scales,
            codecs,
            count: required(node, scales[1])?.elements().max(1),
            run: run.max(1),
            zero: node.input(zero).map(|s| (zero, f64::codec(s.dtype))),
            y: f64::codec(out),
            range: clamped(activation, node)
                .ok_or_else(|| unsupported("the activation of a quantised product"))?,
        }))
    }

    /// The finish of a product that ends in `float32`: scales of both factors and, if it is there, the bias are at these
    /// inputs, the latter and perhaps the second scale with an element for each of `columns`.
    ///
    /// # Errors
    /// `Shape` where one of them has another number of elements.
    pub fn floats(
        node: &NodeSpec,
        scales: [usize; 2],
        bias: usize,
        columns: usize,
    ) -> Result<Finish> {
        let [a, b] = scales.map(|i| required(node, i).map(TensorSpec::elements));
        let (a, b) = (a?, b?);
        let biases = node.input(bias).map_or(columns, TensorSpec::elements);
        if a != 1 || (b != 1 && b != columns) || biases != columns {
            return Err(shape_error("scales or a bias of another length"));
        }
        Ok(Finish::Floats(Floats {
            scales,
            bias,
            columns,
        }))
    }

    /// Writes the output of a node from its sums.
    ///
    /// # Errors
    /// `Aborted` where the run is to stop.
    pub fn apply(&self, io: &mut Io, sums: &[i32]) -> Result<()> {
        let cpu = io.cpu();
        let r = match self {
            Finish::Sums => return cpu.copy(sums, io.output::<i32>(0)),
            Finish::Fixed { requantize, run, y } => {
                let channels = requantize.factors.len();
                let to = by(io.output_bytes(0), y.size());
                return cpu.rows(sums.len(), to, COST, |piece, to, _| {
                    for i in piece.clone() {
                        let value = requantize.apply(i / run % channels, sums[i]);
                        y.set(to, i - piece.start, value.into());
                    }
                    Ok(())
                });
            }
            Finish::Floats(floats) => return floats.apply(io, sums),
            Finish::Real(scales) => scales,
        };
        let bytes = r.scales.map(|i| io.input_bytes(i));
        let scale = |which: usize, i: usize| r.codecs[which].get(bytes[which], i);
        let zero = r
            .zero
            .as_ref()
            .map_or(0.0, |(i, codec)| codec.get(io.input_bytes(*i), 0));
        let to = by(io.output_bytes(0), r.y.size());
        cpu.rows(sums.len(), to, COST, |piece, to, _| {
            let mut rest = piece.clone();
            while !rest.is_empty() {
                let run = rest.start / r.run;
                // In float32, as runtimes agree on: a tie in one precision is none in another.
                let product = scale(0, 0) as f32 * scale(1, run % r.count) as f32;
                let factor = product / scale(2, 0) as f32;
                let end = rest.end.min((run + 1) * r.run);
                for (i, &sum) in sums[..end].iter().enumerate().skip(rest.start) {
                    let value = f64::from(sum as f32 * factor);
                    r.y.set(to, i - piece.start, quantize(value, zero, r.range));
                }
                rest.start = end;
            }
            Ok(())
        })
    }
}

/// Operations of scaling and rounding a sum.
const COST: usize = 8;

/// Scales of an output that is quantised again.
pub struct Scales {
    /// Inputs of the scales of both factors and of the output, and of its zero point.
    scales: [usize; 3],
    codecs: [Codec<f64>; 3],
    /// Second factors' scales: how many, and how many neighbours in the output share one.
    count: usize,
    run: usize,
    zero: Option<(usize, Codec<f64>)>,
    y: Codec<f64>,
    range: (f64, f64),
}

/// Scales and a bias of an output in `float32`, by their inputs.
pub struct Floats {
    scales: [usize; 2],
    bias: usize,
    columns: usize,
}

impl Floats {
    fn apply(&self, io: &mut Io, sums: &[i32]) -> Result<()> {
        let cpu = io.cpu();
        let [a, b] = self.scales.map(|i| io.input::<f32>(i));
        let bias = io.optional::<f32>(self.bias);
        let to = by(io.output::<f32>(0), 1);
        cpu.rows(sums.len(), to, COST, |piece, to, _| {
            for (to, i) in to.iter_mut().zip(piece) {
                let column = i % self.columns;
                let scaled = sums[i] as f32 * (a[0] * b[column % b.len()]);
                *to = bias.map_or(scaled, |bias| scaled + bias[column]);
            }
            Ok(())
        })
    }
}

/// Adds a number for each channel to rows of sums.
///
/// # Errors
/// `Aborted` where the run is to stop.
pub fn add_bias(cpu: &CpuRun, sums: &mut [i32], bias: &[i32]) -> Result<()> {
    let n = bias.len().max(1);
    cpu.rows(sums.len() / n, by(sums, n), n, |_, sums, cpu| {
        for row in sums.chunks_exact_mut(n) {
            cpu.pieces(n, 1, |part| {
                for (sum, b) in row[part.clone()].iter_mut().zip(&bias[part]) {
                    *sum = sum.wrapping_add(*b);
                }
                Ok(())
            })?;
        }
        Ok(())
    })
}

/// Where the scales of the factors of a QLinear product are.
const FACTORS: [usize; 2] = [1, 4];
/// Where the scale of the output of a QLinear product is, and its zero point.
const RESULT: [usize; 2] = [6, 7];

/// Refuses an activation unless it clamps to bounds that are known.
pub fn accepts_clamp(activation: Activation, node: &NodeSpec) -> Result<(), Refusal> {
    match clamped(activation, node) {
        Some(_) => Ok(()),
        None => Err(Refusal::new(
            "an activation of a quantised product that is no clamp, or whose scale is not known",
        )),
    }
}

/// The smallest and the largest result of a QLinear product.
pub fn clamped(activation: Activation, node: &NodeSpec) -> Option<(f64, f64)> {
    let output = node.outputs.first()?.dtype;
    if activation == Activation::None {
        return range(output).ok();
    }
    let number = |i: usize, none: f32| match node.input(i) {
        None => Some(none),
        Some(spec) => match spec.value.as_ref()?.to_f64s().ok()?[..] {
            [one] => Some(one as f32),
            _ => None,
        },
    };
    let result = Affine {
        scale: number(RESULT[0], 1.0)?,
        zero: number(RESULT[1], 0.0)?,
    };
    let [low, high] = clamped_range(output, activation, result)?;
    Some((low.into(), high.into()))
}

//! Convolutions of quantised tensors by ACL's own functions, which scale the sums, too, in fixed point.

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{Affine, Conv, Requantize, clamped_range};

use super::activation::NO_ACTIVATION;
use super::convolution::Convolution;
use super::integer::{INTEGER, Inputs, QLINEAR, zero_point};
use super::quantization::{Quanta, clamped, numbers, scale};
use super::{constant, input, output, refuse};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::ElementType;

/// A convolution whose weights have one scale, or one for each output channel.
pub struct QuantizedConvolution {
    convolution: Convolution,
    at: &'static Inputs,
    data: Quanta,
    scales: Vec<f64>,
    weights_zero: i32,
    result: Quanta,
    range: [i32; 2],
}

impl QuantizedConvolution {
    fn new(
        conv: &Conv,
        node: &NodeSpec,
        at: &'static Inputs,
        scales: Vec<f64>,
    ) -> Result<QuantizedConvolution, Refusal> {
        let (x, w) = (input(node, at.data)?, input(node, at.weights)?);
        let [data_zero, weights_zero] = at.zero_points.map(|i| zero_point(node, i));
        Ok(QuantizedConvolution {
            convolution: Convolution::new(conv, &x.shape, &w.shape)?,
            at,
            data: Quanta {
                scale: 1.0,
                zero_point: data_zero?,
            },
            scales,
            weights_zero: weights_zero?,
            result: Quanta::ONE,
            range: [i32::MIN, i32::MAX],
        })
    }

    /// The factors of the sums are the scales of the weights; data and result have steps of 1.
    pub fn fixed(
        conv: &Conv,
        requantize: &Requantize,
        node: &NodeSpec,
    ) -> Result<QuantizedConvolution, Refusal> {
        let scales = requantize.factors.iter().map(|f| f.value()).collect();
        Ok(QuantizedConvolution {
            result: Quanta {
                scale: 1.0,
                zero_point: requantize.zero_point,
            },
            range: requantize.range,
            ..QuantizedConvolution::new(conv, node, &INTEGER, scales)?
        })
    }

    /// Scales and zero points are inputs.
    pub fn real(conv: &Conv, node: &NodeSpec) -> Result<QuantizedConvolution, Refusal> {
        const SCALES: [usize; 3] = [1, 4, 6];
        let [data, weights, result] = SCALES;
        let result = Quanta::of(node, result)?;
        let affine = Affine {
            scale: result.scale as f32,
            zero: result.zero_point as f32,
        };
        let range = clamped_range(output(node)?.dtype, conv.activation, affine);
        let Some(range) = range else {
            return refuse("an activation of a quantised convolution that is no clamp");
        };
        Ok(QuantizedConvolution {
            data: Quanta::of(node, data)?,
            result,
            range: range.map(|v| v as i32),
            ..QuantizedConvolution::new(conv, node, &QLINEAR, numbers(node, weights)?)?
        })
    }

    pub fn calls(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, self.at.data)?, output(node)?);
        let w = constant(node, self.at.weights, "weights")?;
        let c = &self.convolution;
        if c.is_in_groups() && c.x[0] > 1 {
            return refuse("ACL is wrong in convolutions of bytes in groups, of several pictures");
        }
        let data = Operand {
            source: Source::Input(self.at.data),
            form: self.data.form(x, &c.x)?.with_layout(c.layout),
        };
        let weights = Operand {
            source: Source::Constant {
                input: self.at.weights,
                order: c.weights.order.clone(),
            },
            form: self.weights(x, w)?.with_layout(c.layout),
        };
        let bias = match self.at.bias.filter(|&i| node.input(i).is_some()) {
            None => None,
            Some(input) => {
                let spec = constant(node, input, "a bias")?;
                if spec.dtype != DType::I32 {
                    return refuse(format!("a bias of {}", spec.dtype));
                }
                Some(Operand {
                    source: Source::Constant {
                        input,
                        order: vec![0],
                    },
                    form: Form::of_type(ElementType::S32, &spec.shape)?,
                })
            }
        };
        let form = self.result.form(y, &c.y)?.with_layout(c.layout);
        // With an activation ACL 20.08 scales them wrongly.
        let call = c.call([Some(data), Some(weights), bias], form, NO_ACTIVATION);
        let clamp = clamped(y, &c.y, self.range)?;
        Ok(std::iter::once(call).chain(clamp).collect())
    }

    /// Unsigned data has signed weights around zero in ACL, and so have channels with scales of their own.
    fn weights(&self, x: &TensorSpec, w: &TensorSpec) -> Result<Form, Refusal> {
        let shape = &self.convolution.weights.shape;
        let channels = w.shape.first().copied().unwrap_or(1);
        match (x.dtype, w.dtype, &self.scales[..]) {
            (data, weights, &[one]) if data == weights => Quanta {
                scale: one,
                zero_point: self.weights_zero,
            }
            .form(w, shape),
            (DType::I8 | DType::U8, DType::I8, scales) if self.weights_zero == 0 => {
                let each = scales.iter().cycle().take(channels);
                let each = each.map(|&s| scale(s)).collect::<Result<_, _>>()?;
                let form = Form::of_type(ElementType::Qsymm8PerChannel, shape)?;
                Ok(form.with_scales(each, 0))
            }
            (data, weights, _) => refuse(format!(
                "{data} data with weights of {weights} around {}",
                self.weights_zero
            )),
        }
    }
}

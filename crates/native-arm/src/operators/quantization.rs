//! Quantised tensors. ACL multiplies the sums of a convolution by a factor in fixed point, so its
//! results may be one quantum off those of factors in floating point.

use kilim_core::DType;
use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{
    Activation, Affine, BinaryKind, DequantizeLinear, MatMulGeometry, QLinearBinary, QLinearConv,
    QLinearMatMul, QuantizeLinear,
};
use kilim_reference_cpu::registry::KernelRegistry;

use super::activation::NO_ACTIVATION;
use super::convolution::Convolution;
use super::resolved;
use super::{Lower, as_is, collapse, constant, elementwise, input, output, refuse};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::{
    ActivationInfo, BinaryInfo, DequantizeInfo, ElementType, FullyConnectedInfo, QuantizeInfo,
};
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, DequantizeLinear>(registry);
    add::<A, QLinearBinary>(registry);
    add::<A, QLinearConv>(registry);
    add::<A, QLinearMatMul>(registry);
    add::<A, QuantizeLinear>(registry);
}

/// Scales and zero points of a tensor.
struct Scale {
    scales: Vec<f32>,
    zero_points: Vec<i32>,
}

impl Scale {
    /// From inputs `at` and `at + 1` of the node; a zero point that is left out is 0.
    fn of(node: &NodeSpec, at: usize) -> Result<Scale, Refusal> {
        let numbers = |i: usize| -> Result<Vec<f64>, Refusal> {
            let value = constant(node, i, "scales")?.value.as_ref();
            resolved(value.map_or(Ok(Vec::new()), |v| v.to_f64s()))
        };
        let zero_points = match node.input(at + 1) {
            Some(_) => numbers(at + 1)?,
            None => vec![0.0],
        };
        Ok(Scale {
            scales: numbers(at)?.into_iter().map(|v| v as f32).collect(),
            zero_points: zero_points.into_iter().map(|v| v as i32).collect(),
        })
    }

    /// One scale for the whole tensor of `spec`, under `shape`.
    fn form(&self, spec: &TensorSpec, shape: &[usize]) -> Result<Form, Refusal> {
        let (&[scale], &[zero_point]) = (&self.scales[..], &self.zero_points[..]) else {
            return refuse("ACL has one scale for these tensors");
        };
        let form = Form::of_type(whole(spec.dtype)?, shape)?;
        Ok(form.with_scales(vec![scale], zero_point))
    }

    /// Weights of `channels` outputs: signed ones have a scale for each channel, all around 0;
    /// unsigned ones one for all.
    fn weights(
        &self,
        spec: &TensorSpec,
        shape: &[usize],
        channels: usize,
    ) -> Result<Form, Refusal> {
        if spec.dtype == DType::U8 {
            return self.form(spec, shape);
        }
        if whole(spec.dtype)? != ElementType::Qasymm8Signed
            || self.zero_points.iter().any(|&z| z != 0)
        {
            return refuse("ACL's signed weights have no zero point");
        }
        let scales = match self.scales[..] {
            [one] => vec![one; channels],
            ref all if all.len() == channels => all.to_vec(),
            _ => return refuse("weights with scales along another axis than the channels"),
        };
        Ok(Form::of_type(ElementType::Qsymm8PerChannel, shape)?.with_scales(scales, 0))
    }
}

fn whole(dtype: DType) -> Result<ElementType, Refusal> {
    match dtype {
        DType::U8 => Ok(ElementType::Qasymm8),
        DType::I8 => Ok(ElementType::Qasymm8Signed),
        other => refuse(format!("a quantised tensor of {other}")),
    }
}

/// ACL's own name for no activation.
fn none(activation: Activation) -> Result<ActivationInfo, Refusal> {
    match activation {
        Activation::None => Ok(NO_ACTIVATION),
        _ => refuse("an activation, which ACL 20.08 applies wrongly to quantised sums"),
    }
}

/// The bias of a product, one number for each output channel.
fn bias(node: &NodeSpec) -> Result<Option<Operand>, Refusal> {
    if node.input(8).is_none() {
        return Ok(None);
    }
    let spec = constant(node, 8, "a bias")?;
    if spec.dtype != DType::I32 {
        return refuse(format!("a bias of {}", spec.dtype));
    }
    Ok(Some(Operand {
        source: Source::Constant {
            input: 8,
            order: as_is(spec),
        },
        form: Form::of_type(ElementType::S32, &[spec.elements()])?,
    }))
}

impl Lower for QLinearBinary {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let y = output(node)?;
        let least = match y.dtype {
            DType::I8 => -128.0,
            _ => 0.0,
        };
        if self.offset != 0.0 || self.range != [least, least + 255.0] {
            return refuse("ACL's functions of quantised tensors add and clamp nothing");
        }
        if self.kind == BinaryKind::Mul {
            return refuse("ACL 24.11's product of quantised tensors ends the process on SVE2");
        }
        let form = |spec: &TensorSpec, Affine { scale, zero }: Affine| {
            let form = Form::of_type(whole(spec.dtype)?, &spec.shape)?;
            Ok(form.with_scales(vec![scale], zero as i32))
        };
        let operand = |i: usize| -> Result<Option<Operand>, Refusal> {
            let spec = input(node, i)?;
            let source = match spec.value {
                Some(_) => Source::Constant {
                    input: i,
                    order: as_is(spec),
                },
                None => Source::Input(i),
            };
            Ok(Some(Operand {
                source,
                form: form(spec, self.operands[i])?,
            }))
        };
        let info = BinaryInfo {
            kind: elementwise::function(self.kind)?,
        };
        let inputs = vec![operand(0)?, operand(1)?];
        Ok(vec![Call::new(info, inputs, form(y, self.result)?)])
    }
}

impl Lower for QLinearConv {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, w, y) = (
            input(node, 0)?,
            constant(node, 3, "weights")?,
            output(node)?,
        );
        let c = Convolution::new(&self.conv, &x.shape, &w.shape)?;
        let form = |at, spec, shape| -> Result<Form, Refusal> {
            Ok(Scale::of(node, at)?
                .form(spec, shape)?
                .with_layout(c.layout))
        };
        let data = Operand {
            source: Source::Input(0),
            form: form(1, x, &c.x)?,
        };
        let weights = Scale::of(node, 4)?.weights(w, &c.weights.shape, w.shape[0])?;
        let weights = Operand {
            source: Source::Constant {
                input: 3,
                order: c.weights.order.clone(),
            },
            form: weights.with_layout(c.layout),
        };
        let inputs = [Some(data), Some(weights), bias(node)?];
        let clamp = none(self.conv.activation)?;
        Ok(vec![c.call(inputs, form(6, y, &c.y)?, clamp)])
    }
}

impl Lower for QLinearMatMul {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (a, b, y) = (
            input(node, 0)?,
            constant(node, 3, "weights")?,
            output(node)?,
        );
        let g = resolved(MatMulGeometry::new(&a.shape, &b.shape, false))?;
        if b.shape.len() < 2 || g.b_batch.iter().any(|&d| d != 1) {
            return refuse("a second factor that is not one matrix");
        }
        let rows = g.a_batch.iter().product::<usize>() * g.m;
        let data = Operand {
            source: Source::Input(0),
            form: Scale::of(node, 1)?.form(a, &[rows, g.k])?,
        };
        let mut order = as_is(b);
        order.swap(b.shape.len() - 2, b.shape.len() - 1);
        let weights = Operand {
            source: Source::Constant { input: 3, order },
            form: Scale::of(node, 4)?.form(b, &[g.n, g.k])?,
        };
        let info = FullyConnectedInfo {
            activation: none(self.activation)?,
        };
        let form = Scale::of(node, 6)?.form(y, &[rows, g.n])?;
        let inputs = vec![Some(data), Some(weights), bias(node)?];
        Ok(vec![Call::new(info, inputs, form)])
    }
}

impl Lower for QuantizeLinear {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let shape = collapse(&x.shape, 3);
        let data = Operand {
            source: Source::Input(0),
            form: Form::new(x, &shape)?,
        };
        let form = Scale::of(node, 1)?.form(y, &shape)?;
        Ok(vec![Call::new(
            QuantizeInfo::default(),
            vec![Some(data)],
            form,
        )])
    }
}

impl Lower for DequantizeLinear {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let shape = collapse(&x.shape, 3);
        let data = Operand {
            source: Source::Input(0),
            form: Scale::of(node, 1)?.form(x, &shape)?,
        };
        let form = Form::new(y, &shape)?;
        Ok(vec![Call::new(
            DequantizeInfo::default(),
            vec![Some(data)],
            form,
        )])
    }
}

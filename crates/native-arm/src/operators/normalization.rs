//! Normalisations. ACL's layer and instance normalisations are left out: they take the variance as
//! `E[x²] - E[x]²`, which loses it where the data is far from zero; and so is the local response
//! normalisation, whose power turns NaN into a number.

use kilim_core::backend::{NodeSpec, Refusal};
use kilim_core::ops::{BatchNorm, InstanceNorm, LayerNorm, Lrn};
use kilim_host::registry::KernelRegistry;

use super::convolution::Picture;
use super::{Lower, finite, input, output, refuse};
use crate::call::{Call, Form, Operand, Source};
use crate::ffi::BatchNormalizationInfo;
use crate::kernel::{Target, add};

pub fn register<A: Target>(registry: &mut KernelRegistry) {
    add::<A, BatchNorm>(registry);
    add::<A, InstanceNorm>(registry);
    add::<A, LayerNorm>(registry);
    add::<A, Lrn>(registry);
}

/// `[n, c, ..]` or `[n, .., c]` as a picture of one row.
fn picture(shape: &[usize], channels_last: bool) -> Result<(Picture, usize), Refusal> {
    let (&[batch, ref rest @ ..], true) = (shape, shape.len() >= 2) else {
        return refuse("data without channels");
    };
    let (channels, spatial) = match channels_last {
        true => (rest[rest.len() - 1], &rest[..rest.len() - 1]),
        false => (rest[0], &rest[1..]),
    };
    let picture = Picture {
        batch,
        channels,
        channels_last,
    };
    Ok((picture, spatial.iter().product()))
}

impl Lower for BatchNorm {
    fn lower(&self, node: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        let (x, y) = (input(node, 0)?, output(node)?);
        let (data, width) = picture(&x.shape, self.channels_last)?;
        let shape = data.shape(1, width);
        let parameter = |i: usize| -> Result<Option<Operand>, Refusal> {
            let spec = finite(node, i, "statistics")?;
            Ok(Some(Operand {
                source: Source::Constant {
                    input: i,
                    order: vec![0],
                },
                form: Form::new(spec, &spec.shape)?,
            }))
        };
        let [scale, shift, mean, variance] =
            [parameter(1)?, parameter(2)?, parameter(3)?, parameter(4)?];
        let data_form = Form::new(x, &shape)?.with_layout(data.layout());
        let x = Operand {
            source: Source::Input(0),
            form: data_form,
        };
        let info = BatchNormalizationInfo {
            epsilon: self.epsilon,
        };
        let form = Form::new(y, &shape)?.with_layout(data.layout());
        let inputs = vec![Some(x), mean, variance, shift, scale];
        Ok(vec![Call::new(info, inputs, form)])
    }
}

const LOSES_VARIANCE: &str =
    "ACL takes the variance as E[x²] - E[x]², which loses it far from zero";

impl Lower for InstanceNorm {
    fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        refuse(LOSES_VARIANCE)
    }
}

impl Lower for LayerNorm {
    fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        refuse(LOSES_VARIANCE)
    }
}

impl Lower for Lrn {
    fn lower(&self, _: &NodeSpec) -> Result<Vec<Call>, Refusal> {
        refuse("ACL turns NaN into a number")
    }
}

//! DynamicQuantizeLinear: scale and zero point first, then what QuantizeLinear does with them.

use kilim_core::DType;
use kilim_core::ops::DynamicQuantizeLinear;

use super::linear::one_for_all;
use crate::kernels::Kernels;
use crate::lowering::{Lowering, Lowers};
use crate::shaders::quantized::linear::{self, Case, QuantizeOp};
use crate::shaders::quantized::range;
use crate::shaders::{Operand, Target};

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<DynamicQuantizeLinear>(|_, l| dynamic(l));
}

fn dynamic(l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    let count = l.input(0)?.elements();
    let wanted = l.node.outputs.len();
    let [scale, zero] = [1, 2].map(|i| match i < wanted {
        true => Target::Output(i),
        false => l.scratch(4),
    });
    let find = range::Launch {
        x: Operand::Input(0),
        scale,
        zero,
        params: range::Params { count },
    };
    l.grouped(find, 1);
    let quantize = linear::Launch {
        case: Case::Quantize {
            op: QuantizeOp::QuantizeLinear,
        },
        x: Operand::Input(0),
        scales: scale.into(),
        zeros: zero.into(),
        y: Target::Output(0),
        params: linear::Params {
            high: 255,
            ..one_for_all(count)
        },
    };
    l.linear(quantize, count);
    Ok(())
}

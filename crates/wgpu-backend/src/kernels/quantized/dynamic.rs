//! DynamicQuantizeLinear: scale and zero point first, then what QuantizeLinear does with them.

use kilim_core::DType;
use kilim_core::ops::DynamicQuantizeLinear;

use super::super::Kernels;
use super::linear::FOR_ALL;
use crate::lower::{Lowering, Lowers, Operand};
use crate::params::Params;

pub(crate) fn register(kernels: &mut Kernels) {
    kernels.add::<DynamicQuantizeLinear>(|_, l| dynamic(l));
}

fn dynamic(l: &mut Lowering) -> Lowers {
    l.want(0, DType::F32)?;
    let count = l.input(0)?.elements();
    let wanted = l.node.outputs.len();
    let [scale, zero] = [1, 2].map(|i| match i < wanted {
        true => Operand::Output(i),
        false => l.scratch(4),
    });
    let params = Params::new().u(count);
    l.grouped("range", &[], &[Operand::Input(0), scale, zero], params, 1);
    let params = Params::new().u(count);
    let params = FOR_ALL.into_iter().fold(params, Params::u).i(0).i(255);
    let operands = [Operand::Input(0), scale, zero, Operand::Output(0)];
    let defines = [("OP", "QuantizeLinear"), ("T", "u32")];
    l.linear("linear", &defines, &operands, params, count);
    Ok(())
}

//! Quantisation, and products of quantised tensors: right, not fast.

mod finish;
mod linear;
mod products;
mod softmax;

use kilim_core::ops::{
    ConvInteger, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger, MatMulIntegerToFloat,
    QLinearConv, QLinearMatMul, QuantizeLinear, QuantizedSoftmax,
};
use kilim_host::registry::{KernelRegistry, any};

pub use finish::{Finish, accepts_clamp, add_bias};
pub use linear::Dynamic;

pub(crate) fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<QuantizeLinear>(any, linear::build_quantize);
    registry.add_for_every_type::<DequantizeLinear>(any, linear::build_dequantize);
    registry.add::<DynamicQuantizeLinear>(any, linear::build_dynamic);
    registry.add::<QuantizedSoftmax>(any, softmax::build);
    registry.add::<MatMulInteger>(any, products::build_matmul_integer);
    registry.add::<MatMulIntegerToFloat>(any, products::build_matmul_integer_to_float);
    registry.add::<ConvInteger>(any, products::build_conv_integer);
    registry.add::<QLinearMatMul>(
        |op, node| accepts_clamp(op.activation, node),
        products::build_qlinear_matmul,
    );
    registry.add::<QLinearConv>(
        |op, node| accepts_clamp(op.conv.activation, node),
        products::build_qlinear_conv,
    );
}

//! Quantisation, and products of quantised tensors: right, not fast.

mod fixed;
mod linear;
mod products;
mod softmax;

use kilim_core::ops::{
    AffineQuantize, ConvInteger, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger,
    QLinearConv, QLinearMatMul, QuantizeLinear, QuantizedBinary, QuantizedSoftmax, Requantize,
    TableLookup,
};

use crate::common::rules;
use crate::registry::{KernelRegistry, any};

pub fn register(registry: &mut KernelRegistry) {
    registry.add_for_every_type::<QuantizeLinear>(any, linear::build_quantize);
    registry.add_for_every_type::<DequantizeLinear>(any, linear::build_dequantize);
    registry.add::<DynamicQuantizeLinear>(any, linear::build_dynamic);
    registry.add::<Requantize>(fixed::accepts, fixed::build_requantize);
    registry.add::<AffineQuantize>(rules::reals, fixed::build_affine);
    registry.add::<TableLookup>(any, fixed::build_lookup);
    registry.add::<QuantizedBinary>(fixed::accepts, fixed::build_binary);
    registry.add::<QuantizedSoftmax>(any, softmax::build);
    registry.add::<MatMulInteger>(any, products::build_matmul_integer);
    registry.add::<ConvInteger>(any, products::build_conv_integer);
    registry.add::<QLinearMatMul>(any, products::build_qlinear_matmul);
    registry.add::<QLinearConv>(any, products::build_qlinear_conv);
}

//! The builtin operators of TFLite, one row each. Numbers are those of `BuiltinOperator` in the
//! schema, option slots those of the operator's options table.

mod control;
mod conv;
mod index;
mod movement;
mod pointwise;
mod quantized;
mod recurrent;
mod reduce;
mod signal;

use kilim_core::error::Result;

use super::import::{Importer, Op};

/// How an operator is brought into the graph.
pub struct Mapping {
    pub code: i32,
    pub name: &'static str,
    pub map: MapFn,
    pub quantized: OnQuantized,
    pub complex: OnComplex,
}

/// What becomes of an operator whose data is quantised.
#[derive(Clone, Copy)]
pub enum OnQuantized {
    /// It is refused.
    Nothing,
    /// It only moves elements or looks at their order, so that [`Mapping::map`] serves.
    Same,
    /// It computes in integers.
    Integers(MapFn),
}

/// What becomes of an operator that is given complex numbers.
#[derive(Clone, Copy)]
pub enum OnComplex {
    /// It is refused.
    Nothing,
    /// It is mapped for the real parts, and where its output is complex for the imaginary ones.
    EachPart,
    /// Its mapping takes the parts.
    Itself,
}

pub type MapFn = for<'a> fn(&mut Importer<'a>, &Op<'a>) -> Result<()>;

/// The number of custom operators.
pub const CUSTOM: i32 = 32;

const fn computes(code: i32, name: &'static str, map: MapFn) -> Mapping {
    Mapping {
        code,
        name,
        map,
        quantized: OnQuantized::Nothing,
        complex: OnComplex::Nothing,
    }
}

const fn moves(code: i32, name: &'static str, map: MapFn) -> Mapping {
    Mapping {
        code,
        name,
        map,
        quantized: OnQuantized::Same,
        complex: OnComplex::EachPart,
    }
}

impl Mapping {
    const fn or_integers(self, map: MapFn) -> Mapping {
        Mapping {
            quantized: OnQuantized::Integers(map),
            ..self
        }
    }

    /// It looks at the order of elements, which complex numbers have not.
    const fn of_real(self) -> Mapping {
        Mapping {
            complex: OnComplex::Nothing,
            ..self
        }
    }

    const fn of_complex(self) -> Mapping {
        Mapping {
            complex: OnComplex::Itself,
            ..self
        }
    }
}

/// Sorted by code.
static MAPPINGS: &[Mapping] = &[
    computes(0, "ADD", pointwise::add).or_integers(quantized::binary::add),
    computes(1, "AVERAGE_POOL_2D", conv::average_pool).or_integers(quantized::pool::average_pool),
    moves(2, "CONCATENATION", movement::concatenation).or_integers(quantized::table::concatenation),
    computes(3, "CONV_2D", conv::conv_2d).or_integers(quantized::product::conv_2d),
    computes(4, "DEPTHWISE_CONV_2D", conv::depthwise_conv_2d)
        .or_integers(quantized::product::depthwise_conv_2d),
    moves(5, "DEPTH_TO_SPACE", movement::depth_to_space),
    moves(6, "DEQUANTIZE", pointwise::dequantize),
    computes(7, "EMBEDDING_LOOKUP", index::embedding_lookup),
    computes(8, "FLOOR", pointwise::floor),
    computes(9, "FULLY_CONNECTED", conv::fully_connected)
        .or_integers(quantized::product::fully_connected),
    computes(11, "L2_NORMALIZATION", reduce::l2_normalization),
    computes(12, "L2_POOL_2D", conv::l2_pool),
    computes(13, "LOCAL_RESPONSE_NORMALIZATION", reduce::lrn),
    computes(14, "LOGISTIC", pointwise::logistic).or_integers(quantized::table::logistic),
    computes(17, "MAX_POOL_2D", conv::max_pool).or_integers(quantized::pool::max_pool),
    computes(18, "MUL", pointwise::mul).or_integers(quantized::binary::mul),
    computes(19, "RELU", pointwise::relu).or_integers(quantized::table::relu),
    computes(20, "RELU_N1_TO_1", pointwise::relu_n1_to_1)
        .or_integers(quantized::table::relu_n1_to_1),
    computes(21, "RELU6", pointwise::relu6).or_integers(quantized::table::relu6),
    moves(22, "RESHAPE", movement::reshape),
    computes(23, "RESIZE_BILINEAR", movement::resize_bilinear)
        .or_integers(quantized::pool::resize_bilinear),
    computes(25, "SOFTMAX", reduce::softmax).or_integers(quantized::reduce::softmax),
    moves(26, "SPACE_TO_DEPTH", movement::space_to_depth),
    computes(28, "TANH", pointwise::tanh).or_integers(quantized::table::tanh),
    computes(34, "PAD", movement::pad).or_integers(quantized::pool::pad),
    moves(36, "GATHER", index::gather),
    moves(37, "BATCH_TO_SPACE_ND", movement::batch_to_space),
    computes(38, "SPACE_TO_BATCH_ND", movement::space_to_batch)
        .or_integers(quantized::pool::space_to_batch),
    moves(39, "TRANSPOSE", movement::transpose),
    computes(40, "MEAN", reduce::mean).or_integers(quantized::reduce::mean),
    computes(41, "SUB", pointwise::sub).or_integers(quantized::binary::sub),
    computes(42, "DIV", pointwise::div),
    moves(43, "SQUEEZE", movement::squeeze),
    computes(
        44,
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        recurrent::unidirectional_lstm,
    )
    .or_integers(quantized::lstm::unidirectional),
    moves(45, "STRIDED_SLICE", index::strided_slice),
    computes(47, "EXP", pointwise::exp).or_integers(quantized::table::exp),
    moves(48, "TOPK_V2", reduce::top_k).of_real(),
    moves(49, "SPLIT", movement::split),
    computes(50, "LOG_SOFTMAX", reduce::log_softmax),
    moves(53, "CAST", pointwise::cast),
    computes(54, "PRELU", pointwise::prelu),
    computes(55, "MAXIMUM", pointwise::maximum).or_integers(quantized::binary::maximum),
    moves(56, "ARG_MAX", reduce::arg_max).of_real(),
    computes(57, "MINIMUM", pointwise::minimum).or_integers(quantized::binary::minimum),
    computes(58, "LESS", pointwise::less).or_integers(quantized::binary::less),
    computes(59, "NEG", pointwise::neg).or_integers(quantized::table::neg),
    moves(60, "PADV2", movement::pad),
    computes(61, "GREATER", pointwise::greater).or_integers(quantized::binary::greater),
    computes(62, "GREATER_EQUAL", pointwise::greater_equal)
        .or_integers(quantized::binary::greater_equal),
    computes(63, "LESS_EQUAL", pointwise::less_equal).or_integers(quantized::binary::less_equal),
    moves(64, "SELECT", pointwise::select),
    moves(65, "SLICE", index::slice),
    computes(66, "SIN", pointwise::sin),
    computes(67, "TRANSPOSE_CONV", conv::transpose_conv),
    moves(69, "TILE", movement::tile),
    moves(70, "EXPAND_DIMS", movement::expand_dims),
    computes(71, "EQUAL", pointwise::equal).or_integers(quantized::binary::equal),
    computes(72, "NOT_EQUAL", pointwise::not_equal).or_integers(quantized::binary::not_equal),
    computes(73, "LOG", pointwise::log).or_integers(quantized::table::log),
    computes(74, "SUM", reduce::sum).or_integers(quantized::reduce::sum),
    computes(75, "SQRT", pointwise::sqrt),
    computes(76, "RSQRT", pointwise::rsqrt).or_integers(quantized::table::rsqrt),
    moves(77, "SHAPE", movement::shape),
    computes(78, "POW", pointwise::pow),
    moves(79, "ARG_MIN", reduce::arg_min).of_real(),
    computes(81, "REDUCE_PROD", reduce::product),
    moves(82, "REDUCE_MAX", reduce::max).of_real(),
    moves(83, "PACK", movement::pack),
    computes(84, "LOGICAL_OR", pointwise::logical_or),
    computes(85, "ONE_HOT", index::one_hot),
    computes(86, "LOGICAL_AND", pointwise::logical_and),
    computes(87, "LOGICAL_NOT", pointwise::logical_not),
    moves(88, "UNPACK", movement::unpack),
    moves(89, "REDUCE_MIN", reduce::min).of_real(),
    computes(90, "FLOOR_DIV", pointwise::floor_div),
    computes(91, "REDUCE_ANY", reduce::any),
    computes(92, "SQUARE", pointwise::square),
    moves(93, "ZEROS_LIKE", movement::zeros_like),
    moves(94, "FILL", movement::fill),
    computes(95, "FLOOR_MOD", pointwise::floor_mod),
    computes(96, "RANGE", movement::range),
    moves(97, "RESIZE_NEAREST_NEIGHBOR", movement::resize_nearest),
    computes(98, "LEAKY_RELU", pointwise::leaky_relu).or_integers(quantized::table::leaky_relu),
    computes(99, "SQUARED_DIFFERENCE", pointwise::squared_difference),
    moves(100, "MIRROR_PAD", movement::mirror_pad),
    computes(101, "ABS", pointwise::abs).or_integers(quantized::table::abs),
    moves(102, "SPLIT_V", movement::split_v),
    computes(104, "CEIL", pointwise::ceil),
    moves(105, "REVERSE_V2", index::reverse),
    computes(106, "ADD_N", pointwise::add_n),
    moves(107, "GATHER_ND", index::gather_nd),
    computes(108, "COS", pointwise::cos),
    computes(109, "WHERE", index::where_true),
    moves(110, "RANK", movement::rank),
    computes(111, "ELU", pointwise::elu).or_integers(quantized::table::elu),
    moves(112, "REVERSE_SEQUENCE", index::reverse_sequence),
    computes(114, "QUANTIZE", quantized::table::requantize)
        .or_integers(quantized::table::requantize),
    computes(116, "ROUND", pointwise::round),
    computes(117, "HARD_SWISH", pointwise::hard_swish).or_integers(quantized::table::hard_swish),
    moves(118, "IF", control::branch),
    moves(119, "WHILE", control::repeat),
    computes(122, "SCATTER_ND", index::scatter_nd),
    moves(123, "SELECT_V2", pointwise::select),
    computes(126, "BATCH_MATMUL", conv::batch_matmul).or_integers(quantized::product::batch_matmul),
    computes(128, "CUMSUM", reduce::cumsum),
    moves(130, "BROADCAST_TO", movement::broadcast_to),
    computes(131, "RFFT2D", signal::rfft_2d),
    computes(132, "CONV_3D", conv::conv_3d),
    computes(133, "IMAG", signal::imaginary_part).of_complex(),
    moves(134, "REAL", signal::real_part),
    computes(135, "COMPLEX_ABS", signal::magnitude).of_complex(),
    computes(140, "REDUCE_ALL", reduce::all),
    computes(150, "GELU", pointwise::gelu).or_integers(quantized::table::gelu),
    computes(152, "RELU_0_TO_1", pointwise::relu_0_to_1).or_integers(quantized::table::relu_0_to_1),
    computes(158, "SIGN", pointwise::sign),
    computes(160, "BITWISE_XOR", pointwise::bitwise_xor),
];

/// The mapping of a builtin operator.
pub fn find(code: i32) -> Option<&'static Mapping> {
    let i = MAPPINGS.binary_search_by_key(&code, |m| m.code).ok()?;
    MAPPINGS.get(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_sorted_and_unique() {
        assert!(MAPPINGS.windows(2).all(|w| w[0].code < w[1].code));
        assert_eq!(find(3).map(|m| m.name), Some("CONV_2D"));
        assert!(find(CUSTOM).is_none());
    }
}

//! The builtin operators of TFLite, one row each; those that Circle adds stand in `circle.rs`. Numbers are those of
//! `BuiltinOperator` in the schema, option slots those of the operator's options table.

mod circle;
mod control;
mod conv;
mod index;
mod movement;
mod pointwise;
mod quantized;
mod recurrent;
mod reduce;
mod signal;
mod variables;

use kilim_core::error::Result;

use super::import::{Import, Op};
use crate::build::OpTable;

/// How an operator is brought into the graph.
pub struct Mapping {
    pub name: &'static str,
    pub map: MapFn,
    pub quantized: OnQuantized,
    pub complex: OnComplex,
}

/// What becomes of an operator whose data is quantised.
#[derive(Clone, Copy)]
pub enum OnQuantized {
    /// Quantised tensors are refused.
    Nothing,
    /// The operator only moves elements or looks at their order, so that [`Mapping::map`] serves.
    Same,
    /// The operator computes in integers, and this function maps it.
    Integers(MapFn),
}

/// What becomes of an operator that is given complex numbers.
#[derive(Clone, Copy)]
pub enum OnComplex {
    /// Complex tensors are refused.
    Nothing,
    /// The operator is mapped once for the real parts, and once more for the imaginary parts where its output
    /// is complex.
    EachPart,
    /// The mapping takes real and imaginary parts together.
    Itself,
}

pub type MapFn = for<'a> fn(&mut Import<'a>, &Op<'a>) -> Result<()>;

/// The number of custom operators.
pub const CUSTOM: i32 = 32;

/// The numbers of operators that are looked for before they are mapped.
pub const VAR_HANDLE: i32 = 142;
pub const ASSIGN_VARIABLE: i32 = 144;

const fn computes(name: &'static str, map: MapFn) -> Mapping {
    Mapping {
        name,
        map,
        quantized: OnQuantized::Nothing,
        complex: OnComplex::Nothing,
    }
}

const fn moves(name: &'static str, map: MapFn) -> Mapping {
    Mapping {
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

    /// A mapping that refuses complex numbers: they have no order, and the operator looks at the order of
    /// elements.
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

/// The operators by their numbers in the schema.
static OPERATORS: OpTable<i32, Mapping> = OpTable(&[
    (
        0,
        computes("ADD", pointwise::add).or_integers(quantized::binary::add),
    ),
    (
        1,
        computes("AVERAGE_POOL_2D", conv::average_pool).or_integers(quantized::pool::average_pool),
    ),
    (
        2,
        moves("CONCATENATION", movement::concatenation)
            .or_integers(quantized::table::concatenation),
    ),
    (
        3,
        computes("CONV_2D", conv::conv_2d).or_integers(quantized::product::conv_2d),
    ),
    (
        4,
        computes("DEPTHWISE_CONV_2D", conv::depthwise_conv_2d)
            .or_integers(quantized::product::depthwise_conv_2d),
    ),
    (5, moves("DEPTH_TO_SPACE", movement::depth_to_space)),
    (6, moves("DEQUANTIZE", pointwise::dequantize)),
    (7, computes("EMBEDDING_LOOKUP", index::embedding_lookup)),
    (8, computes("FLOOR", pointwise::floor)),
    (
        9,
        computes("FULLY_CONNECTED", conv::fully_connected)
            .or_integers(quantized::product::fully_connected),
    ),
    (11, computes("L2_NORMALIZATION", reduce::l2_normalization)),
    (12, computes("L2_POOL_2D", conv::l2_pool)),
    (13, computes("LOCAL_RESPONSE_NORMALIZATION", reduce::lrn)),
    (
        14,
        computes("LOGISTIC", pointwise::logistic).or_integers(quantized::table::logistic),
    ),
    (
        17,
        computes("MAX_POOL_2D", conv::max_pool).or_integers(quantized::pool::max_pool),
    ),
    (
        18,
        computes("MUL", pointwise::mul).or_integers(quantized::binary::mul),
    ),
    (
        19,
        computes("RELU", pointwise::relu).or_integers(quantized::table::relu),
    ),
    (
        20,
        computes("RELU_N1_TO_1", pointwise::relu_n1_to_1)
            .or_integers(quantized::table::relu_n1_to_1),
    ),
    (
        21,
        computes("RELU6", pointwise::relu6).or_integers(quantized::table::relu6),
    ),
    (22, moves("RESHAPE", movement::reshape)),
    (
        23,
        computes("RESIZE_BILINEAR", movement::resize_bilinear)
            .or_integers(quantized::pool::resize_bilinear),
    ),
    (
        25,
        computes("SOFTMAX", reduce::softmax).or_integers(quantized::reduce::softmax),
    ),
    (26, moves("SPACE_TO_DEPTH", movement::space_to_depth)),
    (
        28,
        computes("TANH", pointwise::tanh).or_integers(quantized::table::tanh),
    ),
    (
        34,
        computes("PAD", movement::pad).or_integers(quantized::pool::pad),
    ),
    (36, moves("GATHER", index::gather)),
    (37, moves("BATCH_TO_SPACE_ND", movement::batch_to_space)),
    (
        38,
        computes("SPACE_TO_BATCH_ND", movement::space_to_batch)
            .or_integers(quantized::pool::space_to_batch),
    ),
    (39, moves("TRANSPOSE", movement::transpose)),
    (
        40,
        computes("MEAN", reduce::mean).or_integers(quantized::reduce::mean),
    ),
    (
        41,
        computes("SUB", pointwise::sub).or_integers(quantized::binary::sub),
    ),
    (42, computes("DIV", pointwise::div)),
    (43, moves("SQUEEZE", movement::squeeze)),
    (
        44,
        computes(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            recurrent::unidirectional_lstm,
        )
        .or_integers(quantized::lstm::unidirectional),
    ),
    (45, moves("STRIDED_SLICE", index::strided_slice)),
    (
        47,
        computes("EXP", pointwise::exp).or_integers(quantized::table::exp),
    ),
    (48, moves("TOPK_V2", reduce::top_k).of_real()),
    (49, moves("SPLIT", movement::split)),
    (50, computes("LOG_SOFTMAX", reduce::log_softmax)),
    (53, moves("CAST", pointwise::cast)),
    (54, computes("PRELU", pointwise::prelu)),
    (
        55,
        computes("MAXIMUM", pointwise::maximum).or_integers(quantized::binary::maximum),
    ),
    (56, moves("ARG_MAX", reduce::arg_max).of_real()),
    (
        57,
        computes("MINIMUM", pointwise::minimum).or_integers(quantized::binary::minimum),
    ),
    (
        58,
        computes("LESS", pointwise::less).or_integers(quantized::binary::less),
    ),
    (
        59,
        computes("NEG", pointwise::neg).or_integers(quantized::table::neg),
    ),
    (60, moves("PADV2", movement::pad)),
    (
        61,
        computes("GREATER", pointwise::greater).or_integers(quantized::binary::greater),
    ),
    (
        62,
        computes("GREATER_EQUAL", pointwise::greater_equal)
            .or_integers(quantized::binary::greater_equal),
    ),
    (
        63,
        computes("LESS_EQUAL", pointwise::less_equal).or_integers(quantized::binary::less_equal),
    ),
    (64, moves("SELECT", pointwise::select)),
    (65, moves("SLICE", index::slice)),
    (66, computes("SIN", pointwise::sin)),
    (67, computes("TRANSPOSE_CONV", conv::transpose_conv)),
    (69, moves("TILE", movement::tile)),
    (70, moves("EXPAND_DIMS", movement::expand_dims)),
    (
        71,
        computes("EQUAL", pointwise::equal).or_integers(quantized::binary::equal),
    ),
    (
        72,
        computes("NOT_EQUAL", pointwise::not_equal).or_integers(quantized::binary::not_equal),
    ),
    (
        73,
        computes("LOG", pointwise::log).or_integers(quantized::table::log),
    ),
    (
        74,
        computes("SUM", reduce::sum).or_integers(quantized::reduce::sum),
    ),
    (75, computes("SQRT", pointwise::sqrt)),
    (
        76,
        computes("RSQRT", pointwise::rsqrt).or_integers(quantized::table::rsqrt),
    ),
    (77, moves("SHAPE", movement::shape)),
    (78, computes("POW", pointwise::pow)),
    (79, moves("ARG_MIN", reduce::arg_min).of_real()),
    (81, computes("REDUCE_PROD", reduce::product)),
    (82, moves("REDUCE_MAX", reduce::max).of_real()),
    (83, moves("PACK", movement::pack)),
    (84, computes("LOGICAL_OR", pointwise::logical_or)),
    (85, computes("ONE_HOT", index::one_hot)),
    (86, computes("LOGICAL_AND", pointwise::logical_and)),
    (87, computes("LOGICAL_NOT", pointwise::logical_not)),
    (88, moves("UNPACK", movement::unpack)),
    (89, moves("REDUCE_MIN", reduce::min).of_real()),
    (90, computes("FLOOR_DIV", pointwise::floor_div)),
    (91, computes("REDUCE_ANY", reduce::any)),
    (92, computes("SQUARE", pointwise::square)),
    (93, moves("ZEROS_LIKE", movement::zeros_like)),
    (94, moves("FILL", movement::fill)),
    (95, computes("FLOOR_MOD", pointwise::floor_mod)),
    (96, computes("RANGE", movement::range)),
    (
        97,
        moves("RESIZE_NEAREST_NEIGHBOR", movement::resize_nearest),
    ),
    (
        98,
        computes("LEAKY_RELU", pointwise::leaky_relu).or_integers(quantized::table::leaky_relu),
    ),
    (
        99,
        computes("SQUARED_DIFFERENCE", pointwise::squared_difference),
    ),
    (100, moves("MIRROR_PAD", movement::mirror_pad)),
    (
        101,
        computes("ABS", pointwise::abs).or_integers(quantized::table::abs),
    ),
    (102, moves("SPLIT_V", movement::split_v)),
    (104, computes("CEIL", pointwise::ceil)),
    (105, moves("REVERSE_V2", index::reverse)),
    (106, computes("ADD_N", pointwise::add_n)),
    (107, moves("GATHER_ND", index::gather_nd)),
    (108, computes("COS", pointwise::cos)),
    (109, computes("WHERE", index::where_true)),
    (110, moves("RANK", movement::rank)),
    (
        111,
        computes("ELU", pointwise::elu).or_integers(quantized::table::elu),
    ),
    (112, moves("REVERSE_SEQUENCE", index::reverse_sequence)),
    (
        114,
        computes("QUANTIZE", quantized::table::requantize)
            .or_integers(quantized::table::requantize),
    ),
    (116, computes("ROUND", pointwise::round)),
    (
        117,
        computes("HARD_SWISH", pointwise::hard_swish).or_integers(quantized::table::hard_swish),
    ),
    (118, moves("IF", control::branch)),
    (119, moves("WHILE", control::repeat)),
    (122, computes("SCATTER_ND", index::scatter_nd)),
    (123, moves("SELECT_V2", pointwise::select)),
    (
        126,
        computes("BATCH_MATMUL", conv::batch_matmul).or_integers(quantized::product::batch_matmul),
    ),
    (128, computes("CUMSUM", reduce::cumsum)),
    (129, moves("CALL_ONCE", variables::call_once)),
    (130, moves("BROADCAST_TO", movement::broadcast_to)),
    (131, computes("RFFT2D", signal::rfft_2d)),
    (132, computes("CONV_3D", conv::conv_3d)),
    (133, computes("IMAG", signal::imaginary_part).of_complex()),
    (134, moves("REAL", signal::real_part)),
    (135, computes("COMPLEX_ABS", signal::magnitude).of_complex()),
    (140, computes("REDUCE_ALL", reduce::all)),
    (VAR_HANDLE, moves("VAR_HANDLE", variables::handle)),
    (143, moves("READ_VARIABLE", variables::read).of_real()),
    (
        ASSIGN_VARIABLE,
        moves("ASSIGN_VARIABLE", variables::assign).of_real(),
    ),
    (
        150,
        computes("GELU", pointwise::gelu).or_integers(quantized::table::gelu),
    ),
    (
        152,
        computes("RELU_0_TO_1", pointwise::relu_0_to_1).or_integers(quantized::table::relu_0_to_1),
    ),
    (158, computes("SIGN", pointwise::sign)),
    (160, computes("BITWISE_XOR", pointwise::bitwise_xor)),
]);

/// The mapping of a builtin operator.
pub fn find(code: i32) -> Option<&'static Mapping> {
    OPERATORS
        .find(&code)
        .or_else(|| circle::OPERATORS.find(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_sorted_and_unique() {
        assert_eq!(OPERATORS.misplaced(), None);
        assert_eq!(circle::OPERATORS.misplaced(), None);
        let negative = circle::OPERATORS.0.iter().all(|(code, _)| *code < 0);
        assert!(negative && OPERATORS.0[0].0 == 0);
        assert_eq!(find(3).map(|m| m.name), Some("CONV_2D"));
        assert!(find(CUSTOM).is_none());
    }
}

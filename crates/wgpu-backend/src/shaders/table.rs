//! Every shader, with the definitions that it takes.

use super::{Shader, Values};
use crate::kernels::quantized::{self, product};
use crate::kernels::{binary, conv, einsum, grid, matmul, movement, reduce, unary};

/// What a definition may be.
type Choice = &'static [&'static str];

const BIT: Choice = &["0", "1"];
/// Elements in memory, where sums are `f32` whatever they are.
const STORED: Values = ("S", &["f32", "f16"]);
const VEC: Values = ("VEC", &["1", "4"]);

/// Elements that are moved without being looked at, by themselves or four at once.
const MOVED: Values = ("T", &["u32", "vec2u"]);
const MOVED4: Values = ("T", &["u32", "vec2u", "vec4u"]);
const INDEX: Values = ("INDEX", &["i64", "i32", "u32", "f32"]);

/// What moves to or from where indices say.
const INDEXED: &[Values] = &[MOVED, INDEX, ("SCATTER", BIT), ("REDUCTION", &["None"])];
/// What is combined there with what is there.
const COMBINED: &[Values] = &[
    ("T", &["f32", "i32", "u32"]),
    INDEX,
    ("SCATTER", &["1"]),
    ("REDUCTION", &["Add", "Mul", "Max", "Min"]),
];

/// Two operands, element by element.
const fn pairs(t: Choice, ops: Choice) -> [Values; 6] {
    [
        ("T", t),
        ("OP", ops),
        VEC,
        ("SPLAT_A", BIT),
        ("SPLAT_B", BIT),
        ("SAME", BIT),
    ]
}

/// `TILED`, `RM`, `W` and `TK` of products by workgroups of 8 x 8 threads.
const SMALL: [Choice; 4] = [BIT, &["1", "4"], &["8"], &["32"]];
/// The same by workgroups of 16 x 16 threads.
const LARGE: [Choice; 4] = [&["1"], &["4"], &["16"], &["16"]];

/// A product of matrices, tile by tile.
const fn tiles(a: Choice, b: Choice, [tiled, rm, w, tk]: [Choice; 4]) -> [Values; 10] {
    [
        STORED,
        ("A", a),
        ("B", b),
        ("C4", BIT),
        ("TILED", tiled),
        ("RM", rm),
        ("W", w),
        ("TK", tk),
        ("BIAS", BIT),
        ("RESIDUAL", BIT),
    ]
}

macro_rules! shader {
    ($name:literal, $path:literal, [$($set:expr),* $(,)?]) => {
        Shader { name: $name, path: $path, workgroup: [64, 1, 1], variants: &[$($set),*] }
    };
    ($name:literal, $path:literal, $workgroup:expr, [$($set:expr),* $(,)?]) => {
        Shader { name: $name, path: $path, workgroup: $workgroup, variants: &[$($set),*] }
    };
}

/// Every shader.
pub(crate) const ALL: &[Shader] = &[
    shader!("copy", "movement/copy.wgsl", [&[("T", &["u32"])]]),
    shader!(
        "unary",
        "elementwise/unary.wgsl",
        [
            &[("T", &["f32"]), ("OP", unary::FLOAT_OPS), VEC],
            &[("T", &["i32"]), ("OP", unary::INT_OPS), VEC],
            &[("T", &["u32"]), ("OP", unary::UINT_OPS), VEC],
        ]
    ),
    shader!(
        "binary",
        "elementwise/binary.wgsl",
        [
            &pairs(&["f32"], binary::FLOAT_OPS),
            &pairs(&["i32", "u32"], binary::INT_OPS),
        ]
    ),
    shader!(
        "binary64",
        "elementwise/binary64.wgsl",
        [&[("T", &["i64", "u64"]), ("OP", binary::WIDE_OPS)]]
    ),
    shader!(
        "cast",
        "elementwise/cast.wgsl",
        [
            &[
                ("FROM", &["f32"]),
                ("TO", &["i32", "u32", "bool", "i64", "u64"])
            ],
            &[
                ("FROM", &["i32", "u32"]),
                ("TO", &["f32", "i32", "u32", "bool", "i64"])
            ],
            &[("FROM", &["bool"]), ("TO", &["f32", "i32", "u32", "i64"])],
            &[("FROM", &["i64"]), ("TO", &["f32", "i32", "u32", "bool"])],
            &[("FROM", &["u64"]), ("TO", &["f32"])],
        ]
    ),
    shader!(
        "half",
        "elementwise/half.wgsl",
        [&[("FORMAT", &["f16", "bf16"]), ("NARROW", BIT)]]
    ),
    shader!("narrow", "elementwise/narrow.wgsl", [&[("NARROW", BIT)]]),
    shader!("where", "elementwise/where.wgsl", [&[MOVED]]),
    shader!(
        "clip",
        "elementwise/clip.wgsl",
        [&[
            ("T", &["f32", "i32", "u32"]),
            ("LOWER", BIT),
            ("UPPER", BIT)
        ],]
    ),
    shader!(
        "matmul",
        "products/matmul.wgsl",
        [8, 8, 1],
        [
            &tiles(matmul::A_MODES, matmul::B_MODES, SMALL),
            &tiles(conv::WINDOW_MODES, &["n4"], SMALL),
        ]
    ),
    shader!(
        "matmul_large",
        "products/matmul.wgsl",
        [16, 16, 1],
        [
            &tiles(matmul::A_MODES, matmul::B_MODES, LARGE),
            &tiles(conv::WINDOW_MODES, &["n4"], LARGE),
        ]
    ),
    shader!(
        "matvec",
        "products/matvec.wgsl",
        [&[STORED, ("B", matmul::B_MODES), ("BIAS", BIT)]]
    ),
    shader!(
        "conv_direct",
        "products/conv_direct.wgsl",
        [&[
            STORED,
            ("TRANSPOSED", BIT),
            ("BIAS", BIT),
            ("RESIDUAL", BIT)
        ]]
    ),
    shader!(
        "depthwise",
        "products/depthwise.wgsl",
        [&[STORED, ("BIAS", BIT), ("RESIDUAL", BIT)]]
    ),
    shader!(
        "einsum",
        "products/einsum.wgsl",
        [&[("COUNT", einsum::COUNTS)]]
    ),
    shader!(
        "linear",
        "quantized/linear.wgsl",
        [
            &[
                ("OP", &["QuantizeLinear", "AffineQuantize"]),
                ("T", &["u32"])
            ],
            &[("OP", &["DequantizeLinear"]), ("T", &["i32", "f32"])],
        ]
    ),
    shader!(
        "product",
        "quantized/product.wgsl",
        [&[
            ("X", product::DATA_MODES),
            ("W", product::WEIGHT_MODES),
            ("RM", &["1", "4"]),
            ("C4", BIT),
            ("FINISH", product::FINISHES)
        ]]
    ),
    shader!("range", "quantized/range.wgsl", [256, 1, 1], [&[]]),
    shader!("quantized_softmax", "quantized/softmax.wgsl", [&[]]),
    shader!(
        "quantized_resize",
        "quantized/resize.wgsl",
        [&[("T", &["f32", "i32"])]]
    ),
    shader!("parameters", "quantized/parameters.wgsl", [&[]]),
    shader!(
        "requantize",
        "quantized/requantize.wgsl",
        [&[("FINISH", &["Fixed"])]]
    ),
    shader!(
        "quantized_binary",
        "quantized/binary.wgsl",
        [
            &[("T", &["f32"]), ("OP", quantized::COMBINATIONS)],
            &[("T", &["i32"]), ("OP", &["Add", "Sub", "Mul"])],
        ]
    ),
    shader!("walk", "movement/walk.wgsl", [&[MOVED4]]),
    shader!(
        "join",
        "movement/join.wgsl",
        [&[MOVED4, ("COUNT", movement::PART_COUNTS), ("SPLIT", BIT)],]
    ),
    shader!(
        "pad",
        "movement/pad.wgsl",
        [&[MOVED, ("MODE", movement::PAD_MODES)]]
    ),
    shader!("fill", "movement/fill.wgsl", [&[MOVED]]),
    shader!("trilu", "movement/trilu.wgsl", [&[MOVED]]),
    shader!("eye", "movement/eye.wgsl", [&[MOVED]]),
    shader!("gather", "index/gather.wgsl", [&[MOVED4, INDEX]]),
    shader!("elements", "index/elements.wgsl", [INDEXED, COMBINED]),
    shader!("slices", "index/slices.wgsl", [INDEXED, COMBINED]),
    shader!("reverse", "index/reverse.wgsl", [&[MOVED, INDEX]]),
    shader!("one_hot", "index/one_hot.wgsl", [&[MOVED, INDEX]]),
    shader!(
        "reduce",
        "reduce/reduce.wgsl",
        [
            &[("T", &["f32"]), ("OP", reduce::FLOAT_OPS), ("GROUP", BIT)],
            &[
                ("T", &["i32", "u32"]),
                ("OP", reduce::INT_OPS),
                ("GROUP", BIT)
            ],
        ]
    ),
    shader!(
        "arg",
        "reduce/arg.wgsl",
        [&[
            ("T", &["f32", "i32", "u32"]),
            ("MAX", BIT),
            INDEX,
            ("GROUP", BIT)
        ],]
    ),
    shader!(
        "softmax",
        "reduce/softmax.wgsl",
        [
            &[("OP", &["Softmax", "LogSoftmax"]), ("GROUP", BIT)],
            &[("OP", &["Hardmax"]), ("GROUP", &["0"])],
        ]
    ),
    shader!(
        "cumulative",
        "reduce/cumulative.wgsl",
        [&[("T", &["f32", "i32", "u32"]), ("PRODUCT", BIT)],]
    ),
    shader!(
        "rows",
        "norm/rows.wgsl",
        [&[("RMS", BIT), ("BIAS", BIT), ("STATS", BIT)]]
    ),
    shader!("batch", "norm/batch.wgsl", [&[]]),
    shader!("lrn", "norm/lrn.wgsl", [&[]]),
    shader!("lp", "norm/lp.wgsl", [&[]]),
    shader!(
        "pool",
        "window/pool.wgsl",
        [
            &[("OP", &["Max", "Average", "Lp"]), ("T", &["f32"])],
            &[("OP", &["Max", "Average"]), ("T", &["i32"])],
        ]
    ),
    shader!("resize", "window/resize.wgsl", [&[]]),
    shader!("col2im", "window/col2im.wgsl", [&[]]),
    shader!(
        "grid_sample",
        "window/grid_sample.wgsl",
        [&[("MODE", grid::MODES)]]
    ),
    shader!("affine_grid", "window/affine_grid.wgsl", [&[]]),
    shader!(
        "top_k",
        "sort/top_k.wgsl",
        [&[("T", &["f32", "i32", "u32", "i64", "u64"])]]
    ),
    shader!(
        "cell",
        "recurrent/cell.wgsl",
        [256, 1, 1],
        [&[("CELL", &["lstm", "gru", "rnn"])]]
    ),
];

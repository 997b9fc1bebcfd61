//! The shader files and their variants. A file is compiled once for every combination of
//! definitions that is used; shapes are never among them.

use std::sync::{Arc, LazyLock};

use crate::kernels::custom::UserShader;
use crate::kernels::quantized::{self, product};
use crate::kernels::{binary, conv, einsum, grid, matmul, movement, reduce, unary};
use crate::preprocess;

/// Threads of a workgroup in kernels that treat elements one by one.
pub(crate) const LINEAR: usize = 64;

/// Workgroups along one dimension of a dispatch, at most.
pub(crate) const MOST_GROUPS: usize = 65535;

/// Values that a definition may take.
pub(crate) type Values = (&'static str, &'static [&'static str]);

/// One shader file and what is known of it.
pub(crate) struct Shader {
    pub name: &'static str,
    /// The file, under `shaders/`.
    pub path: &'static str,
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "what the tests hold shaders to")
    )]
    pub workgroup: [u32; 3],
    /// The sets of definitions that make valid variants: any of the values of each definition of one set.
    pub variants: &'static [&'static [Values]],
}

impl Shader {
    /// Whether these definitions are among the declared variants.
    pub fn allows(&self, defines: &[(&str, &str)]) -> bool {
        self.variants.iter().any(|set| {
            set.len() == defines.len()
                && set.iter().all(|(name, values)| {
                    defines.iter().any(|(n, v)| n == name && values.contains(v))
                })
        })
    }
}

/// A shader with its definitions chosen.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub shader: &'static str,
    /// WGSL that is not one of the files: a custom operator's.
    pub text: Option<Arc<UserShader>>,
    pub defines: Vec<(&'static str, &'static str)>,
    /// For each storage binding, whether it is read only.
    pub read_only: Vec<bool>,
}

impl Variant {
    /// What stands for `name` in the shader; of `ACCESS_n` how binding `n` is accessed.
    pub fn definition(&self, name: &str) -> Option<String> {
        if let Some((_, value)) = self.defines.iter().find(|(n, _)| *n == name) {
            return Some((*value).to_string());
        }
        let binding: usize = name.strip_prefix("ACCESS_")?.parse().ok()?;
        let read_only = *self.read_only.get(binding.checked_sub(1)?)?;
        Some(if read_only { "read" } else { "read_write" }.to_string())
    }

    /// The WGSL. Binding 0 is the uniform `Params`, storage buffers follow.
    pub fn source(&self) -> preprocess::Result<String> {
        if let Some(text) = &self.text {
            return Ok(text.source(&self.read_only));
        }
        let shader = find(self.shader).ok_or_else(|| format!("no shader `{}`", self.shader))?;
        let text = file(shader.path).ok_or_else(|| format!("no shader file `{}`", shader.path))?;
        let text = preprocess::expand(text, &file, &|n| self.definition(n))?;
        // By the text: of another definition, `f16` may be a format that is read bit by bit.
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        Ok(if words.any(|word| word == "f16") {
            format!("enable f16;\n{text}")
        } else {
            text
        })
    }

    /// Name and definitions, for errors and profiles.
    pub fn label(&self) -> String {
        let mut label = self.shader.to_string();
        for (_, value) in &self.defines {
            label.push(' ');
            label.push_str(value);
        }
        label
    }
}

/// The text of a shader file, as `build.rs` left it.
fn file(path: &str) -> Option<&'static str> {
    static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shaders.lz4"));
    static FILES: LazyLock<Vec<u8>> =
        LazyLock::new(|| lz4_flex::decompress_size_prepended(PACKED).unwrap_or_default());
    let mut parts = FILES.split(|byte| *byte == 0);
    parts.find(|part| *part == path.as_bytes())?;
    str::from_utf8(parts.next()?).ok()
}

pub(crate) fn find(name: &str) -> Option<&'static Shader> {
    ALL.iter().find(|s| s.name == name)
}

const BIT: &[&str] = &["0", "1"];
/// Elements in memory, where sums are `f32` whatever they are.
const STORED: Values = ("S", &["f32", "f16"]);
const VEC: Values = ("VEC", &["1", "4"]);

const MOVED4: Values = ("T", &["u32", "vec2u", "vec4u"]);
const MOVED: Values = ("T", &["u32", "vec2u"]);

/// What moves to or from where indices say.
const INDEXED: &[Values] = &[
    MOVED,
    ("WIDE", BIT),
    ("SCATTER", BIT),
    ("REDUCTION", &["None"]),
];
/// What is combined there with what is there.
const COMBINED: &[Values] = &[
    ("T", &["f32", "i32", "u32"]),
    ("WIDE", BIT),
    ("SCATTER", &["1"]),
    ("REDUCTION", &["Add", "Mul", "Max", "Min"]),
];

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
            &[
                ("T", &["f32"]),
                ("OP", binary::FLOAT_OPS),
                VEC,
                ("SPLAT_A", BIT),
                ("SPLAT_B", BIT),
                ("SAME", BIT)
            ],
            &[
                ("T", &["i32", "u32"]),
                ("OP", binary::INT_OPS),
                VEC,
                ("SPLAT_A", BIT),
                ("SPLAT_B", BIT),
                ("SAME", BIT)
            ],
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
            &[
                STORED,
                ("A", matmul::A_MODES),
                ("B", matmul::B_MODES),
                ("C4", BIT),
                ("TILED", BIT),
                ("RM", &["1", "4"]),
                ("W", &["8"]),
                ("TK", &["32"]),
                ("BIAS", BIT),
                ("RESIDUAL", BIT)
            ],
            &[
                STORED,
                ("A", conv::WINDOW_MODES),
                ("B", &["n4"]),
                ("C4", BIT),
                ("TILED", BIT),
                ("RM", &["1", "4"]),
                ("W", &["8"]),
                ("TK", &["32"]),
                ("BIAS", BIT),
                ("RESIDUAL", BIT)
            ],
        ]
    ),
    shader!(
        "matmul_large",
        "products/matmul.wgsl",
        [16, 16, 1],
        [
            &[
                STORED,
                ("A", matmul::A_MODES),
                ("B", matmul::B_MODES),
                ("C4", BIT),
                ("TILED", &["1"]),
                ("RM", &["4"]),
                ("W", &["16"]),
                ("TK", &["16"]),
                ("BIAS", BIT),
                ("RESIDUAL", BIT)
            ],
            &[
                STORED,
                ("A", conv::WINDOW_MODES),
                ("B", &["n4"]),
                ("C4", BIT),
                ("TILED", &["1"]),
                ("RM", &["4"]),
                ("W", &["16"]),
                ("TK", &["16"]),
                ("BIAS", BIT),
                ("RESIDUAL", BIT)
            ],
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
    shader!(
        "gather",
        "index/gather.wgsl",
        [&[MOVED4, ("INDEX", &["u32", "vec2u", "f32"])]]
    ),
    shader!("elements", "index/elements.wgsl", [INDEXED, COMBINED]),
    shader!("slices", "index/slices.wgsl", [INDEXED, COMBINED]),
    shader!("reverse", "index/reverse.wgsl", [&[MOVED, ("WIDE", BIT)]]),
    shader!(
        "one_hot",
        "index/one_hot.wgsl",
        [&[MOVED, ("INDEX", &["i64", "i32", "u32", "f32"])],]
    ),
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
            ("WIDE", BIT),
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

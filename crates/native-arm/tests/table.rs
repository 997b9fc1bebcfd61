//! The tables in `docs/arm.md` of what ACL 24.11, and 24.09 with float16, run in which element type are what the support query says.
//! Where they differ, the test prints the one that belongs there.
#![cfg(all(
    target_arch = "aarch64",
    any(target_os = "linux", target_os = "android")
))]

mod common;

use std::sync::Arc;

use common::Given::{self, Constant, Fed};
use common::{
    bytes, conv, conv_transpose, given_in, max_pool, noise, quantised, resize, resized, window,
    zero,
};
use kilim_core::backend::Backend;
use kilim_core::fixed::Factor;
use kilim_core::ops::{
    Affine, AveragePool, BatchNorm, Binary, BinaryKind, Combination, Concat, CoordinateMode, Gemm,
    LayerNorm, Lrn, MatMul, MatMulInteger, NearestMode, QLinearBinary, QLinearConv, QLinearMatMul,
    QuantizedBinary, QuantizedResize, QuantizedSoftmax, Requantize, ResizeMode, Softmax,
    SoftmaxKind, TableLookup, Tabulated, Transpose, Unary, UnaryKind,
};
use kilim_core::{DType, Operator, Tensor};
use kilim_native_arm::AclBackend;
use kilim_test_support::skip;

/// A node in floating point, and what it is of bytes.
struct Row {
    name: &'static str,
    float: Node,
    bytes: Option<Node>,
}

struct Node {
    op: Arc<dyn Operator>,
    inputs: Vec<Given>,
    /// Shape of the output.
    y: Vec<usize>,
}

fn node(op: impl Operator, inputs: Vec<Given>, y: &[usize]) -> Node {
    Node {
        op: Arc::new(op),
        inputs,
        y: y.to_vec(),
    }
}

fn row(name: &'static str, float: Node, bytes: impl Into<Option<Node>>) -> Row {
    Row {
        name,
        float,
        bytes: bytes.into(),
    }
}

fn requantize() -> Requantize {
    Requantize {
        factors: vec![Factor::new(0.01).unwrap()],
        zero_point: 0,
        range: [-128, 127],
        output: DType::I8,
    }
}

fn convolutions() -> Vec<Row> {
    let row = |name, groups, channels_last| {
        let c = 8 / groups;
        let (x, y) = match channels_last {
            true => ([1, 6, 6, 8], [1, 6, 6, 8]),
            false => ([1, 8, 6, 6], [1, 8, 6, 6]),
        };
        let op = conv(groups, channels_last);
        let w = [8, c, 3, 3];
        let float = vec![Fed(noise(&x, 1)), Constant(noise(&w, 2))];
        let bytes = node(QLinearConv { conv: op.clone() }, quantised(&x, &w), &y);
        row(name, node(op, float, &y), bytes)
    };
    let inputs = vec![
        Fed(noise(&[1, 6, 6, 8], 1)),
        Constant(noise(&[8, 8, 3, 3], 2)),
    ];
    vec![
        row("convolution", 1, true),
        row("convolution, channels first", 1, false),
        row("depthwise convolution", 8, true),
        row("convolution in groups, channels first", 2, false),
        row("convolution in groups, channels last", 2, true),
        crate::row(
            "transposed convolution",
            node(conv_transpose(1, true), inputs, &[1, 6, 6, 8]),
            None,
        ),
    ]
}

fn products() -> Vec<Row> {
    let inputs = vec![Fed(noise(&[4, 16], 1)), Constant(noise(&[16, 8], 2))];
    let weights = node(MatMul::default(), inputs, &[4, 8]);
    let quantised = quantised(&[4, 16], &[16, 8]);
    let quantised = node(QLinearMatMul::default(), quantised, &[4, 8]);
    let inputs = vec![Fed(noise(&[4, 16], 1)), Fed(noise(&[16, 8], 2))];
    let computed = node(MatMul::default(), inputs, &[4, 8]);
    let two = [zero(DType::I8, 0), zero(DType::I8, 0)];
    let inputs = [Fed(bytes(&[4, 16], 37)), Fed(bytes(&[16, 8], 91))];
    let of_bytes = inputs.into_iter().chain(two).collect();
    let of_bytes = node(MatMulInteger::default(), of_bytes, &[4, 8]);
    let inputs = vec![Fed(noise(&[3, 4, 16], 1)), Fed(noise(&[3, 16, 8], 2))];
    let stack = node(MatMul::default(), inputs, &[3, 4, 8]);
    let gemm = Gemm {
        alpha: 1.0,
        beta: 1.0,
        transpose_a: false,
        transpose_b: true,
        activation: Default::default(),
    };
    let inputs = vec![
        Fed(noise(&[4, 16], 1)),
        Constant(noise(&[8, 16], 2)),
        Constant(noise(&[8], 3)),
    ];
    let gemm = node(gemm, inputs, &[4, 8]);
    vec![
        row("Gemm with weights and bias", gemm, None),
        row("matrix product with weights", weights, quantised),
        row("matrix product of computed factors", computed, of_bytes),
        row("stack of matrix products", stack, None),
    ]
}

fn pictures() -> Vec<Row> {
    let max = max_pool(window(2, 2, 0), true);
    let average = AveragePool {
        window: window(2, 2, 0),
        count_include_pad: false,
        channels_last: true,
        activation: Default::default(),
    };
    let (x, small, large) = ([1, 6, 6, 8], [1, 3, 3, 8], [1, 12, 12, 8]);
    let both = |name, op: Arc<dyn Operator>, y: &[usize], sizes: bool| {
        let inputs = |data| match sizes {
            true => resized(data, y),
            false => vec![Fed(data)],
        };
        let of = |data| Node {
            op: op.clone(),
            inputs: inputs(data),
            y: y.to_vec(),
        };
        row(name, of(noise(&x, 1)), of(bytes(&x, 37)))
    };
    let nearest = resize(
        ResizeMode::Nearest(NearestMode::Floor),
        CoordinateMode::Asymmetric,
    );
    let linear = resize(ResizeMode::Linear, CoordinateMode::HalfPixel);
    let quantised = QuantizedResize {
        align_corners: false,
        half_pixel: true,
    };
    let sizes = Constant(Tensor::from_slice(&[2], &[12i64, 12]).unwrap());
    let quantised = node(quantised, vec![Fed(bytes(&x, 37)), sizes], &large);
    vec![
        both("maximum of windows", Arc::new(max), &small, false),
        both("average of windows", Arc::new(average), &small, false),
        both("resizing, nearest", Arc::new(nearest), &large, true),
        Row {
            bytes: Some(quantised),
            ..both("resizing, linear", Arc::new(linear), &large, true)
        },
    ]
}

fn elementwise() -> Vec<Row> {
    let shape = [4, 8];
    let one = Affine {
        scale: 0.1,
        zero: 0.0,
    };
    let two = || vec![Fed(noise(&shape, 1)), Fed(noise(&shape, 2))];
    let function = |name, kind| {
        let table = vec![Fed(bytes(&shape, 37)), Constant(bytes(&[256], 1))];
        let float = node(Unary(kind), vec![Fed(noise(&shape, 1))], &shape);
        let zero = if kind == UnaryKind::Sigmoid {
            -128.0
        } else {
            0.0
        };
        let to = Affine {
            scale: 1.0 / 256.0,
            zero,
        };
        let of = Tabulated {
            function: kind,
            from: one,
            to,
        };
        row(
            name,
            float,
            node(TableLookup { of: Some(of) }, table, &shape),
        )
    };
    let two_bytes = || vec![Fed(bytes(&shape, 37)), Fed(bytes(&shape, 91))];
    let binary = |name, kind| {
        let quantised = QLinearBinary {
            kind,
            operands: [one; 2],
            offset: 0.0,
            result: one,
            range: [-128.0, 127.0],
            output: DType::I8,
        };
        let float = node(Binary::new(kind), two(), &shape);
        row(name, float, node(quantised, two_bytes(), &shape))
    };
    let product = QuantizedBinary {
        zero_points: [0, 0],
        combination: Combination::Product,
        result: requantize(),
    };
    let product = node(product, two_bytes(), &shape);
    let slopes = vec![Fed(noise(&shape, 1)), Constant(noise(&[8], 2))];
    vec![
        function("Relu", UnaryKind::Relu),
        function("Sigmoid", UnaryKind::Sigmoid),
        function("HardSwish", UnaryKind::HardSwish),
        function("Exp", UnaryKind::Exp),
        function("Log", UnaryKind::Log),
        function("Abs", UnaryKind::Abs),
        function("Neg", UnaryKind::Neg),
        function("Round", UnaryKind::Round),
        binary("sum", BinaryKind::Add),
        row(
            "product",
            node(Binary::new(BinaryKind::Mul), two(), &shape),
            product,
        ),
        binary("difference", BinaryKind::Sub),
        row(
            "quotient",
            node(Binary::new(BinaryKind::Div), two(), &shape),
            None,
        ),
        binary("larger of two", BinaryKind::Max),
        binary("smaller of two", BinaryKind::Min),
        row(
            "PRelu",
            node(Binary::new(BinaryKind::PRelu), slopes, &shape),
            None,
        ),
    ]
}

fn rows() -> Vec<Row> {
    let softmax = |kind| Softmax {
        kind,
        axis: 1,
        beta: 1.0,
    };
    let quantised = QuantizedSoftmax {
        factor: Factor::new(0.01).unwrap(),
        smallest: -100,
    };
    let shape = [4, 8];
    let picture = [1, 8, 3, 3];
    let parameter = |seed| Constant(noise(&[8], seed));
    let batch = BatchNorm {
        epsilon: 1e-5,
        channels_last: false,
    };
    let inputs = vec![
        Fed(noise(&picture, 1)),
        parameter(2),
        parameter(3),
        parameter(4),
        parameter(5),
    ];
    let batch = node(batch, inputs, &picture);
    let layer = LayerNorm {
        axis: -1,
        epsilon: 1e-5,
    };
    let layer = node(layer, vec![Fed(noise(&shape, 1)), parameter(2)], &shape);
    let local = Lrn {
        alpha: 0.02,
        beta: 0.75,
        bias: 1.5,
        size: 5,
        channels_last: false,
    };
    let local = node(local, vec![Fed(noise(&picture, 1))], &picture);
    let concat = |data: fn(usize) -> Tensor| {
        let inputs = vec![Fed(data(1)), Fed(data(2))];
        node(Concat { axis: 1 }, inputs, &[4, 16])
    };
    let turned = |data: Tensor| node(Transpose { perm: vec![1, 0] }, vec![Fed(data)], &[8, 4]);
    vec![
        row(
            "Softmax",
            node(
                softmax(SoftmaxKind::Softmax),
                vec![Fed(noise(&shape, 1))],
                &shape,
            ),
            node(quantised, vec![Fed(bytes(&shape, 37))], &shape),
        ),
        row(
            "LogSoftmax",
            node(
                softmax(SoftmaxKind::LogSoftmax),
                vec![Fed(noise(&shape, 1))],
                &shape,
            ),
            None,
        ),
        row("BatchNormalization", batch, None),
        row("LayerNormalization", layer, None),
        row("LRN", local, None),
        row(
            "Concat",
            concat(|i| noise(&[4, 8], i)),
            concat(|i| bytes(&[4, 8], i)),
        ),
        row(
            "Transpose",
            turned(noise(&shape, 1)),
            turned(bytes(&shape, 37)),
        ),
    ]
}

/// The answer to a node, with `float16` in the place of `float32` where that is wanted.
fn ask(acl: &AclBackend, node: &Node, half: bool) -> Result<(), String> {
    let inputs = match half {
        true => &given_in(DType::F16, &node.inputs),
        false => &node.inputs,
    };
    let (Fed(x) | Constant(x)) = &inputs[0];
    let answer = common::ask(acl, &*node.op, inputs, (x.dtype(), &node.y));
    answer.map_err(|reason| without_place(&reason))
}

/// ACL says in which line of its source it refuses, `in FUNCTION FILE:LINE: REASON`.
fn without_place(reason: &str) -> String {
    let words = reason.split_once(": in ");
    let words = words.and_then(|(who, rest)| Some((who, rest.split_once(": ")?.1)));
    words.map_or(reason.into(), |(who, why)| format!("{who}: {why}"))
}

fn table(acl: &AclBackend) -> String {
    let native = acl.native();
    let mut reasons: Vec<String> = Vec::new();
    let mut lines = vec![
        "| | float32 | float16 | int8 | int8, native |".to_string(),
        "|---|---|---|---|---|".to_string(),
    ];
    let families = [
        convolutions(),
        products(),
        pictures(),
        elementwise(),
        rows(),
    ];
    for row in families.iter().flatten() {
        let mut cell = |acl, node: Option<&Node>, half| match node.map(|node| ask(acl, node, half))
        {
            None => String::new(),
            Some(Ok(())) => "yes".into(),
            Some(Err(reason)) => {
                let at = reasons
                    .iter()
                    .position(|r| *r == reason)
                    .unwrap_or_else(|| {
                        reasons.push(reason);
                        reasons.len() - 1
                    });
                format!("no ({})", at + 1)
            }
        };
        lines.push(format!(
            "| {} | {} | {} | {} | {} |",
            row.name,
            cell(acl, Some(&row.float), false),
            cell(acl, Some(&row.float), true),
            cell(acl, row.bytes.as_ref(), false),
            cell(&native, row.bytes.as_ref(), false)
        ));
    }
    lines.push(String::new());
    let numbered = reasons.iter().enumerate();
    lines.extend(numbered.map(|(i, reason)| format!("{}. {reason}", i + 1)));
    lines.join("\n")
}

/// Compares the table with what stands in the document behind `<!-- NAME -->`.
fn check(name: &str, release: &str, acl: &AclBackend) {
    let device = &acl.describe().device;
    if !device.contains(release) {
        return skip(format_args!(
            "the table is that of ACL {release}, this is {device}"
        ));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/arm.md");
    let text = std::fs::read_to_string(path).unwrap();
    let here = text.split_once(&format!("<!-- {name} -->\n"));
    let here = here.and_then(|(_, rest)| rest.split_once("\n<!-- end -->"));
    let got = table(acl);
    let said = here.map_or("", |(table, _)| table.trim());
    assert!(said == got, "docs/arm.md says otherwise of {name}:\n{got}");
}

#[test]
fn what_acl_neon_runs() {
    match AclBackend::neon() {
        Ok(neon) if neon.describe().f16() => check("acl_neon with float16", "v24.09", &neon),
        Ok(neon) => check("acl_neon", "v24.11", &neon),
        Err(e) if std::env::var_os("KILIM_ACL").is_none() => skip(e),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn what_acl_cl_runs() {
    match AclBackend::cl() {
        Ok(cl) => check("acl_cl", "v24.11", &cl),
        Err(e) if std::env::var_os("KILIM_OPENCL").is_none() => skip(e),
        Err(e) => panic!("{e}"),
    }
}

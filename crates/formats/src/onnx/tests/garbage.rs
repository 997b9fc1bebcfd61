//! Files that are cut off, garbled or built to exhaust: errors, never a panic.

use kilim_core::error::ErrorCode;

use super::writer::*;

/// A model with a bit of everything: subgraph, initializers, attributes of each kind.
fn sample() -> Bytes {
    let branch = |op| [node(op, &["h"], &["t"], &[]), output("t")];
    let branches = [
        attr_graph("then_branch", &branch("Exp")),
        attr_graph("else_branch", &branch("Neg")),
    ];
    let conv = [
        attr_ints("kernel_shape", &[3, 3]),
        attr_ints("pads", &[1, 1, 1, 1]),
        attr_text("auto_pad", "NOTSET"),
        attr_int("group", 1),
    ];
    let value = attr_tensor("value", &tensor("", 7, &[2], bytes(7, &[2, 16])));
    model(
        13,
        &[
            input("x", &[-1, 1, 4, 4]),
            value_of_bool("c"),
            initializer(&floats("w", &[1, 1, 3, 3], &[0.5; 9])),
            node("Conv", &["x", "w"], &["conv"], &conv),
            node("Constant", &[], &["shape"], &[value]),
            node("Reshape", &["conv", "shape"], &["h0"], &[]),
            node("LeakyRelu", &["h0"], &["h"], &[attr_float("alpha", 0.1)]),
            node("If", &["c"], &["y"], &branches),
            output("y"),
        ],
    )
}

fn value_of_bool(name: &str) -> Bytes {
    value(11, name, 9, &[])
}

#[test]
fn every_prefix() {
    let whole = sample();
    assert!(load(&whole).is_ok(), "{:?}", load(&whole).err());
    for n in 0..whole.len() {
        // A prefix may end between two fields and be a model still.
        if let Err(e) = load(&whole[..n]) {
            let expected = [
                ErrorCode::UnknownFormat,
                ErrorCode::InvalidModel,
                ErrorCode::InvalidGraph,
                ErrorCode::Unsupported,
            ];
            assert!(expected.contains(&e.code()), "{n} bytes: {e}");
        }
    }
}

#[test]
fn every_bit_flipped() {
    let whole = sample();
    for byte in 0..whole.len() {
        for bit in 0..8 {
            let mut broken = whole.clone();
            broken[byte] ^= 1 << bit;
            let _ = load(&broken);
        }
    }
}

#[test]
fn bytes_replaced() {
    let whole = sample();
    for byte in 0..whole.len() {
        for with in [0, 0x7f, 0x80, 0xff] {
            let mut broken = whole.clone();
            broken[byte] = with;
            let _ = load(&broken);
        }
    }
}

#[test]
fn other_files_are_no_models() {
    for garbage in [
        &b""[..],
        b"\0",
        b"not a model at all",
        b"{\"json\": true}",
        b"PK\x03\x04\x14\0\0\0",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
        &[0xff; 64],
        &[0x08, 0x80],
    ] {
        let code = load(garbage).err().map(|e| e.code());
        assert_eq!(code, Some(ErrorCode::UnknownFormat), "{garbage:?}");
    }
}

#[test]
fn a_model_cut_off_is_still_recognised() {
    let whole = sample();
    let code = load(&whole[..whole.len() / 2]).err().map(|e| e.code());
    assert_eq!(code, Some(ErrorCode::InvalidModel));
}

/// Numbers of columns that no memory holds, and counts whose sum is no number.
#[test]
fn attributes_do_not_size_memory() {
    let ngrams = [
        attr_text("mode", "TFIDF"),
        attr_int("min_gram_length", 1),
        attr_int("max_gram_length", 1),
        attr_int("max_skip_count", 0),
        attr_ints("ngram_counts", &[0]),
        attr_ints("ngram_indexes", &[1 << 60]),
        attr_ints("pool_int64s", &[1]),
        attr_floats("weights", &[1.0]),
    ];
    let graph = [
        value(11, "x", 7, &[4]),
        node("TfIdfVectorizer", &["x"], &["y"], &ngrams),
        output("y"),
    ];
    let code = load(&model(13, &graph)).err().map(|e| e.code());
    // Where places have 32 bits, the number itself is refused.
    let refused = matches!(code, Some(ErrorCode::Limit | ErrorCode::InvalidModel));
    assert!(refused, "{code:?}");
    let machine = [
        attr_ints("classlabels_ints", &[0, 1]),
        attr_ints("vectors_per_class", &[i64::MAX, i64::MAX, i64::MAX]),
        attr_floats("coefficients", &[1.0]),
        attr_floats("rho", &[1.0]),
        attr_floats("support_vectors", &[1.0]),
    ];
    let graph = [
        input("x", &[1, 1]),
        node_in("ai.onnx.ml", "SVMClassifier", &["x"], &["y", "z"], &machine),
        output("y"),
    ];
    let file = join(&[model(13, &graph), opset("ai.onnx.ml", 1)]);
    let code = load(&file).err().map(|e| e.code());
    let expected = [Some(ErrorCode::InvalidModel), Some(ErrorCode::Unsupported)];
    assert!(expected.contains(&code), "{code:?}");
}

/// Subgraphs in subgraphs end at a limit, not at the end of the stack.
#[test]
fn nesting_bombs() {
    let mut body = vec![node("Exp", &["x"], &["y"], &[]), output("y")];
    for _ in 0..2000 {
        let nested = attr_graph("then_branch", &body);
        let simple = attr_graph(
            "else_branch",
            &[node("Exp", &["x"], &["y"], &[]), output("y")],
        );
        body = vec![node("If", &["c"], &["y"], &[nested, simple]), output("y")];
    }
    let mut graph = vec![input("x", &[1]), value_of_bool("c")];
    graph.extend(body);
    let code = load(&model(13, &graph)).err().map(|e| e.code());
    assert_eq!(code, Some(ErrorCode::Limit));
}

#[test]
fn subgraphs_as_deep_as_allowed() {
    let mut body = vec![node("Exp", &["x"], &["y"], &[]), output("y")];
    for _ in 0..20 {
        let branches = [
            attr_graph("then_branch", &body),
            attr_graph("else_branch", &body[..]),
        ];
        body = vec![node("If", &["c"], &["y"], &branches[..1]), output("y")];
        let simple = attr_graph(
            "else_branch",
            &[node("Exp", &["x"], &["y"], &[]), output("y")],
        );
        let nested = branches[0].clone();
        body[0] = node("If", &["c"], &["y"], &[nested, simple]);
    }
    let mut graph = vec![input("x", &[1]), value_of_bool("c")];
    graph.extend(body);
    let result = load(&model(13, &graph));
    assert!(result.is_ok(), "{:?}", result.err());
}

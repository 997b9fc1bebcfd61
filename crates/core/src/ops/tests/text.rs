//! Strings, and types of less than a byte.

use super::*;

fn texts(all: &[&str]) -> Option<InputFact> {
    let all: Vec<std::sync::Arc<str>> = all.iter().map(|&t| t.into()).collect();
    known(Tensor::from_texts(&[all.len()], all).unwrap())
}

fn split(delimiter: &str, most: Option<usize>) -> StringSplit {
    StringSplit {
        delimiter: delimiter.to_string(),
        most,
    }
}

#[test]
fn joining_and_matching() {
    let inputs = [unknown("string n,1"), unknown("string 3")];
    assert_eq!(infer(StringConcat, &inputs), "string[n,3]");
    let matches = RegexFullMatch {
        pattern: "a".to_string(),
    };
    assert_eq!(infer(matches, &inputs[..1]), "bool[n,1]");
    let numbers = [unknown("float32 3"), unknown("string 3")];
    assert_eq!(refuse(StringConcat, &numbers), ErrorCode::DType);
}

/// The cases are Python's, whose `str.split` the standard describes.
#[test]
fn parts_of_texts() {
    let cases: [(&str, Option<usize>, &str, &[&str]); 10] = [
        ("", None, "  a  b c ", &["a", "b", "c"]),
        ("", Some(1), "  a  b c ", &["a", "b c "]),
        ("", Some(0), "  a  b c ", &["a  b c "]),
        ("", None, "", &[]),
        ("", None, "  ", &[]),
        (",", None, "", &[""]),
        (",", None, "a,,b,", &["a", "", "b", ""]),
        (",", Some(1), "a,,b,", &["a", ",b,"]),
        ("--", None, "a---b", &["a", "-b"]),
        (",", Some(0), "a,b", &["a,b"]),
    ];
    for (delimiter, most, text, want) in cases {
        let mut parts = Vec::new();
        let each = &mut |part| {
            parts.push(part);
            Ok(())
        };
        split(delimiter, most).parts(&meter(), text, each).unwrap();
        assert_eq!(parts, want, "{text:?} by {delimiter:?}");
    }
}

#[test]
fn the_longest_text_gives_the_length() {
    let inputs = [texts(&["a b", "c", ""])];
    assert_eq!(
        infer_all(split("", None), 2, &inputs),
        "string[3,2] int64[3]"
    );
    let inputs = [unknown("string n")];
    assert_eq!(
        infer_all(split("", None), 2, &inputs),
        "string[n,?] int64[n]"
    );
}

#[test]
fn stop_words_go_and_one_text_stays() {
    let op = |case_sensitive, stopwords: &[&str]| StringNormalizer {
        case: CaseChange::Upper,
        case_sensitive,
        stopwords: stopwords.iter().map(|s| s.to_string()).collect(),
    };
    let data = texts(&["Monday", "monday", "grüß"]);
    let values = |op: &StringNormalizer| {
        let tensor = data.as_ref().and_then(|d| d.value.clone()).unwrap();
        let texts = op.normalized(&meter(), &tensor).unwrap();
        texts.iter().map(|t| t.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(values(&op(true, &["monday"])), ["MONDAY", "GRÜSS"]);
    assert_eq!(values(&op(false, &["MONDAY"])), ["GRÜSS"]);
    let all = op(false, &["monday", "GRÜß"]);
    assert_eq!(values(&all), [""]);
    assert_eq!(infer(all.clone(), std::slice::from_ref(&data)), "string[1]");
    assert_eq!(infer(all.clone(), &[unknown("string 1,n")]), "string[1,?]");
    assert_eq!(refuse(all, &[unknown("string 2,n")]), ErrorCode::Shape);
}

#[test]
fn bits_keep_their_number() {
    let to = |to| BitCast { to };
    assert_eq!(
        infer(to(DType::I32), &[unknown("float32 n,2")]),
        "int32[n,2]"
    );
    assert_eq!(infer(to(DType::U4), &[unknown("float4e2m1 3")]), "uint4[3]");
    assert_eq!(
        refuse(to(DType::U8), &[unknown("int4 3")]),
        ErrorCode::DType
    );
    assert_eq!(
        refuse(to(DType::I32), &[unknown("string 3")]),
        ErrorCode::DType
    );
}

#[test]
fn narrow_types_are_not_computed_with() {
    for dtype in ["float8e4m3fn", "float4e2m1", "int4", "string"] {
        let inputs = [
            unknown(&format!("{dtype} 3")),
            unknown(&format!("{dtype} 3")),
        ];
        assert_eq!(
            refuse(Binary::new(BinaryKind::Add), &inputs),
            ErrorCode::DType
        );
        assert_eq!(
            refuse(Unary(UnaryKind::Neg), &inputs[..1]),
            ErrorCode::DType
        );
        if dtype != "string" {
            assert_eq!(refuse(NonZero, &inputs[..1]), ErrorCode::DType);
        }
        assert_eq!(infer(Binary::new(BinaryKind::Equal), &inputs), "bool[3]");
        assert_eq!(
            infer(Transpose { perm: vec![] }, &inputs[..1]),
            format!("{dtype}[3]")
        );
    }
}

#[test]
fn a_text_is_zero_where_it_is_empty_and_a_complex_number_where_both_parts_are() {
    let data = texts(&["", "a", "", "é"]);
    let data = data.unwrap().value.unwrap();
    assert_eq!(NonZero::positions(&meter(), &data).unwrap(), [1, 3]);
    let parts = [0f32, -0.0, 0.0, 1.0, -2.0, 0.0];
    let bytes: Vec<u8> = parts.iter().flat_map(|v| v.to_le_bytes()).collect();
    let data = Tensor::from_raw(DType::C64, &[3, 1], &bytes).unwrap();
    assert_eq!(NonZero::positions(&meter(), &data).unwrap(), [1, 2, 0, 0]);
}

#[test]
fn distinct_texts_are_in_their_order() {
    let op = Unique {
        axis: None,
        sorted: true,
    };
    let data = texts(&["b", "a", "b", "é"]);
    let parts = op
        .find(&meter(), data.unwrap().value.as_ref().unwrap())
        .unwrap();
    assert_eq!(
        (parts.first, parts.inverse),
        (vec![1, 0, 3], vec![1, 0, 1, 2])
    );
}

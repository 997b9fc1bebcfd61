//! Strings.

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{CaseChange, RegexFullMatch, StringConcat, StringNormalizer, StringSplit};

use super::{Family, OpTable};
use crate::onnx::builder::{NodeBuilder, unknown};

pub static OPERATORS: Family = OpTable(&[
    ("RegexFullMatch", |b| {
        let pattern = b.text_or("pattern", "")?.to_string();
        b.emit_same(RegexFullMatch { pattern })
    }),
    ("StringConcat", |b| b.emit_same(StringConcat)),
    ("StringNormalizer", normalizer),
    ("StringSplit", |b| {
        let delimiter = b.text_or("delimiter", "")?.to_string();
        let most = match b.int("maxsplit")? {
            Some(_) => Some(b.count("maxsplit", None)?),
            None => None,
        };
        b.emit_same(StringSplit { delimiter, most })
    }),
]);

fn normalizer(b: &mut NodeBuilder) -> Result<()> {
    // In these languages the letter i, or a dot on it, changes otherwise.
    let locale = b.text_or("locale", "")?;
    if ["tr", "az", "lt"].iter().any(|l| locale.starts_with(l)) {
        return Err(unsupported(format!("the locale {locale}")));
    }
    let case = match b.text_or("case_change_action", "NONE")? {
        "NONE" => CaseChange::None,
        "LOWER" => CaseChange::Lower,
        "UPPER" => CaseChange::Upper,
        other => return Err(unknown("case_change_action", other)),
    };
    let op = StringNormalizer {
        case,
        case_sensitive: b.int_or("is_case_sensitive", 0)? != 0,
        stopwords: b.texts("stopwords")?.unwrap_or_default(),
    };
    b.emit_same(op)
}

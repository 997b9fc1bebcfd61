//! The operators of ONNX: which mapping brings each into the graph. A file holds a family.

mod attention;
mod control;
mod conv;
pub mod custom;
mod generate;
mod index;
mod linear_attention;
mod loss;
mod matmul;
mod microsoft;
mod ml;
mod movement;
mod ngrams;
mod norm;
mod picture;
mod pointwise;
mod pool;
mod quant;
mod random;
mod recurrent;
mod reduce;
mod resize;
mod rotary;
mod sequence;
mod signal;
mod text;
mod training;

use kilim_core::error::Result;

use super::builder::NodeBuilder;
use crate::build::OpTable;

pub use ml::DOMAIN as ML_DOMAIN;

/// Brings a node into the graph.
pub type MapFn = fn(&mut NodeBuilder) -> Result<()>;

/// The operators of one file.
type Family = OpTable<&'static str, MapFn>;

/// Everything that can be imported, by domains; the standard one has the empty name.
static FAMILIES: &[(&str, &Family)] = &[
    ("", &pointwise::OPERATORS),
    ("", &movement::OPERATORS),
    ("", &index::OPERATORS),
    ("", &reduce::OPERATORS),
    ("", &conv::OPERATORS),
    ("", &pool::OPERATORS),
    ("", &matmul::OPERATORS),
    ("", &norm::OPERATORS),
    ("", &quant::OPERATORS),
    ("", &random::OPERATORS),
    ("", &picture::OPERATORS),
    ("", &resize::OPERATORS),
    ("", &recurrent::OPERATORS),
    ("", &generate::OPERATORS),
    ("", &control::OPERATORS),
    ("", &sequence::OPERATORS),
    ("", &attention::OPERATORS),
    ("", &linear_attention::OPERATORS),
    ("", &loss::OPERATORS),
    ("", &signal::OPERATORS),
    ("", &text::OPERATORS),
    ("", &rotary::OPERATORS),
    ("", &ngrams::OPERATORS),
    ("", &microsoft::norm::AS_STANDARD),
    (microsoft::DOMAIN, &microsoft::quantized::OPERATORS),
    (microsoft::DOMAIN, &microsoft::packed::OPERATORS),
    (microsoft::DOMAIN, &microsoft::lstm::OPERATORS),
    (microsoft::DOMAIN, &microsoft::early::OPERATORS),
    (microsoft::DOMAIN, &microsoft::experts::OPERATORS),
    (microsoft::DOMAIN, &microsoft::fused::OPERATORS),
    (microsoft::DOMAIN, &microsoft::gelu::OPERATORS),
    (microsoft::DOMAIN, &microsoft::norm::OPERATORS),
    (microsoft::DOMAIN, &microsoft::recurrent::OPERATORS),
    (microsoft::DOMAIN, &microsoft::residual::OPERATORS),
    (microsoft::DOMAIN, &microsoft::rotary::OPERATORS),
    (microsoft::DOMAIN, &microsoft::encoder::OPERATORS),
    (microsoft::DOMAIN, &microsoft::multi_head::OPERATORS),
    (microsoft::DOMAIN, &microsoft::group_query::OPERATORS),
    (ml::DOMAIN, &ml::features::OPERATORS),
    (ml::DOMAIN, &ml::encode::OPERATORS),
    (ml::DOMAIN, &ml::linear::OPERATORS),
    (ml::DOMAIN, &ml::svm::OPERATORS),
    (ml::DOMAIN, &ml::trees::OPERATORS),
    (training::DOMAIN, &training::OPERATORS),
    (attention::PREVIEW_DOMAIN, &attention::PREVIEW),
];

/// What brings an operator into the graph; the standard domain has the empty name.
pub fn find(domain: &str, op: &str) -> Option<MapFn> {
    let families = FAMILIES.iter().filter(|(of, _)| *of == domain);
    let mut found = families.filter_map(|(_, family)| family.find(op));
    found.next().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_stands_once_and_in_order() {
        let mut all = Vec::new();
        for (domain, family) in FAMILIES {
            assert_eq!(family.misplaced(), None, "in the domain `{domain}`");
            all.extend(family.0.iter().map(|(op, _)| (domain, op)));
        }
        all.sort();
        let twice = all.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None);
    }

    /// `docs/onnxruntime.md` has a row for every operator of onnxruntime.
    #[test]
    fn the_document_lists_the_operators_of_onnxruntime() {
        let families = FAMILIES.iter().filter(|(of, _)| *of == microsoft::DOMAIN);
        let there = families.flat_map(|(_, family)| family.0.iter());
        let missing = &microsoft::missing::OPERATORS;
        assert_eq!(missing.misplaced(), None);
        let mut rows: Vec<_> = there.map(|(op, _)| (*op, "yes")).collect();
        rows.extend(missing.0.iter().copied());
        rows.sort_unstable();
        let twice = rows.windows(2).find(|pair| pair[0].0 == pair[1].0);
        assert_eq!(twice, None);
        let rows: String = rows
            .iter()
            .map(|(op, why)| format!("| {op} | {why} |\n"))
            .collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/onnxruntime.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (head, _) = text.split_once("|---|---|\n").unwrap();
        let said = format!("{head}|---|---|\n{rows}");
        if std::env::var_os("KILIM_WRITE_DOCS").is_some() {
            std::fs::write(path, &said).unwrap();
        } else {
            assert!(
                text == said,
                "KILIM_WRITE_DOCS=1 cargo test -p kilim-formats onnxruntime writes {path} anew"
            );
        }
    }
}

//! Tokenizers of SentencePiece (`tokenizer.ggml.model` is `llama`): words with scores, bytes where no word fits. Two neighbours become the
//! word with the best score (`llm_tokenizer_spm` in `src/llama-vocab.cpp`).

use std::collections::HashMap;

use kilim_core::Result;
use kilim_formats::gguf::{Metadata, Value};
use serde_json::json;

use super::vocabulary::Vocabulary;
use super::{added, invalid, special};

/// What stands for a space.
const SPACE: &str = "\u{2581}";

/// Bytes of a word at most. The time to find how words are joined grows with the square of their lengths.
const LONGEST: usize = 1 << 10;

/// The tokenizer in the form of `tokenizer.json`.
///
/// # Errors
/// `InvalidModel` where scores are no numbers, or not one for each word.
pub fn tokenizer(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<serde_json::Value> {
    let prefix = metadata
        .flag("tokenizer.ggml.add_space_prefix")?
        .unwrap_or(true);
    let unknown = special(metadata, vocabulary, "unknown")?;
    let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": SPACE});
    let mut normalizers = Vec::new();
    let mut decoders = vec![
        json!({"type": "Replace", "pattern": {"String": SPACE}, "content": " "}),
        json!({"type": "ByteFallback"}),
        json!({"type": "Fuse"}),
    ];
    if prefix {
        normalizers.push(json!({"type": "Prepend", "prepend": SPACE}));
        decoders.push(json!({"type": "Strip", "content": " ", "start": 1, "stop": 0}));
    }
    normalizers.push(replace);
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": vocabulary.added(),
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": null,
        "post_processor": added(metadata, vocabulary, true)?,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": unknown.map(|id| vocabulary.words[id]),
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": true,
            "byte_fallback": true,
            "ignore_merges": false,
            "vocab": vocabulary.numbers(),
            "merges": merges(metadata, vocabulary)?,
        },
    }))
}

/// Pairs of words that become a word, the best first.
///
/// # Errors
/// `InvalidModel` where scores are no numbers, or a word is very long.
fn merges<'a>(metadata: &Metadata, vocabulary: &Vocabulary<'a>) -> Result<Vec<[&'a str; 2]>> {
    let words = &vocabulary.words;
    let scores = match metadata.list("tokenizer.ggml.scores")? {
        Some(list) if list.count() == words.len() => list
            .values()
            .map(|value| match value {
                Value::Float(score) if !score.is_nan() => Ok(score),
                _ => Err(invalid("the scores of words are no numbers")),
            })
            .collect::<Result<Vec<f64>>>()?,
        Some(_) => return Err(invalid("not every word has a score")),
        None => (0..words.len()).map(|id| -(id as f64)).collect(),
    };
    let joined = |id: &usize| vocabulary.is_joined(*id);
    let ids: HashMap<&str, usize> = words
        .iter()
        .enumerate()
        .map(|(id, text)| (*text, id))
        .collect();
    let mut merges = Vec::new();
    for id in (0..words.len()).filter(joined) {
        let text = words[id];
        if text.len() > LONGEST {
            return Err(invalid("a word of a tokenizer is too long")
                .with_expected(format!("at most {LONGEST} bytes"))
                .with_got(format!("{} bytes", text.len())));
        }
        for (at, _) in text.char_indices().skip(1) {
            let parts = text.split_at(at);
            if ids.contains_key(parts.0) && ids.contains_key(parts.1) {
                merges.push((scores[id], id, [parts.0, parts.1]));
            }
        }
    }
    merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    Ok(merges.into_iter().map(|(_, _, parts)| parts).collect())
}

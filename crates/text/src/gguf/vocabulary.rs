//! The words of a file, and the kind of each.

use kilim_core::Result;
use kilim_formats::gguf::{List, Metadata, Value};
use serde_json::json;

use super::invalid;

/// Kinds of words (`enum llama_token_type` in `include/llama.h`).
const UNKNOWN: i64 = 2;
const CONTROL: i64 = 3;
const USER_DEFINED: i64 = 4;
const UNUSED: i64 = 5;
const BYTE: i64 = 6;

/// The words of a file by their numbers.
pub struct Vocabulary<'a> {
    pub words: Vec<&'a str>,
    /// The kind of each; of files that do not say it, none.
    kinds: Vec<i64>,
}

/// The texts of a list.
///
/// # Errors
/// `InvalidModel` where it has anything else.
pub fn texts<'a>(list: List<'a>) -> Result<Vec<&'a str>> {
    let texts = list.values().map(|value| match value {
        Value::Text(text) => Ok(text),
        _ => Err(invalid("the words of a tokenizer are no texts")),
    });
    texts.collect()
}

impl<'a> Vocabulary<'a> {
    /// Reads them.
    ///
    /// # Errors
    /// `InvalidModel` where the file has none, or not a kind for each.
    pub fn read(metadata: &Metadata<'a>) -> Result<Vocabulary<'a>> {
        let words = metadata.list("tokenizer.ggml.tokens")?;
        let words = words.ok_or_else(|| invalid("the file has no tokenizer"))?;
        let words = texts(words)?;
        let kinds = match metadata.list("tokenizer.ggml.token_type")? {
            Some(list) if list.count() == words.len() => list
                .values()
                .map(|value| match value {
                    Value::Int(kind) => Ok(kind),
                    _ => Err(invalid("the kinds of words are no numbers")),
                })
                .collect::<Result<_>>()?,
            Some(_) => return Err(invalid("not every word has a kind")),
            None => Vec::new(),
        };
        Ok(Vocabulary { words, kinds })
    }

    fn kind(&self, id: usize) -> Option<i64> {
        self.kinds.get(id).copied()
    }

    /// Whether a word stands for itself in texts, whatever is around it.
    pub fn is_added(&self, id: usize) -> bool {
        matches!(self.kind(id), Some(CONTROL | USER_DEFINED | UNKNOWN))
    }

    /// Whether a word is made of shorter ones.
    pub fn is_joined(&self, id: usize) -> bool {
        !matches!(self.kind(id), Some(CONTROL | UNUSED | BYTE | UNKNOWN))
    }

    /// The words with their numbers, as `tokenizer.json` has them.
    pub fn numbers(&self) -> serde_json::Value {
        let words = self.words.iter().enumerate();
        serde_json::Value::Object(
            words
                .map(|(id, text)| (text.to_string(), id.into()))
                .collect(),
        )
    }

    /// The words that stand for themselves, as `tokenizer.json` has them. Control words leave no text.
    pub fn added(&self) -> serde_json::Value {
        let added = (0..self.words.len()).filter(|&id| self.is_added(id));
        let word = |id: usize| {
            json!({
                "id": id, "content": self.words[id], "special": self.kind(id) != Some(USER_DEFINED),
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
            })
        };
        added.map(word).collect()
    }
}

//! Tokenizers that join bytes (`tokenizer.ggml.model` is `gpt2`): texts are split by a pattern, and in each part neighbours are joined
//! by a list.

use kilim_core::Result;
use kilim_core::error::unsupported;
use kilim_formats::gguf::Metadata;
use serde_json::{Value, json};

use super::vocabulary::{Vocabulary, texts};
use super::{added, invalid};

/// How texts are split before bytes are joined.
struct Splits {
    /// The name that files give it (`tokenizer.ggml.pre`).
    name: &'static str,
    pattern: Pattern,
    /// Whether a part that is a word is left whole, whatever the list says.
    whole_words: bool,
    /// Whether texts begin with the word that begins texts, unless the file says otherwise.
    begins: bool,
}

enum Pattern {
    /// The pattern of GPT-2.
    Gpt2,
    /// The pattern of GPT-2, with each digit by itself.
    Gpt2Digits,
    Own(&'static str),
}

/// Parts of at most three digits, contractions in any case (tiktoken's `cl100k_base`).
const THREE_DIGITS: Pattern = Pattern::Own(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Each digit by itself, contractions in any case (Qwen 2's `tokenizer.json`).
const ONE_DIGIT: Pattern = Pattern::Own(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

/// Parts end where capital letters follow small ones (tiktoken's `o200k_base`).
const CASES: Pattern = Pattern::Own(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

const fn splits(name: &'static str, pattern: Pattern) -> Splits {
    Splits {
        name,
        pattern,
        whole_words: false,
        begins: false,
    }
}

const fn llama3(name: &'static str) -> Splits {
    Splits {
        whole_words: true,
        begins: true,
        ..splits(name, THREE_DIGITS)
    }
}

/// Ways to split by name, in ascending order (`llm_tokenizer_bpe` and `llama_vocab::impl::load` in `src/llama-vocab.cpp`).
static SPLITS: [Splits; 17] = [
    splits("dbrx", THREE_DIGITS),
    splits("deepseek-r1-qwen", ONE_DIGIT),
    llama3("falcon3"),
    splits("gpt-2", Pattern::Gpt2),
    splits("gpt-4o", CASES),
    llama3("lfm2"),
    llama3("llama-bpe"),
    llama3("llama-v3"),
    llama3("llama3"),
    splits("llama4", CASES),
    splits("mpt", Pattern::Gpt2),
    splits("olmo", Pattern::Gpt2),
    splits("phi-2", Pattern::Gpt2),
    splits("qwen2", ONE_DIGIT),
    splits("smaug-bpe", THREE_DIGITS),
    splits("smollm", Pattern::Gpt2Digits),
    splits("starcoder", Pattern::Gpt2Digits),
];

impl Splits {
    /// The ways of a file.
    fn of(metadata: &Metadata) -> Result<&'static Splits> {
        let name = metadata.text("tokenizer.ggml.pre")?.unwrap_or("default");
        let found = SPLITS.binary_search_by(|splits| splits.name.cmp(name));
        found.map(|i| &SPLITS[i]).map_err(|_| {
            let known: Vec<_> = SPLITS.iter().map(|splits| splits.name).collect();
            let e = unsupported(format!("a tokenizer that splits texts as `{name}` does"));
            e.with_expected(known.join(", "))
        })
    }

    fn pre_tokenizer(&self) -> Value {
        let bytes = |use_regex: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex});
        let first = match self.pattern {
            Pattern::Gpt2 => return bytes(true),
            Pattern::Gpt2Digits => json!({"type": "Digits", "individual_digits": true}),
            Pattern::Own(pattern) => {
                json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
            }
        };
        let second = bytes(matches!(self.pattern, Pattern::Gpt2Digits));
        json!({"type": "Sequence", "pretokenizers": [first, second]})
    }
}

/// The tokenizer in the form of `tokenizer.json`.
///
/// # Errors
/// `Unsupported` where texts are split in a way that Kilim does not have, `InvalidModel` where the list of joins is garbled.
pub fn tokenizer(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Value> {
    let splits = Splits::of(metadata)?;
    let merges = metadata.list("tokenizer.ggml.merges")?;
    let merges = texts(merges.ok_or_else(|| invalid("the tokenizer has no list of joins"))?)?;
    let pairs = merges.into_iter().map(|pair| {
        let parts = pair.split_once(' ');
        parts
            .map(|(a, b)| [a, b])
            .ok_or_else(|| invalid("a join that is not of two words"))
    });
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": vocabulary.added(),
        "normalizer": null,
        "pre_tokenizer": splits.pre_tokenizer(),
        "post_processor": added(metadata, vocabulary, splits.begins)?,
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": splits.whole_words,
            "vocab": vocabulary.numbers(),
            "merges": pairs.collect::<Result<Vec<_>>>()?,
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_split_are_sorted() {
        assert!(SPLITS.is_sorted_by(|a, b| a.name < b.name));
    }
}

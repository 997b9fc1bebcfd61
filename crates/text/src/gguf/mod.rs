//! What a GGUF file says of its words: the tokenizer, the chat template and the words that end a text.

mod byte_level;
mod pieces;
mod vocabulary;

use kilim_core::error::unsupported;
use kilim_core::{Error, ErrorCode, Result};
use kilim_formats::gguf::{Header, Metadata, context, with_header};
use serde_json::{Value, json};

use crate::settings::{Ids, Settings};
use vocabulary::Vocabulary;

/// What the metadata of a file say of a language model.
#[derive(Clone, Debug)]
pub struct GgufText {
    /// The tokenizer in the form of `tokenizer.json`.
    pub tokenizer: String,
    /// The template and the special words that it writes, in the form of `tokenizer_config.json`.
    pub templates: String,
    /// The words that end a text, and how many the model can look back on.
    pub settings: Settings,
}

/// Keys of words that end a text: of the text, of a turn, of a message.
const ENDS: [&str; 3] = ["eos", "eot", "eom"];

/// Control words that end a turn, by their text. Older files do not name them by keys (`llama_vocab::impl::load` in
/// `src/llama-vocab.cpp`).
const END_TEXTS: [&str; 9] = [
    "<end_of_turn>",
    "<|end_of_text|>",
    "<|end|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "<EOT>",
    "_<EOT>",
];

impl GgufText {
    /// Reads what a file of `size` bytes says; `begin` fills a buffer with its beginning.
    ///
    /// # Errors
    /// `InvalidModel` where the file is garbled, `Unsupported` for a tokenizer that Kilim does not have, and those of `begin`.
    pub fn read(size: usize, begin: &dyn Fn(&mut [u8]) -> Result<()>) -> Result<GgufText> {
        with_header(size as u64, begin, GgufText::of)
    }

    /// Reads them from the beginning of a file, at least as much as stands in front of the data of tensors.
    ///
    /// # Errors
    /// Those of [`GgufText::read`].
    pub fn of_beginning(bytes: &[u8]) -> Result<GgufText> {
        Header::read(bytes).and_then(|header| GgufText::of(&header))
    }

    fn of(header: &Header) -> Result<GgufText> {
        let metadata = &header.metadata;
        let vocabulary = Vocabulary::read(metadata)?;
        let model = metadata.text("tokenizer.ggml.model")?;
        let made = match model {
            Some("gpt2") => byte_level::tokenizer(metadata, &vocabulary)?,
            Some("llama") => pieces::tokenizer(metadata, &vocabulary)?,
            other => {
                let name = other.unwrap_or("none");
                let e = unsupported(format!("the tokenizer `{name}` of a GGUF file"));
                return Err(e.with_expected("gpt2, llama"));
            }
        };
        Ok(GgufText {
            tokenizer: made.to_string(),
            templates: templates(metadata, &vocabulary)?.to_string(),
            settings: Settings {
                end: ends(metadata, &vocabulary)?,
                context: Some(context(header)?),
                ..Settings::default()
            },
        })
    }
}

/// A word that a key of the tokenizer names, `bos` for instance.
fn special(metadata: &Metadata, vocabulary: &Vocabulary, what: &str) -> Result<Option<usize>> {
    let id = metadata.count(&format!("tokenizer.ggml.{what}_token_id"))?;
    // Some files say that there is none by the largest number.
    Ok(id.filter(|&id| id < vocabulary.words.len()))
}

fn templates(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Value> {
    let word = |what| {
        let id = special(metadata, vocabulary, what)?;
        Ok::<_, Error>(id.map(|id| vocabulary.words[id]))
    };
    Ok(json!({
        "chat_template": metadata.text("tokenizer.chat_template")?,
        "bos_token": word("bos")?,
        "eos_token": word("eos")?,
    }))
}

fn ends(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Ids> {
    let mut ends = Vec::new();
    for what in ENDS {
        ends.extend(special(metadata, vocabulary, what)?);
    }
    let control = vocabulary.words.iter().enumerate();
    let control = control.filter(|(id, text)| vocabulary.is_added(*id) && END_TEXTS.contains(text));
    ends.extend(control.map(|(id, _)| id));
    ends.sort_unstable();
    ends.dedup();
    let ids = ends
        .into_iter()
        .map(u32::try_from)
        .collect::<Result<_, _>>();
    ids.map(Ids::Several).map_err(|_| invalid("too many words"))
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

/// What puts the words before and behind each text that the file asks for; nothing where it asks for none.
fn added(metadata: &Metadata, vocabulary: &Vocabulary, begins: bool) -> Result<Value> {
    let asked = |what: &str, usual: bool| {
        let asked = metadata.flag(&format!("tokenizer.ggml.add_{what}_token"))?;
        match asked.unwrap_or(usual) {
            true => special(metadata, vocabulary, what),
            false => Ok(None),
        }
    };
    let (bos, eos) = (asked("bos", begins)?, asked("eos", false)?);
    if bos.is_none() && eos.is_none() {
        return Ok(Value::Null);
    }
    let special = |id: usize| json!({"SpecialToken": {"id": vocabulary.words[id], "type_id": 0}});
    let sequence = |name: &str| {
        let text = json!({"Sequence": {"id": name, "type_id": 0}});
        let parts = [bos.map(special), Some(text), eos.map(special)];
        parts.into_iter().flatten().collect::<Vec<Value>>()
    };
    let words = [bos, eos].into_iter().flatten();
    let words = words.map(|id| {
        let text = vocabulary.words[id];
        let word = json!({"id": text, "ids": [id], "tokens": [text]});
        (text.to_string(), word)
    });
    let pair = [sequence("A"), sequence("B")].concat();
    Ok(json!({
        "type": "TemplateProcessing",
        "single": sequence("A"),
        "pair": pair,
        "special_tokens": Value::Object(words.collect()),
    }))
}

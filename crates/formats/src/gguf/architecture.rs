//! Which models files of llama.cpp hold (`src/llama-model.cpp`).

use kilim_core::error::{Result, unsupported};

use super::invalid;
use super::metadata::Metadata;
use crate::build::OpTable;
use crate::language::{Architecture, GEMMA, GEMMA_2, GEMMA_3, LLAMA, QWEN, Windows};

/// What a file holds.
#[derive(Debug)]
pub enum Model {
    /// What makes a text word by word.
    Decoder(Architecture),
    /// What makes vectors of a whole text.
    Encoder,
}

/// The models by `general.architecture`.
pub static ARCHITECTURES: OpTable<&str, Model> = OpTable(&[
    ("bert", Model::Encoder),
    ("gemma", Model::Decoder(GEMMA)),
    ("gemma2", Model::Decoder(GEMMA_2)),
    ("gemma3", Model::Decoder(GEMMA_3)),
    (
        "lfm2",
        Model::Decoder(Architecture {
            last_norm: "token_embd_norm",
            ..QWEN
        }),
    ),
    ("llama", Model::Decoder(LLAMA)),
    (
        "phi3",
        Model::Decoder(Architecture {
            windows: Windows::All,
            ..QWEN
        }),
    ),
    ("qwen2", Model::Decoder(QWEN)),
    ("qwen3", Model::Decoder(QWEN)),
    (
        "smollm3",
        Model::Decoder(Architecture {
            unturned: 4,
            ..LLAMA
        }),
    ),
]);

/// The model of a file, with the name of its architecture.
///
/// # Errors
/// `Unsupported` where Kilim does not have it, `InvalidModel` where the file does not say it.
pub fn model_of<'a>(metadata: &Metadata<'a>) -> Result<(&'a str, &'static Model)> {
    let name = metadata.text("general.architecture")?;
    let name = name.ok_or_else(|| invalid("the key `general.architecture` is missing"))?;
    let found = ARCHITECTURES.find(name);
    found.map(|model| (name, model)).ok_or_else(|| {
        let known: Vec<_> = ARCHITECTURES.0.iter().map(|(name, _)| *name).collect();
        let e = unsupported(format!("the architecture `{name}`"));
        e.with_expected(known.join(", "))
    })
}

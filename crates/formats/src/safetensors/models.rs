//! Which models of transformers Kilim has the network of.

use kilim_core::error::{Result, unsupported};

use super::config::Config;
use super::invalid;
use crate::build::OpTable;
use crate::language::{Architecture, GEMMA, GEMMA_2, GEMMA_3, QWEN, Windows};

/// A model, and how its tensors and settings differ from those of others.
#[derive(Debug)]
pub struct Model {
    pub architecture: Architecture,
    /// The base of the angles where the settings do not say it: that of transformers' class.
    pub base: f64,
    /// Norms multiply by a number that is larger by one than what the file has.
    pub more_by_one: bool,
    /// Each half of a layer has a norm behind it, too.
    pub norms_behind: bool,
    /// Keys that the settings must have, since the class has something else than nothing for them.
    pub needed: &'static [&'static str],
}

const PLAIN: Model = Model {
    architecture: QWEN,
    base: 10_000.0,
    more_by_one: false,
    norms_behind: false,
    needed: &[],
};

/// A model that looks back on windows in every layer, where its settings name one.
const WINDOWED: Model = Model {
    architecture: Architecture {
        windows: Windows::All,
        ..QWEN
    },
    ..PLAIN
};

/// The models by `model_type`.
pub static MODELS: OpTable<&str, Model> = OpTable(&[
    (
        "gemma",
        Model {
            architecture: GEMMA,
            more_by_one: true,
            ..PLAIN
        },
    ),
    (
        "gemma2",
        Model {
            architecture: GEMMA_2,
            more_by_one: true,
            norms_behind: true,
            needed: &[
                "attn_logit_softcapping",
                "final_logit_softcapping",
                "query_pre_attn_scalar",
                "sliding_window",
            ],
            ..PLAIN
        },
    ),
    (
        "gemma3_text",
        Model {
            architecture: GEMMA_3,
            base: 1_000_000.0,
            more_by_one: true,
            norms_behind: true,
            needed: &["query_pre_attn_scalar", "sliding_window"],
        },
    ),
    ("llama", PLAIN),
    (
        "mistral",
        Model {
            needed: &["sliding_window"],
            ..WINDOWED
        },
    ),
    ("phi3", WINDOWED),
    ("qwen2", PLAIN),
    ("qwen3", PLAIN),
    (
        "smollm3",
        Model {
            architecture: Architecture {
                unturned: 4,
                ..QWEN
            },
            base: 2_000_000.0,
            ..PLAIN
        },
    ),
]);

/// The model that settings are of.
///
/// # Errors
/// `Unsupported` where Kilim does not have it, `InvalidModel` where they do not say it, or lack a key of it.
pub fn model_of(config: &Config) -> Result<&'static Model> {
    let name = config.text("model_type")?;
    let name = name.ok_or_else(|| invalid("the key `model_type` is missing"))?;
    let model = MODELS.find(name.as_str()).ok_or_else(|| {
        let known: Vec<_> = MODELS.0.iter().map(|(name, _)| *name).collect();
        let e = unsupported(format!("the model type `{name}`"));
        e.with_expected(known.join(", "))
            .with_hint("open the model's .onnx file, or export it with Hugging Face Optimum")
    })?;
    for key in model.needed {
        if !config.has(key) {
            return Err(invalid(format!("the key `{key}` is missing")));
        }
    }
    Ok(model)
}

//! What the decoders of llama.cpp have in common, and in what they differ (`src/llama-model.cpp`, `src/models/`).

use kilim_core::error::{Result, unsupported};

use super::invalid;
use super::metadata::Metadata;
use crate::build::OpTable;

/// A decoder of attention, or a short convolution, and a gated product in each layer. Biases, norms of heads and norms behind a layer's halves are there
/// where the file has them.
#[derive(Debug)]
pub struct Architecture {
    /// Which numbers of a head turn together (`llama_model_rope_type`).
    pub pairs: Pairs,
    pub gate: Gate,
    /// Rows of the embedding are multiplied by the root of their size.
    pub scaled_embedding: bool,
    pub windows: Windows,
    /// How many layers the model has whose scores are divided by the root of its width a head, not of a head's size.
    pub scores_by_width: Option<usize>,
    /// Every so many layers one does not turn its heads; never, where it is 0.
    pub unturned: usize,
    /// The tensor of the norm in front of the head, where it has another name than `output_norm`.
    pub last_norm: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Numbers beside each other.
    Neighbours,
    /// A number of the first half with one of the second.
    Halves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Silu,
    /// Gelu by the hyperbolic tangent.
    Gelu,
}

/// Which layers look back on a window of words, as wide as `attention.sliding_window` says.
#[derive(Clone, Copy, Debug)]
pub enum Windows {
    None,
    All,
    /// All but every so manyth layer; those that have one turn by angles of another base, unless the file names one.
    AllBut {
        every: usize,
        base: Option<f64>,
    },
}

/// The plainest decoder.
const LLAMA: Architecture = Architecture {
    pairs: Pairs::Neighbours,
    gate: Gate::Silu,
    scaled_embedding: false,
    windows: Windows::None,
    scores_by_width: None,
    unturned: 0,
    last_norm: "output_norm",
};

const QWEN: Architecture = Architecture {
    pairs: Pairs::Halves,
    ..LLAMA
};

const GEMMA: Architecture = Architecture {
    gate: Gate::Gelu,
    scaled_embedding: true,
    ..QWEN
};

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
    (
        "gemma2",
        Model::Decoder(Architecture {
            windows: Windows::AllBut {
                every: 2,
                base: None,
            },
            scores_by_width: Some(46),
            ..GEMMA
        }),
    ),
    (
        "gemma3",
        Model::Decoder(Architecture {
            windows: Windows::AllBut {
                every: 6,
                base: Some(10_000.0),
            },
            scores_by_width: Some(62),
            ..GEMMA
        }),
    ),
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

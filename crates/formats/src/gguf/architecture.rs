//! What the decoders of llama.cpp have in common, and in what they differ (`src/llama-model.cpp`, `src/models/`).

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
    /// Of so many layers, the scores of attention are divided by the root of the model's width a head instead of the head's size.
    pub scores_by_width: Option<usize>,
    /// Every so many layers one does not turn its heads; never, where it is 0.
    pub unturned: usize,
    /// The tensor of the norm in front of the head, where it has another name than `output_norm`.
    pub last_norm: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// Those beside each other.
    Neighbours,
    /// One of the first half with one of the second.
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

/// The architectures by `general.architecture`.
pub static ARCHITECTURES: OpTable<&str, Architecture> = OpTable(&[
    ("gemma", GEMMA),
    (
        "gemma2",
        Architecture {
            windows: Windows::AllBut {
                every: 2,
                base: None,
            },
            scores_by_width: Some(46),
            ..GEMMA
        },
    ),
    (
        "gemma3",
        Architecture {
            windows: Windows::AllBut {
                every: 6,
                base: Some(10_000.0),
            },
            scores_by_width: Some(62),
            ..GEMMA
        },
    ),
    (
        "lfm2",
        Architecture {
            last_norm: "token_embd_norm",
            ..QWEN
        },
    ),
    ("llama", LLAMA),
    (
        "phi3",
        Architecture {
            windows: Windows::All,
            ..QWEN
        },
    ),
    ("qwen2", QWEN),
    ("qwen3", QWEN),
    (
        "smollm3",
        Architecture {
            unturned: 4,
            ..LLAMA
        },
    ),
]);

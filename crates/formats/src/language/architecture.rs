//! What the decoders of llama.cpp have in common, and in what they differ (`src/llama-model.cpp`, `src/models/`).

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

/// The plainest decoder, with the numbers of a pair where llama.cpp puts them.
pub const LLAMA: Architecture = Architecture {
    pairs: Pairs::Neighbours,
    gate: Gate::Silu,
    scaled_embedding: false,
    windows: Windows::None,
    scores_by_width: None,
    unturned: 0,
    last_norm: "output_norm",
};

/// The plainest decoder with the numbers of a pair where transformers has them.
pub const QWEN: Architecture = Architecture {
    pairs: Pairs::Halves,
    ..LLAMA
};

/// A decoder that multiplies its words, with Gelu in the gated product.
pub const GEMMA: Architecture = Architecture {
    gate: Gate::Gelu,
    scaled_embedding: true,
    ..QWEN
};

pub const GEMMA_2: Architecture = Architecture {
    windows: Windows::AllBut {
        every: 2,
        base: None,
    },
    scores_by_width: Some(46),
    ..GEMMA
};

pub const GEMMA_3: Architecture = Architecture {
    windows: Windows::AllBut {
        every: 6,
        base: Some(10_000.0),
    },
    scores_by_width: Some(62),
    ..GEMMA
};

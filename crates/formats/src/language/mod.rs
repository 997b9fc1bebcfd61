//! The networks of language models, which several formats have the weights of: how large they are and where each tensor lies,
//! the formats say.

mod angles;
mod architecture;
mod attention;
pub mod blocks;
mod convolution;
mod decoder;
mod matrix;
mod sizes;
mod weights;

use kilim_core::error::{Error, ErrorCode};

pub use architecture::{Architecture, GEMMA, GEMMA_2, GEMMA_3, Gate, LLAMA, QWEN, Windows};
pub use decoder::graph;
pub use sizes::{MOST_PLACES, MOST_TURNED, Sizes};
pub use weights::{Described, Tensors, Weights};

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

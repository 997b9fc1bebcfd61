//! Text from language models.
//!
//! A [`Folder`] finds the model, the tokenizer and the settings that lie together; a [`Decoder`] runs the model's
//! session word by word and keeps its caches; a [`Sampler`] chooses words; [`generate`] brings them together.

mod cache;
mod chat;
mod decoder;
mod folder;
mod generate;
mod sampler;
mod settings;
mod stop;
mod tokenizer;

pub use chat::{Chat, Message};
pub use decoder::Decoder;
pub use folder::Folder;
pub use generate::{Ended, Generated, Options, generate};
pub use sampler::{Sampler, Sampling};
pub use settings::{Ids, Settings};
pub use tokenizer::Tokenizer;

//! Text from language models.
//!
//! A [`Folder`] finds the model, the tokenizer and the settings that lie together; a [`Decoder`] runs the model's
//! session word by word and keeps its caches; a [`Sampler`] chooses words; [`generate`] brings them together.

mod cache;
#[cfg(feature = "folder")]
mod chat;
mod decoder;
#[cfg(feature = "folder")]
mod folder;
#[cfg(feature = "folder")]
mod generate;
mod gguf;
mod sampler;
mod settings;
#[cfg(feature = "folder")]
mod stop;
#[cfg(feature = "folder")]
mod tokenizer;

#[cfg(feature = "folder")]
pub use chat::{Chat, Message};
pub use decoder::Decoder;
#[cfg(feature = "folder")]
pub use folder::{Begin, Folder, with_beginning};
#[cfg(feature = "folder")]
pub use generate::{Ended, Generated, Options, generate};
pub use gguf::GgufText;
pub use sampler::{Sampler, Sampling};
pub use settings::{CacheNames, Files, Ids, PortNames, Settings, Windows, parse_settings};
#[cfg(feature = "folder")]
pub use tokenizer::Tokenizer;

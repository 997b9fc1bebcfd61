//! Text from speech.
//!
//! A [`Folder`] finds the encoder, the decoder, the tokenizer and the settings that lie together, or are one file; a [`Listener`] runs both sessions on one
//! window of sound, a [`Writer`] the decoder's alone; [`transcribe`] goes through a recording.

#[cfg(feature = "folder")]
mod folder;
mod ggml;
mod listener;
mod mel;
mod rules;
mod settings;
#[cfg(feature = "folder")]
mod sound;
#[cfg(feature = "folder")]
mod transcribe;
mod windows;
mod writer;

#[cfg(feature = "folder")]
pub use folder::Folder;
pub use ggml::GgmlSpeech;
pub use listener::Listener;
pub use mel::{LogMel, SAMPLES};
pub use rules::{Rules, Times};
pub use settings::{Ear, Files, Most, Settings, Words};
#[cfg(feature = "folder")]
pub use sound::{Sound, read_sound};
#[cfg(feature = "folder")]
pub use transcribe::{Options, Segment, Transcript, transcribe};
pub use windows::Part;
pub use writer::{Heard, Wanted, Writer};

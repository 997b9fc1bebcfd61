//! One file for each command.

pub mod bench;
pub mod check;
#[cfg(feature = "conform")]
pub mod conform;
pub mod convert;
pub mod devices;
#[cfg(feature = "text")]
pub mod generate;
pub mod inspect;
pub mod run;
#[cfg(feature = "speech")]
pub mod transcribe;
pub mod verify;

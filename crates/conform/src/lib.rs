//! The operator cases that every backend of Kilim runs ([`operators`]), and how a backend does with them ([`conform`]).
//!
//! A case is one operator with inputs, and with results that are computed in float64. Backends of a program and of libraries
//! are tried like Kilim's own:
//!
//! ```no_run
//! # async fn example() -> kilim::Result<()> {
//! let mut options = kilim::LoadOptions::default();
//! options.backends = vec!["xpu".into(), "cpu".into()];
//! let runtime = kilim::Runtime::default();
//! let score = kilim_conform::conform(&runtime, &options, "", |_, _| ()).await?;
//! assert!(score.wrong.is_empty(), "{:?}", score.wrong);
//! # Ok(())
//! # }
//! ```

pub mod operators;
mod score;

pub use score::{Passed, Refused, Score, Wrong, conform};

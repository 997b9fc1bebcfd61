//! `com.microsoft`: what onnxruntime's optimiser and quantiser and the exporters of language models leave in files, written
//! out in standard operators. A file holds a family.

mod attention;
mod cache;
pub mod early;
pub mod encoder;
pub mod experts;
pub mod fused;
pub mod gelu;
pub mod group_query;
pub mod lstm;
#[cfg(test)]
pub mod missing;
pub mod multi_head;
pub mod norm;
pub mod packed;
pub mod quantized;
pub mod recurrent;
pub mod residual;
pub mod rotary;
mod steps;

use super::{Family, OpTable};

pub const DOMAIN: &str = "com.microsoft";

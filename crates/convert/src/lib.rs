//! ONNX files from graphs, with smaller weights if wanted.
//!
//! A graph is what an importer of `kilim-formats` gives, before any pass of a backend. [`lower()`] brings it to
//! operators that ONNX has, [`quantise::quantise`] makes its weights smaller, and [`OnnxModel`] is the file.
//!
//! ```
//! use kilim_convert::{OnnxModel, OnnxOptions, lower};
//! use kilim_core::graph::Graph;
//! use kilim_core::ops::{Unary, UnaryKind};
//! use kilim_core::{DType, Fact};
//!
//! let mut graph = Graph::new("roots");
//! let x = graph.add_input("x", Fact::fixed(DType::F32, &[4]));
//! let y = graph.apply("root", Unary(UnaryKind::Sqrt), &[x]);
//! graph.outputs.push(y);
//! let model = OnnxModel::new(&lower(&graph)?, &OnnxOptions::default())?;
//! let mut file = Vec::new();
//! model.write(&mut file)?;
//! # Ok::<(), kilim_core::Error>(())
//! ```

pub mod lower;
pub mod onnx;
mod proto;
pub mod quantise;
mod rebuild;

pub use lower::lower;
pub use onnx::{OnnxModel, OnnxOptions, Weights};

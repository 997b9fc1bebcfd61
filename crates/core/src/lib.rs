//! The portable core of Kilim: the graph, operators with shape inference, passes, the partitioner, the
//! memory planner, schedulers, sessions, and the interface of backends.

// The derive names this crate as others do.
extern crate self as kilim_core;

pub mod backend;
pub mod builtin;
pub mod calibrate;
pub mod datum;
mod device_tensor;
pub mod dim;
pub mod dtype;
pub mod error;
mod executable;
pub mod fact;
mod fallible;
pub mod fixed;
#[macro_use]
pub mod graph;
pub mod ids;
pub mod interrupt;
mod limits;
pub mod memory;
pub mod narrow;
mod nearest;
pub mod ops;
pub mod order;
pub mod partition;
pub mod passes;
pub mod pin;
pub mod reflect;
pub mod report;
pub mod schedule;
pub mod session;
pub mod short;
pub mod stages;
pub mod tensor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod threading;
pub mod tuning;
#[cfg(not(target_arch = "wasm32"))]
mod user_memory;

#[cfg(not(target_arch = "wasm32"))]
pub use backend::CommandQueue;
pub use backend::{Backend, BackendContext, BackendRegistry};
pub use datum::{Datum, Form, Kind, Map};
pub use device_tensor::DeviceTensor;
pub use dim::{Dim, Shape};
pub use dtype::DType;
pub use error::{Error, ErrorCode, Result};
pub use fact::Fact;
pub use graph::{Graph, InferContext, Metadata, Node, NodeId, Operator, Value, ValueId, Variable};
pub use ids::BackendId;
pub use interrupt::{AbortSignal, Interrupt};
pub use kilim_derive::Reflect;
pub use limits::Limits;
pub use partition::{Calibration, Placement};
pub use pin::{Pin, PrecisionPin};
pub use reflect::Reflect;
pub use report::Report;
pub use session::{Keep, Port, RunOptions, Session, SessionOptions};
pub use tensor::Tensor;
pub use tuning::Tuning;
#[cfg(not(target_arch = "wasm32"))]
pub use user_memory::{MemoryHandle, MemoryKind, UserMemory};

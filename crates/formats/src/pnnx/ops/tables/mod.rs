//! The operators that can be run. Names are those of PyTorch, as `pass_level1`, `pass_level2` and `ir.cpp` of pnnx give them.

mod network;
mod torch;

use super::Row;
use crate::build::OpTable;

/// All operators.
pub static TABLES: [&OpTable<&str, Row>; 4] = [
    &network::MODULES,
    &network::FUNCTIONS,
    &torch::FUNCTIONS,
    &torch::OTHERS,
];

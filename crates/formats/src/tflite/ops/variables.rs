//! Variables, which a session keeps from run to run.

use kilim_core::error::Result;
use kilim_core::ops::{Unary, UnaryKind};

use super::super::import::{Import, Op};

/// Runs a subgraph before the first run.
pub fn call_once(imp: &mut Import, op: &Op) -> Result<()> {
    imp.initialize_variables(op.int(0)?)
}

/// A handle is found where it is used.
pub fn handle(_: &mut Import, _: &Op) -> Result<()> {
    Ok(())
}

/// Input: a handle.
pub fn read(imp: &mut Import, op: &Op) -> Result<()> {
    let value = imp.variable_now(op)?;
    imp.emit(op, Unary(UnaryKind::Identity), &[Some(value)])
}

/// Inputs: a handle, and the value from here on.
pub fn assign(imp: &mut Import, op: &Op) -> Result<()> {
    imp.assign_variable(op)
}

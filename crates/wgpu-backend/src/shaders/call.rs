//! What one dispatch gives to a shader.

use std::sync::Arc;

use super::user::UserShader;
use super::variant::{File, Variant};
use super::words::Words;

/// A buffer that a shader reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Input(usize),
    Output(usize),
    /// A temporary of the node.
    Scratch(usize),
    /// A constant input in another arrangement.
    Pack(usize),
    /// Numbers computed while lowering.
    Table(usize),
    /// The word for what only the device can find wrong: what `#fault` declares. The node's number is
    /// added to the parameters when the dispatch is bound.
    Fault,
}

/// A buffer that a shader writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Output(usize),
    /// A temporary of the node.
    Scratch(usize),
}

impl From<Target> for Operand {
    fn from(target: Target) -> Operand {
        match target {
            Target::Output(i) => Operand::Output(i),
            Target::Scratch(i) => Operand::Scratch(i),
        }
    }
}

/// The WGSL of a dispatch.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Program {
    /// One of the shader files.
    File(Variant),
    /// The text of a custom operator.
    User(Arc<UserShader>),
}

/// A program with its buffers, in the order of their bindings, and its parameters.
pub(crate) struct Call {
    pub program: Program,
    pub operands: Vec<Operand>,
    pub params: Words,
}

impl Call {
    /// A call of variant `number` of the shader file `file`, without buffers and parameters.
    pub(super) fn new(file: &'static File, number: u16) -> Call {
        Call {
            program: Program::File(Variant { file, number }),
            operands: Vec::new(),
            params: Words::default(),
        }
    }

    pub(super) fn read(&mut self, operand: Operand) {
        self.operands.push(operand);
    }

    pub(super) fn write(&mut self, target: Target) {
        self.operands.push(target.into());
    }

    pub(super) fn read_all(&mut self, operands: &[Operand]) {
        self.operands.extend(operands);
    }

    pub(super) fn write_all(&mut self, targets: &[Target]) {
        self.operands
            .extend(targets.iter().map(|&t| Operand::from(t)));
    }

    pub(super) fn fault(&mut self) {
        self.operands.push(Operand::Fault);
    }
}

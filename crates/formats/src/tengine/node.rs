//! A node while it is brought into the graph.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use super::file::Table;
use super::invalid;

/// A node, and the values that it reads.
pub struct Node<'a> {
    pub inputs: Vec<ValueId>,
    /// The number of its outputs.
    pub outputs: usize,
    pub params: Option<Table<'a>>,
}

impl<'a> Node<'a> {
    /// Input `i`.
    ///
    /// # Errors
    /// `InvalidModel` where the node has fewer.
    pub fn input(&self, i: usize) -> Result<ValueId> {
        let input = self.inputs.get(i).copied();
        input.ok_or_else(|| invalid(format!("input {i} is missing")))
    }

    /// The parameters.
    ///
    /// # Errors
    /// `InvalidModel` where there are none.
    pub fn params(&self) -> Result<Table<'a>> {
        self.params
            .ok_or_else(|| invalid("the parameters are missing"))
    }

    /// Parameter `i`, which counts something.
    ///
    /// # Errors
    /// `InvalidModel` where it is negative.
    pub fn count(&self, i: usize) -> Result<usize> {
        let number = self.params()?.int(i)?;
        usize::try_from(number).map_err(|_| invalid("a parameter is negative").with_got(number))
    }

    /// Parameter `i`, which must not be 0.
    ///
    /// # Errors
    /// `InvalidModel` where it is 0 or negative.
    pub fn positive(&self, i: usize) -> Result<usize> {
        match self.count(i)? {
            0 => Err(invalid("a parameter must not be 0")),
            n => Ok(n),
        }
    }
}

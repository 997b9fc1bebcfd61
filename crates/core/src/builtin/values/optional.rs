//! Optional values.

use super::{Inputs, OnValues};
use crate::error::{Result, value_error};
use crate::ops::*;
use crate::session::{Handle, Shared};
use crate::tensor::Tensor;

impl OnValues for OptionalAbsent {
    async fn run(&self, _: Inputs, _: &mut Shared) -> Result<Handle> {
        Ok(Handle::Absent)
    }
}

impl OnValues for OptionalGetElement {
    async fn run(&self, mut inputs: Inputs, _: &mut Shared) -> Result<Handle> {
        match inputs.take(0)? {
            Handle::Absent => Err(value_error("an optional value is not there")),
            there => Ok(there),
        }
    }
}

impl OnValues for OptionalHasElement {
    async fn run(&self, mut inputs: Inputs, _: &mut Shared) -> Result<Handle> {
        let there = !matches!(inputs.take(0)?, Handle::Absent);
        Ok(Handle::Host(Tensor::from_bools(&[], &[there])?))
    }
}

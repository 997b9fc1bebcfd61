//! Optional values.

use super::{Inputs, OnValues};
use crate::error::{Result, value_error};
use crate::ops::{OptionalAbsent, OptionalGetElement, OptionalHasElement};
use crate::session::{Handle, Run};
use crate::tensor::Tensor;

impl OnValues for OptionalAbsent {
    async fn run(&self, _: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        Ok(Handle::Absent)
    }
}

impl OnValues for OptionalGetElement {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        match inputs.take(0)? {
            Handle::Absent => Err(value_error("an optional value is not there")),
            there => Ok(there),
        }
    }
}

impl OnValues for OptionalHasElement {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let there = !matches!(inputs.take(0)?, Handle::Absent);
        Ok(Handle::Host(Tensor::from_bools(&[], &[there])?))
    }
}

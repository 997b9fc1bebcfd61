//! Inputs and outputs in other layouts than the model's.

use super::port::{Port, PortLayouts};
use crate::backend::DataLayout;
use crate::datum::Datum;
use crate::error::Result;

/// The layout that a model has for an input or output, and the one that the user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLayout {
    pub model: DataLayout,
    pub user: DataLayout,
}

impl PortLayout {
    /// What the model declares for the channels.
    fn channels(&self, port: &Port) -> Option<usize> {
        let dims = &port.fact.shape.as_ref()?.0;
        match self.model {
            DataLayout::ChannelsFirst => dims.get(1)?.known(),
            DataLayout::ChannelsLast => dims.last()?.known(),
            DataLayout::Blocked(_) => None,
        }
    }
}

/// What the user gives for an input, as the model takes it.
pub(crate) fn accept(layouts: &PortLayouts, port: &Port, datum: Datum) -> Result<Datum> {
    let (Some(layout), Datum::Tensor(tensor)) = (layouts.get(&port.name), &datum) else {
        return Ok(datum);
    };
    let shape = layout
        .user
        .logical(tensor.shape(), layout.channels(port))
        .map_err(|e| e.with_input(&port.name))?;
    let tensor = layout.user.convert(tensor, &shape, layout.model)?;
    Ok(Datum::Tensor(tensor))
}

/// What the model gives for an output, as the user takes it.
pub(crate) fn hand_out(layouts: &PortLayouts, port: &Port, datum: Datum) -> Result<Datum> {
    let (Some(layout), Datum::Tensor(tensor)) = (layouts.get(&port.name), &datum) else {
        return Ok(datum);
    };
    let shape = layout
        .model
        .logical(tensor.shape(), layout.channels(port))?;
    let tensor = layout.model.convert(tensor, &shape, layout.user)?;
    Ok(Datum::Tensor(tensor))
}

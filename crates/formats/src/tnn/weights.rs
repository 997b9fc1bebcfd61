//! The weights of a layer while it is brought into the graph.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;
use kilim_core::tensor::{byte_count, element_count};

use super::import::Import;
use super::invalid;
use super::layer::Layer;
use super::model::Stored;
use super::stream::Buffer;
use crate::beside::zeros;

impl Import<'_> {
    /// What the file of the weights has under a name; `None` where the weights are not there.
    ///
    /// # Errors
    /// `InvalidModel` where the file has nothing of that name.
    pub fn stored(&mut self, name: &str) -> Result<Option<Stored>> {
        match self.model.stored(name) {
            Some(stored) => Ok(Some(stored.clone())),
            None if self.model.is_missing() => {
                self.model.miss();
                Ok(None)
            }
            None => Err(invalid("the weights are missing").with_input(name)),
        }
    }

    /// Numbers in 16 bits as `float32`; others as they are.
    pub fn widened(&mut self, value: ValueId) -> Result<ValueId> {
        match self.dtype(value) {
            Some(DType::F16 | DType::BF16) => self.cast(value, DType::F32),
            _ => Ok(value),
        }
    }

    /// Buffer `i` of the layer; `None` where it is empty, left out, or the weights are not there.
    ///
    /// # Errors
    /// `InvalidModel` where the file has nothing of the layer.
    pub fn buffer(&mut self, layer: &Layer, i: usize) -> Result<Option<Buffer>> {
        let stored = self.stored(layer.name)?;
        Ok(stored.and_then(|stored| stored.get(i).cloned().flatten()))
    }

    /// Buffer `i` of the layer in the shape in which it stands in the file. Where the weights are not there, their shape is not known.
    ///
    /// # Errors
    /// `Unsupported` where the weights are not there, `InvalidModel` where the buffer is empty.
    pub fn as_stored(&mut self, layer: &Layer, i: usize, what: &str) -> Result<Buffer> {
        match self.buffer(layer, i)? {
            Some(buffer) => Ok(buffer),
            None if self.model.is_missing() => Err(unsupported(format!(
                "{what}, whose shape stands in the file of the weights alone"
            ))),
            None => Err(invalid(format!("{what} are missing"))),
        }
    }

    /// Buffer `i` of the layer in `float32`.
    ///
    /// # Errors
    /// `InvalidModel` where it has another number of elements.
    pub fn weights(
        &mut self,
        layer: &Layer,
        i: usize,
        what: &str,
        shape: &[usize],
    ) -> Result<ValueId> {
        let value = self.optional(layer, i, what, shape)?;
        value.ok_or_else(|| invalid(format!("{what} are missing")))
    }

    /// Buffer `i` of the layer in `float32`; `None` where it is empty or left out.
    ///
    /// # Errors
    /// `InvalidModel` where it has another number of elements, `Unsupported` where these are integers.
    pub fn optional(
        &mut self,
        layer: &Layer,
        i: usize,
        what: &str,
        shape: &[usize],
    ) -> Result<Option<ValueId>> {
        let tensor = match self.buffer(layer, i)? {
            Some(buffer) if buffer.len() != element_count(shape)? => {
                let message = format!("{what} are of another number than the layer has");
                return Err(invalid(message)
                    .with_expected(format!("{shape:?}"))
                    .with_got(buffer.len()));
            }
            Some(buffer) => buffer.tensor.reshaped(shape)?,
            None if self.model.is_missing() => {
                let bytes = byte_count(DType::F32, shape)?;
                zeros(bytes)?.bytes_as(DType::F32, shape)?
            }
            None => return Ok(None),
        };
        if !matches!(tensor.dtype(), DType::F32 | DType::F16 | DType::BF16) {
            return Err(unsupported(format!("{what} of integers")));
        }
        let value = self.node_constant(what, tensor);
        Ok(Some(self.widened(value)?))
    }
}

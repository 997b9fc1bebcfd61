//! An operator as the file has it, and its options.

use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::ops::Activation;

use crate::flatbuffer::Table;
use crate::tflite::schema::OperatorInfo;

/// An operator of the file.
pub struct Op<'a> {
    pub name: &'static str,
    /// The node's name: that of its first output, since TFLite names tensors alone.
    pub node: String,
    pub(super) info: &'a OperatorInfo<'a>,
}

impl<'a> Op<'a> {
    /// The tensor number of input `i`, if it is there.
    pub fn tensor(&self, i: usize) -> Option<usize> {
        self.info.inputs.get(i).copied().flatten()
    }

    /// The tensor number of output `i`; `InvalidModel` where it is missing.
    pub(super) fn output_tensor(&self, i: usize) -> Result<usize> {
        let tensor = self.info.outputs.get(i).copied();
        tensor.ok_or_else(|| Error::new(ErrorCode::InvalidModel, format!("output {i} is missing")))
    }

    /// The number of inputs, those that are left out too.
    pub fn input_count(&self) -> usize {
        self.info.inputs.len()
    }

    /// The number of outputs.
    pub fn output_count(&self) -> usize {
        self.info.outputs.len()
    }

    fn option<T>(&self, read: impl FnOnce(&Table<'a>) -> Result<T>, default: T) -> Result<T> {
        self.info.options.as_ref().map_or(Ok(default), read)
    }

    /// The option in `slot`; 0 where the file leaves it out, as in the readers below.
    pub fn int(&self, slot: usize) -> Result<i32> {
        self.option(|t| t.i32(slot), 0)
    }

    /// The option in `slot`, or the default of the schema.
    pub fn int_or(&self, slot: usize, default: i32) -> Result<i32> {
        self.option(|t| t.i32_or(slot, default), default)
    }

    /// A count that must be positive: strides, kernels, blocks.
    pub fn positive(&self, slot: usize, default: i32) -> Result<usize> {
        let n = self.int_or(slot, default)?;
        usize::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidModel,
                format!("the option in slot {slot} is {n}"),
            )
        })
    }

    /// The number of a choice.
    pub fn enumeration(&self, slot: usize) -> Result<i8> {
        self.option(|t| t.i8(slot), 0)
    }

    /// Whether the option is set.
    pub fn flag(&self, slot: usize) -> Result<bool> {
        self.option(|t| t.bool(slot), false)
    }

    /// The option in slot `slot` as a float; 0 where the file leaves it out.
    pub fn float(&self, slot: usize) -> Result<f32> {
        self.option(|t| t.f32(slot), 0.0)
    }

    /// The numbers of an option; none where the file leaves it out.
    pub fn ints(&self, slot: usize) -> Result<Vec<i32>> {
        self.option(|t| t.i32s(slot), Vec::new())
    }

    /// The fused activation in `slot`.
    pub fn activation(&self, slot: usize) -> Result<Activation> {
        Ok(match self.enumeration(slot)? {
            0 => Activation::None,
            1 => Activation::Relu,
            2 => Activation::Clip {
                min: -1.0,
                max: 1.0,
            },
            3 => Activation::Clip { min: 0.0, max: 6.0 },
            4 => Activation::Tanh,
            other => return Err(unsupported(format!("fused activation number {other}"))),
        })
    }
}

//! Tensors that stay with a page's backend.

use std::rc::Rc;

use kilim_core::backend::{DeviceHandle, DeviceTensor, LocalFuture};
use kilim_core::{Result, Tensor};
use wasm_bindgen::JsValue;

use super::Functions;
use crate::convert;

/// What the backend has of a tensor, whose dimensions are `shape` there.
pub struct Value {
    pub functions: Rc<Functions>,
    pub value: JsValue,
    pub shape: Vec<usize>,
}

impl Value {
    /// Whether the backend of these functions takes it as `data`: it has made it, of the same dimensions. A session that was made after the
    /// backend was registered anew has another one of the same name.
    pub fn is_of(&self, functions: &Rc<Functions>, data: &DeviceTensor) -> bool {
        Rc::ptr_eq(&self.functions, functions) && self.shape == data.shape
    }
}

impl DeviceHandle for Value {
    fn read<'a>(&'a self, tensor: &'a DeviceTensor) -> LocalFuture<'a, Result<Tensor>> {
        Box::pin(async {
            let read = self.functions.call("fetch", &[self.value.clone()])?;
            received(&self.functions, read, &tensor.shape).await
        })
    }
}

/// The tensor that JavaScript gave, or a promise of it, in another shape of as many elements.
///
/// # Errors
/// What the promise is rejected with, and those of [`convert::tensor`].
pub async fn received(functions: &Functions, given: JsValue, shape: &[usize]) -> Result<Tensor> {
    let given = functions.settled(given).await?;
    let (_, tensor) = convert::tensor(&given)?;
    tensor.reshaped(shape)
}

//! Tensors of a session that stay in the runtime, and their numbers in JavaScript.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use js_sys::Array;
use kilim_core::{Datum, DeviceTensor, Error, ErrorCode, Result};
use wasm_bindgen::JsValue;

use crate::convert;

/// The kept tensors of a session. Clones share them.
#[derive(Clone, Default)]
pub struct Kept(Rc<RefCell<Table>>);

#[derive(Default)]
struct Table {
    last: u32,
    tensors: HashMap<u32, DeviceTensor>,
}

impl Kept {
    /// A number for the tensor.
    pub fn add(&self, tensor: DeviceTensor) -> u32 {
        let mut table = self.0.borrow_mut();
        table.last += 1;
        let number = table.last;
        table.tensors.insert(number, tensor);
        number
    }

    /// The tensor of this number; `State` where it was released.
    pub fn get(&self, number: u32) -> Result<DeviceTensor> {
        let table = self.0.borrow();
        let tensor = table.tensors.get(&number).cloned();
        tensor.ok_or_else(disposed)
    }

    /// Gives the memory of these back, but for what is in use.
    pub fn release(&self, numbers: &[u32]) {
        let mut table = self.0.borrow_mut();
        for number in numbers {
            table.tensors.remove(number);
        }
    }

    /// The tensor of this number, which nobody can ask for again; `State` where it was released.
    fn take(&self, number: u32) -> Result<DeviceTensor> {
        let tensor = self.0.borrow_mut().tensors.remove(&number);
        tensor.ok_or_else(disposed)
    }

    /// What a run is given: `{name, kept}` is the tensor of that number, which `spent` takes away, all else as of [`convert::datum`].
    ///
    /// # Errors
    /// Those of [`convert::datum`] and [`Kept::get`], with the input's name.
    pub fn given(&self, feeds: &Array) -> Result<Vec<(String, Datum)>> {
        let value = |feed: JsValue| {
            let Some(number) = convert::field(&feed, "kept") else {
                return convert::datum(&feed);
            };
            let name = convert::name(&feed)?;
            let number = convert::size(&number, "the number of a kept tensor")?;
            let spent = convert::field(&feed, "spent").is_some_and(|spent| spent.is_truthy());
            let tensor = match spent {
                true => self.take(number as u32),
                false => self.get(number as u32),
            };
            let tensor = tensor.map_err(|error| error.with_input(&name))?;
            Ok((name, tensor.into()))
        };
        feeds.iter().map(value).collect()
    }

    /// The outputs of a run: a kept one is `{name, kept, type, dims}`, all others as of [`convert::datum_object`].
    ///
    /// # Errors
    /// Those of [`convert::datum_object`].
    pub fn objects(&self, values: Vec<(String, Datum)>) -> Result<Array> {
        let object = |(name, datum): (String, Datum)| match datum {
            Datum::Device(tensor) => {
                let (dtype, shape) = (tensor.dtype, tensor.shape.clone());
                Ok(convert::kept_object(&name, self.add(tensor), dtype, &shape))
            }
            other => convert::datum_object(&name, &other),
        };
        values.into_iter().map(object).collect()
    }
}

fn disposed() -> Error {
    Error::new(ErrorCode::State, "a kept tensor was disposed of")
}

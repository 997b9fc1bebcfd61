//! What the elements of string tensors stand for. In this backend's memory such an element is the
//! number of a text in a pool, so that kernels that move elements move texts as well.

use std::collections::HashMap;
use std::sync::Arc;

use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Error, ErrorCode, Result, Tensor};

/// Texts by number. Equal texts have equal numbers, and 0 is the empty text.
pub struct Texts {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    /// Those before this one stay when [`Texts::forget`] is called.
    kept: usize,
}

impl Default for Texts {
    fn default() -> Self {
        let empty: Arc<str> = Arc::from("");
        Texts {
            texts: vec![empty.clone()],
            numbers: HashMap::from([(empty, 0)]),
            kept: 1,
        }
    }
}

impl Texts {
    /// The number of a text.
    ///
    /// # Errors
    /// `Limit` where there are more texts than numbers.
    pub fn number(&mut self, text: &Arc<str>) -> Result<u32> {
        if let Some(&number) = self.numbers.get(text) {
            return Ok(number);
        }
        let number = u32::try_from(self.texts.len())
            .map_err(|_| Error::new(ErrorCode::Limit, "there are too many different strings"))?;
        self.texts.push(text.clone());
        self.numbers.insert(text.clone(), number);
        Ok(number)
    }

    /// The text of a number that [`Texts::number`] gave.
    ///
    /// # Panics
    /// Where it was never given.
    pub fn text(&self, number: u32) -> &Arc<str> {
        &self.texts[number as usize]
    }

    /// All texts so far stay.
    pub fn keep(&mut self) {
        self.kept = self.texts.len();
    }

    /// Lets go of what came since [`Texts::keep`].
    pub fn forget(&mut self) {
        for text in self.texts.drain(self.kept..) {
            self.numbers.remove(&text);
        }
    }

    /// The numbers of a string tensor's elements, as they stand in memory.
    pub fn admit(&mut self, tensor: &Tensor) -> Result<AlignedBytes> {
        let mut bytes = AlignedBytes::zeroed(byte_count(DType::String, tensor.shape())?)?;
        let numbers: &mut [u32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
        for (number, text) in numbers.iter_mut().zip(tensor.texts()?) {
            *number = self.number(text)?;
        }
        Ok(bytes)
    }

    /// The inverse of [`Texts::admit`].
    pub fn tensor(&self, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
        let numbers: &[u32] = bytemuck::cast_slice(bytes);
        let texts: Vec<_> = numbers.iter().map(|&n| self.text(n).clone()).collect();
        Tensor::from_texts(shape, texts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_the_texts_they_are_of() {
        let mut pool = Texts::default();
        let all = ["b", "", "a", "b"].map(Arc::from).to_vec();
        let tensor = Tensor::from_texts(&[2, 2], all).unwrap();
        let bytes = pool.admit(&tensor).unwrap();
        let numbers: &[u32] = bytemuck::cast_slice(bytes.as_slice());
        assert_eq!(numbers, [1, 0, 2, 1]);
        assert_eq!(pool.tensor(&[2, 2], bytes.as_slice()).unwrap(), tensor);
        pool.keep();
        assert_eq!(pool.number(&"c".into()).unwrap(), 3);
        pool.forget();
        assert_eq!(pool.number(&"d".into()).unwrap(), 3);
        assert_eq!(pool.text(2).as_ref(), "a");
    }
}

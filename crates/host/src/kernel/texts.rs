//! What the elements of string tensors stand for. In this backend's memory such an element is the
//! number of a text in a pool, so that kernels that move elements move texts as well.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::hash::Hasher;
use std::sync::Arc;

use kilim_core::interrupt::Meter;
use kilim_core::memory::{collect, out_of_memory, push, shared_text};
use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Error, ErrorCode, Interrupt, Result, Tensor};

/// Bytes of a text that a kernel makes at most: it is copied without a look at what may stop the run, which shall take
/// milliseconds only.
const LONGEST: usize = 1 << 25;
/// Bytes of all texts of a pool at most. What a model multiplies shall end in an error before it takes the machine's
/// memory.
const MOST_BYTES: usize = 1 << 30;

/// Texts by number. Equal texts have equal numbers, and 0 is the empty text.
pub struct Texts {
    texts: Vec<Numbered>,
    /// The number of the last text with a hash.
    numbers: HashMap<u64, u32>,
    /// Bytes of all texts.
    bytes: usize,
    /// The number of texts that stay when [`Texts::forget`] is called: the first ones.
    kept: usize,
}

struct Numbered {
    text: Arc<str>,
    hash: u64,
    /// The number of another text with the same hash.
    next: Option<u32>,
}

impl Default for Texts {
    fn default() -> Self {
        let hash = DefaultHasher::new().finish();
        Texts {
            texts: vec![Numbered {
                text: Arc::from(""),
                hash,
                next: None,
            }],
            numbers: HashMap::from([(hash, 0)]),
            bytes: 0,
            kept: 1,
        }
    }
}

impl Texts {
    /// The number of a text.
    ///
    /// # Errors
    /// `Limit` where there are more texts than numbers, or more bytes than a pool may have; `Aborted` where the work is to
    /// stop.
    pub fn number(&mut self, meter: &Meter, text: &Arc<str>) -> Result<u32> {
        match self.find(meter, text)? {
            (_, Some(number)) => Ok(number),
            (hash, None) => self.add(hash, text.clone()),
        }
    }

    /// The number of some texts, one behind the other.
    ///
    /// # Errors
    /// As [`Texts::number`]; `Limit`, too, where they are too long.
    pub fn number_of(&mut self, meter: &Meter, parts: &[&str]) -> Result<u32> {
        let len = (parts.iter()).fold(0usize, |len, part| len.saturating_add(part.len()));
        if len > LONGEST {
            return Err(too_much("a text", LONGEST, len));
        }
        let joined;
        let text = match parts {
            [text] => *text,
            _ => {
                let mut all = String::new();
                all.try_reserve(len).map_err(|_| out_of_memory(len))?;
                parts.iter().for_each(|part| all.push_str(part));
                joined = all;
                &joined
            }
        };
        match self.find(meter, text)? {
            (_, Some(number)) => Ok(number),
            (hash, None) => self.add(hash, shared_text(text)?),
        }
    }

    /// The hash of a text, and its number if it has one.
    fn find(&self, meter: &Meter, text: &str) -> Result<(u64, Option<u32>)> {
        let bytes = text.as_bytes();
        let mut hasher = DefaultHasher::new();
        meter.spend(COST)?;
        meter.pieces(bytes.len(), 1, |piece| {
            hasher.write(&bytes[piece]);
            Ok(())
        })?;
        let hash = hasher.finish();
        let mut next = self.numbers.get(&hash).copied();
        while let Some(number) = next {
            let known = &self.texts[number as usize];
            let (other, mut equal) = (known.text.as_bytes(), known.text.len() == bytes.len());
            if equal {
                meter.pieces(bytes.len().div_ceil(8), 1, |piece| {
                    let piece = piece.start * 8..bytes.len().min(piece.end * 8);
                    equal &= bytes[piece.clone()] == other[piece];
                    Ok(())
                })?;
            }
            if equal {
                return Ok((hash, Some(number)));
            }
            next = known.next;
        }
        Ok((hash, None))
    }

    fn add(&mut self, hash: u64, text: Arc<str>) -> Result<u32> {
        let number = u32::try_from(self.texts.len())
            .map_err(|_| Error::new(ErrorCode::Limit, "there are too many different strings"))?;
        let bytes = self.bytes.saturating_add(text.len());
        if bytes > MOST_BYTES {
            return Err(too_much("all different texts together", MOST_BYTES, bytes));
        }
        let room = self.numbers.try_reserve(1);
        room.map_err(|_| out_of_memory(self.numbers.len() * size_of::<(u64, u32)>()))?;
        let next = self.numbers.get(&hash).copied();
        push(&mut self.texts, Numbered { text, hash, next })?;
        self.numbers.insert(hash, number);
        self.bytes = bytes;
        Ok(number)
    }

    /// The text of a number that [`Texts::number`] gave.
    ///
    /// # Panics
    /// Where it was never given.
    pub fn text(&self, number: u32) -> &Arc<str> {
        &self.texts[number as usize].text
    }

    /// All texts so far stay.
    pub fn keep(&mut self) {
        self.kept = self.texts.len();
    }

    /// Lets go of what came since [`Texts::keep`].
    pub fn forget(&mut self) {
        while self.texts.len() > self.kept {
            let Some(Numbered { text, hash, next }) = self.texts.pop() else {
                return;
            };
            self.bytes -= text.len();
            if let Entry::Occupied(mut last) = self.numbers.entry(hash) {
                match next {
                    Some(next) => drop(last.insert(next)),
                    None => drop(last.remove()),
                }
            }
        }
    }

    /// The numbers of a string tensor's elements, as they stand in memory.
    ///
    /// # Errors
    /// As [`Texts::number`].
    pub fn admit(&mut self, tensor: &Tensor) -> Result<AlignedBytes> {
        let meter = Meter::new(&Interrupt::NEVER);
        let mut bytes = AlignedBytes::zeroed(byte_count(DType::String, tensor.shape())?)?;
        let numbers: &mut [u32] = bytemuck::cast_slice_mut(bytes.as_mut_slice());
        for (number, text) in numbers.iter_mut().zip(tensor.texts()?) {
            *number = self.number(&meter, text)?;
        }
        Ok(bytes)
    }

    /// The inverse of [`Texts::admit`].
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn tensor(&self, shape: &[usize], bytes: &[u8]) -> Result<Tensor> {
        let numbers: &[u32] = bytemuck::cast_slice(bytes);
        let texts = collect(numbers.iter().map(|&n| self.text(n).clone()))?;
        Tensor::from_texts(shape, texts)
    }
}

/// Operations of finding a text, beside those for its bytes.
const COST: usize = 64;

#[cold]
fn too_much(what: &str, most: usize, bytes: usize) -> Error {
    Error::new(ErrorCode::Limit, format!("{what} would be too long"))
        .with_expected(format!("at most {most} bytes"))
        .with_got(format!("{bytes} bytes"))
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
        let meter = Meter::new(&Interrupt::NEVER);
        assert_eq!(pool.number(&meter, &"c".into()).unwrap(), 3);
        pool.forget();
        assert_eq!(pool.number_of(&meter, &["d", "e"]).unwrap(), 3);
        assert_eq!(pool.number_of(&meter, &["de"]).unwrap(), 3);
        assert_eq!(pool.text(2).as_ref(), "a");
    }

    #[test]
    fn texts_of_one_hash_are_told_apart_and_forgotten_one_by_one() {
        let mut pool = Texts::default();
        let meter = Meter::new(&Interrupt::NEVER);
        let (hash, _) = pool.find(&meter, "a").unwrap();
        assert_eq!(pool.add(hash, "other".into()).unwrap(), 1);
        pool.keep();
        assert_eq!(pool.number_of(&meter, &["a"]).unwrap(), 2);
        assert_eq!(pool.number_of(&meter, &["a"]).unwrap(), 2);
        pool.forget();
        assert_eq!(pool.numbers[&hash], 1);
        assert_eq!((pool.texts.len(), pool.bytes), (2, 5));
        assert_eq!(pool.number_of(&meter, &["a"]).unwrap(), 2);
    }

    #[test]
    fn what_grows_without_end_is_a_limit() {
        let mut pool = Texts::default();
        let meter = Meter::new(&Interrupt::NEVER);
        let mut number = pool.number_of(&meter, &["ab"]).unwrap();
        let error = loop {
            let text = pool.text(number).clone();
            match pool.number_of(&meter, &[&text, &text]) {
                Ok(doubled) => number = doubled,
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), ErrorCode::Limit);
        assert_eq!(pool.text(number).len(), LONGEST);
        pool.bytes = MOST_BYTES;
        assert_eq!(
            pool.number_of(&meter, &["c"]).unwrap_err().code(),
            ErrorCode::Limit
        );
    }
}

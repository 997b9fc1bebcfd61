//! What stands in front of the tensors: sizes, the filters of the spectrum, and the words.

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::AlignedBytes;

use super::invalid;
use crate::gguf::Reader;

/// `ggml`, as a number whose lowest byte stands first.
const MAGIC: &[u8] = b"lmgg";

/// Where the numbers of bands stand: that of the sizes, and that of the filters with the frequencies of each.
const BANDS: usize = 4 + 4 * 9;
const FILTERS: usize = 4 + 4 * 11;

/// How large a model is (`whisper_hparams` in `src/whisper.cpp`).
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// Words, with those that are no text.
    pub words: usize,
    /// Places of what the encoder makes.
    pub places: usize,
    pub width: usize,
    pub heads: usize,
    pub layers: usize,
    /// Words that the decoder looks back on.
    pub context: usize,
    pub decoder_heads: usize,
    pub decoder_layers: usize,
    /// Bands of the spectrum.
    pub bands: usize,
    /// Frequencies that a band is made from.
    pub frequencies: usize,
}

/// The beginning of a file.
#[derive(Clone, Debug)]
pub struct Front<'a> {
    pub sizes: Sizes,
    /// The bytes of each word of text.
    pub words: Vec<&'a [u8]>,
    /// Where the tensors begin.
    pub end: usize,
}

/// Whether a file begins as one of a Whisper model: other models of ggml begin with the letters, too, and have no filters.
pub fn probe(bytes: &[u8]) -> bool {
    let number = |at: usize| bytes.get(at..at + 4);
    bytes.starts_with(MAGIC)
        && number(BANDS).is_some_and(|bands| bands != [0; 4])
        && number(BANDS) == number(FILTERS)
        && number(FILTERS + 4).is_some()
}

impl<'a> Front<'a> {
    /// Reads the beginning of a file, `bytes`, or as much of it as stands in front of the tensors.
    ///
    /// # Errors
    /// `InvalidModel` where it is garbled.
    pub fn read(bytes: &'a [u8]) -> Result<Front<'a>> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err(invalid("the file does not begin with `ggml`"));
        }
        let mut numbers = [0; 13];
        for number in &mut numbers {
            *number = count(&mut reader)?;
        }
        // The eleventh says of which type most tensors are; each says it of itself.
        let [
            words,
            places,
            width,
            heads,
            layers,
            context,
            decoder_width,
            decoder_heads,
            decoder_layers,
            bands,
            _,
            filters,
            frequencies,
        ] = numbers;
        let sizes = Sizes {
            words,
            places,
            width,
            heads,
            layers,
            context,
            decoder_heads,
            decoder_layers,
            bands,
            frequencies,
        };
        if decoder_width != width {
            let e = invalid("an encoder and a decoder of different widths");
            return Err(e.with_expected(width).with_got(decoder_width));
        }
        if filters != bands {
            let e = invalid("filters of another number of bands");
            return Err(e.with_expected(bands).with_got(filters));
        }
        for heads in [heads, decoder_heads] {
            if heads == 0 || !width.is_multiple_of(heads) || width == 0 {
                let e = invalid("heads that are no whole part of the width");
                return Err(e.with_got(heads));
            }
        }
        let filters = filters.checked_mul(frequencies);
        let filters = filters.and_then(|n| n.checked_mul(size_of::<f32>()));
        reader.bytes(filters.ok_or_else(|| invalid("filters that no file holds"))?)?;
        let count_of_words = count(&mut reader)?;
        if count_of_words > words {
            let e = invalid("more words than the model has scores for");
            return Err(e.with_expected(words).with_got(count_of_words));
        }
        let mut words = Vec::new();
        for _ in 0..count_of_words {
            let len = count(&mut reader)?;
            words.push(reader.bytes(len)?);
        }
        Ok(Front {
            sizes,
            words,
            end: reader.at,
        })
    }
}

/// A number of things, which files write in 32 bits with a sign.
pub fn count(reader: &mut Reader) -> Result<usize> {
    let number = reader.u32()?;
    match i32::try_from(number) {
        Ok(number) => Ok(number as usize),
        Err(_) => Err(invalid(format!("a count of {}", number as i32))),
    }
}

/// Bytes with which reading begins: a vocabulary of 50257 words has about half a million.
const FIRST: usize = 1 << 20;

/// Calls `read` with the beginning of a file of `size` bytes; `begin` fills a buffer with the beginning of the file, as much as is needed.
///
/// # Errors
/// Those of [`Front::read`], of `begin` and of `read`; `Limit` where memory is short.
pub fn with_front<T>(
    size: u64,
    begin: &dyn Fn(&mut [u8]) -> Result<()>,
    read: impl FnOnce(&Front) -> Result<T>,
) -> Result<T> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut len = FIRST;
    loop {
        len = len.min(size);
        let mut bytes = AlignedBytes::zeroed(len)?;
        begin(bytes.as_mut_slice())?;
        let bytes = bytes.as_slice();
        let more = |e: &Error| len < size && probe(bytes) && e.code() == ErrorCode::InvalidModel;
        match Front::read(bytes) {
            Ok(front) => return read(&front),
            Err(e) if more(&e) => len = len.saturating_mul(2),
            Err(e) => return Err(e),
        }
    }
}

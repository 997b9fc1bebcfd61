//! What a decoder knows of the words so far, between two steps.

use std::sync::Arc;

use kilim_core::tensor::{AlignedBytes, byte_count};
use kilim_core::{DType, Datum, Dim, Error, ErrorCode, Port, Result, Tensor};

use crate::settings::{CacheNames, Settings};

/// The axis of words in a cache with room, `[1, heads, words, size]`.
const WORDS: usize = 2;

/// Words for which a cache with room begins; the room is a multiple of it.
const ROOM: usize = 256;

/// Words that a cache has room for at least, behind those of a prompt.
const SPARE: usize = 64;

/// The value of an input that an output of the step before gave.
pub struct Cache {
    /// The output that gives it.
    pub from: String,
    dtype: DType,
    /// The shape before the first word.
    start: Vec<usize>,
    /// The axis of words has no fixed length.
    open: bool,
    /// The model writes new words on it: it may be longer than the text.
    roomy: bool,
    /// Whether it is of cross-attention, made of what an encoder made.
    cross: bool,
    /// `None` while a step has it, and behind one that failed.
    value: Option<Datum>,
}

impl Cache {
    /// The cache of the input `port`; `written` says that the model makes it by writing on the input.
    ///
    /// # Errors
    /// `Shape` where its sizes are not known, `Limit` where memory is short.
    pub fn new(
        port: &Port,
        dtype: DType,
        names: &CacheNames,
        written: bool,
        settings: &Settings,
    ) -> Result<Cache> {
        let dims = port.fact.shape.as_ref().map_or(&[][..], |shape| &shape.0);
        let open = dims.len() == 4 && dims[WORDS].known().is_none();
        let window = names.layer.filter(|layer| {
            let of_windows = settings.windows.layers.contains(layer);
            of_windows && open && !written && !names.cross
        });
        // What such a cache has forgotten does not come back: it is as one of fixed length.
        let open = open && window.is_none();
        let mut cache = Cache {
            from: names.given.clone(),
            dtype,
            start: start(
                port,
                settings,
                window.map_or(0, |_| settings.windows.places),
            )?,
            open,
            roomy: open && written && !names.cross,
            cross: names.cross,
            value: None,
        };
        cache.clear()?;
        Ok(cache)
    }

    /// Forgets all words.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn clear(&mut self) -> Result<()> {
        self.value = Some(Tensor::zeros(self.dtype, &self.start)?.into());
        Ok(())
    }

    /// Whether a step that failed has taken it along.
    pub fn is_lost(&self) -> bool {
        self.value.is_none()
    }

    /// What a step is given. A cache with room is given away, so that the model writes where it is.
    ///
    /// # Errors
    /// `State` where it is lost.
    pub fn give(&mut self) -> Result<Datum> {
        let value = match self.roomy {
            true => self.value.take(),
            false => self.value.clone(),
        };
        value.ok_or_else(|| Error::new(ErrorCode::State, "a cache was given away"))
    }

    /// Takes what a step has made of it: the `first` one of a text, or another.
    pub fn take(&mut self, value: Datum, first: bool) {
        // Later steps give a cross cache in any form, since they do not make it.
        if first || !self.cross {
            self.value = Some(value);
        }
    }

    /// Makes room for a text of `words` words, where there is less, and for as many words again, up to those of the
    /// `context`.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Device` where the device that has the cache is gone.
    pub async fn make_room(&mut self, words: usize, context: Option<usize>) -> Result<()> {
        let Some(shape) = self.shape().filter(|_| self.roomy) else {
            return Ok(());
        };
        let have = shape[WORDS];
        if have >= words {
            return Ok(());
        }
        let wanted = words.saturating_add(SPARE).max(2 * have);
        let wanted = wanted.checked_next_multiple_of(ROOM).unwrap_or(words);
        let room = wanted.min(context.unwrap_or(usize::MAX)).max(words);
        self.resize(room).await
    }

    /// Whether it can forget its last words alone.
    pub fn can_be_cut(&self) -> bool {
        self.open
    }

    /// Forgets all words but the first `words`. What a cache with room holds behind them stays there: the model is told how long the
    /// text is, and writes over it.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Device` where the device that has the cache is gone.
    pub async fn cut(&mut self, words: usize) -> Result<()> {
        match self.roomy || self.cross {
            true => Ok(()),
            false => self.resize(words).await,
        }
    }

    async fn resize(&mut self, words: usize) -> Result<()> {
        let tensor = match &self.value {
            Some(Datum::Device(tensor)) => tensor.read().await?,
            Some(datum) => datum.tensor()?.clone(),
            None => return Ok(()),
        };
        self.value = Some(resized(&tensor, words)?.into());
        Ok(())
    }

    fn shape(&self) -> Option<&[usize]> {
        shape_of(self.value.as_ref()?)
    }
}

/// The shape of a tensor, wherever it is.
pub fn shape_of(datum: &Datum) -> Option<&[usize]> {
    match datum {
        Datum::Device(tensor) => Some(&tensor.shape),
        datum => datum.tensor().ok().map(Tensor::shape),
    }
}

/// The first `words` words of a cache `[1, heads, words, size]`, with zeros behind them where it has fewer.
fn resized(cache: &Tensor, words: usize) -> Result<Tensor> {
    let (dtype, mut shape) = (cache.dtype(), cache.shape().to_vec());
    let heads: usize = shape[..WORDS].iter().product();
    shape[WORDS] = words;
    let mut bytes = AlignedBytes::zeroed(byte_count(dtype, &shape)?)?;
    if !cache.is_empty() && words > 0 {
        let (held, all) = (cache.byte_len() / heads, bytes.len() / heads);
        let common = held.min(all);
        let resized = bytes.as_mut_slice().chunks_exact_mut(all);
        for (resized, head) in resized.zip(cache.read()?.chunks_exact(held)) {
            resized[..common].copy_from_slice(&head[..common]);
        }
    }
    Tensor::from_bytes(dtype, &shape, Arc::new(bytes))
}

/// The shape of a cache before the first word: sizes that the model leaves open are one sequence, so many `words`, and what
/// the settings say of heads.
fn start(port: &Port, settings: &Settings, words: usize) -> Result<Vec<usize>> {
    let unknown = || {
        let e = Error::new(ErrorCode::Shape, "a cache of unknown size");
        let e = e.with_input(&port.name).with_got(&port.fact);
        e.with_hint("the model's settings must say how many heads it has, and their size")
    };
    let shape = port.fact.shape.as_ref().ok_or_else(unknown)?;
    let heads = shape.0.len() == 4;
    let size = |(axis, dim): (usize, &Dim)| match (dim.known(), axis) {
        (Some(size), _) => Ok(size),
        (None, 0) => Ok(1),
        (None, 1) if heads => settings.heads.ok_or_else(unknown),
        (None, WORDS) if heads => Ok(words),
        (None, 3) if heads => settings.head_size.ok_or_else(unknown),
        _ => Err(unknown()),
    };
    shape.0.iter().enumerate().map(size).collect()
}

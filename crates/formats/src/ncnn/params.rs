//! What a layer's line says beside its blobs: numbers, lists and texts by id.

use std::collections::BTreeMap;

use kilim_core::error::{Result, unsupported};

use super::invalid;

/// Ids of parameters lie below this (`NCNN_MAX_PARAM_COUNT`).
const MOST: i32 = 32;

/// Ids of lists are counted down from here, those of texts in binary files from [`TEXTS`] (`src/paramdict.cpp`).
const LISTS: i32 = -23300;
const TEXTS: i32 = -23400;

/// How a parameter is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    One,
    List,
    Text,
}

/// The id that a key stands for. In text files a text has the key of a number.
///
/// # Errors
/// `InvalidModel` where it stands for none.
pub fn id_of(key: i32) -> Result<(i32, Form)> {
    let (id, form) = match key {
        _ if key <= TEXTS => (TEXTS.checked_sub(key), Form::Text),
        _ if key <= LISTS => (LISTS.checked_sub(key), Form::List),
        _ => (Some(key), Form::One),
    };
    match id {
        Some(id) if (0..MOST).contains(&id) => Ok((id, form)),
        _ => Err(invalid(format!(
            "a layer has a parameter with the key {key}"
        ))),
    }
}

/// A parameter. Binary files do not say whether a word is an integer or a float.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Number(f64),
    Word(u32),
    Numbers(Vec<f64>),
    Words(Vec<u32>),
    Text(String),
}

/// The parameters of a layer by id.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(BTreeMap<i32, Value>);

/// Stands for what is left out, or follows from the data, in integers.
pub const OPEN: i64 = -233;

impl Params {
    /// Sets a parameter; the last of several counts.
    pub fn set(&mut self, id: i32, value: Value) {
        self.0.insert(id, value);
    }

    /// Whether the parameter is there.
    pub fn has(&self, id: i32) -> bool {
        self.0.contains_key(&id)
    }

    /// An integer.
    ///
    /// # Errors
    /// `InvalidModel` where it is a list, a text or no integer of 32 bits.
    pub fn int(&self, id: i32, default: i64) -> Result<i64> {
        match self.0.get(&id) {
            None => Ok(default),
            Some(Value::Word(word)) => Ok(i64::from(*word as i32)),
            Some(Value::Number(number)) => whole(id, *number),
            Some(_) => Err(wrong(id, "an integer")),
        }
    }

    /// A number that counts something.
    ///
    /// # Errors
    /// Those of [`Params::int`], and `InvalidModel` where it is negative.
    pub fn count(&self, id: i32, default: usize) -> Result<usize> {
        let default = i64::try_from(default).unwrap_or(i64::MAX);
        usize::try_from(self.int(id, default)?)
            .map_err(|_| wrong(id, "a number that is not negative"))
    }

    /// A flag.
    ///
    /// # Errors
    /// Those of [`Params::int`].
    pub fn flag(&self, id: i32, default: bool) -> Result<bool> {
        Ok(self.int(id, default.into())? != 0)
    }

    /// A floating-point number.
    ///
    /// # Errors
    /// `InvalidModel` where it is a list or a text.
    pub fn float(&self, id: i32, default: f32) -> Result<f32> {
        match self.0.get(&id) {
            None => Ok(default),
            Some(Value::Word(word)) => Ok(f32::from_bits(*word)),
            Some(Value::Number(number)) => Ok(*number as f32),
            Some(_) => Err(wrong(id, "a number")),
        }
    }

    /// A list of integers; empty where it is left out.
    ///
    /// # Errors
    /// `InvalidModel` where it is no list of integers.
    pub fn ints(&self, id: i32) -> Result<Vec<i64>> {
        match self.0.get(&id) {
            None => Ok(Vec::new()),
            Some(Value::Words(words)) => Ok(words.iter().map(|&w| i64::from(w as i32)).collect()),
            Some(Value::Numbers(numbers)) => numbers.iter().map(|&n| whole(id, n)).collect(),
            Some(_) => Err(wrong(id, "a list of integers")),
        }
    }

    /// A list of floating-point numbers; empty where it is left out.
    ///
    /// # Errors
    /// `InvalidModel` where it is no list.
    pub fn floats(&self, id: i32) -> Result<Vec<f32>> {
        match self.0.get(&id) {
            None => Ok(Vec::new()),
            Some(Value::Words(words)) => Ok(words.iter().map(|&w| f32::from_bits(w)).collect()),
            Some(Value::Numbers(numbers)) => Ok(numbers.iter().map(|&n| n as f32).collect()),
            Some(_) => Err(wrong(id, "a list of numbers")),
        }
    }

    /// A text; empty where it is left out.
    ///
    /// # Errors
    /// `InvalidModel` where it is none.
    pub fn text(&self, id: i32) -> Result<&str> {
        match self.0.get(&id) {
            None => Ok(""),
            Some(Value::Text(text)) => Ok(text),
            Some(_) => Err(wrong(id, "a text")),
        }
    }

    /// Refuses a layer whose parameter `id` is not 0, with what it asks for.
    ///
    /// # Errors
    /// `Unsupported` where the parameter is not 0.
    pub fn refuse(&self, id: i32, what: &str) -> Result<()> {
        match self.int(id, 0)? {
            0 => Ok(()),
            _ => Err(unsupported(what)),
        }
    }
}

fn whole(id: i32, number: f64) -> Result<i64> {
    let range = f64::from(i32::MIN)..=f64::from(u32::MAX);
    match number.fract() == 0.0 && range.contains(&number) {
        true => Ok(number as i64),
        false => Err(wrong(id, "an integer")),
    }
}

#[cold]
fn wrong(id: i32, expected: &str) -> kilim_core::error::Error {
    invalid(format!("the parameter {id} has another form")).with_expected(expected)
}

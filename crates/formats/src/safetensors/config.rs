//! What a file of settings says: values by their keys, in JSON.

use kilim_core::error::{Error, Result};
use serde_json::Value;

use super::invalid;

/// An object of a file of settings. A key whose value is `null` is not there.
#[derive(Clone, Debug)]
pub struct Config(Value);

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// `InvalidModel` where it is no JSON document with an object.
    pub fn read(text: &[u8]) -> Result<Config> {
        let value: Value = serde_json::from_slice(text)
            .map_err(|e| invalid(format!("the settings of the model: {e}")))?;
        match value.is_object() {
            true => Ok(Config(value)),
            false => Err(invalid("the settings of the model are no object")),
        }
    }

    /// An object of keys and their values.
    pub fn of(values: Vec<(&str, Value)>) -> Config {
        let values = values.into_iter();
        Config(
            values
                .map(|(key, value)| (key.to_string(), value))
                .collect(),
        )
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    /// Whether the file has the key at all, with `null` perhaps.
    pub fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some()
    }

    fn typed<T>(
        &self,
        key: &str,
        what: &str,
        of: impl Fn(&Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let read = |value| of(value).ok_or_else(|| of_type(key, what));
        self.get(key).map(read).transpose()
    }

    /// The object of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it is none.
    pub fn object(&self, key: &str) -> Result<Option<Config>> {
        let of = |value: &Value| value.is_object().then(|| Config(value.clone()));
        self.typed(key, "an object", of)
    }

    /// The text of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it is none.
    pub fn text(&self, key: &str) -> Result<Option<String>> {
        self.typed(key, "a text", |value| value.as_str().map(str::to_string))
    }

    /// The number of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it is none.
    pub fn float(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", Value::as_f64)
    }

    /// What a key says is so or not; not, where it is missing.
    ///
    /// # Errors
    /// `InvalidModel` where it says something else.
    pub fn flag(&self, key: &str) -> Result<bool> {
        let flag = self.typed(key, "true or false", Value::as_bool)?;
        Ok(flag.unwrap_or(false))
    }

    /// The number of a key that counts something.
    ///
    /// # Errors
    /// `InvalidModel` where it is no such number.
    pub fn count(&self, key: &str) -> Result<Option<usize>> {
        self.typed(key, "a count", count)
    }

    /// A count that is needed.
    ///
    /// # Errors
    /// `InvalidModel` where it is missing, or 0.
    pub fn needed(&self, key: &str) -> Result<usize> {
        let count = self.count(key)?.filter(|&n| n > 0);
        count.ok_or_else(|| of_type(key, "a count above 0"))
    }

    /// The numbers of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it has no list of numbers.
    pub fn floats(&self, key: &str) -> Result<Option<Vec<f64>>> {
        self.typed(key, "numbers", |value| {
            value.as_array()?.iter().map(Value::as_f64).collect()
        })
    }

    /// The texts of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it has no list of texts.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<String>>> {
        let text = |value: &Value| value.as_str().map(str::to_string);
        self.typed(key, "texts", |value| {
            value.as_array()?.iter().map(text).collect()
        })
    }

    /// The values of the object of a key, all of them texts.
    ///
    /// # Errors
    /// `InvalidModel` where it is no such object.
    pub fn texts_of(&self, key: &str) -> Result<Vec<&str>> {
        let object = self.get(key).and_then(Value::as_object);
        let texts = object.and_then(|object| object.values().map(Value::as_str).collect());
        texts.ok_or_else(|| of_type(key, "an object of texts"))
    }
}

fn count(value: &Value) -> Option<usize> {
    usize::try_from(value.as_u64()?).ok()
}

/// The error for a key whose value is missing or of another type than `expected`.
pub fn of_type(key: &str, expected: &str) -> Error {
    invalid(format!(
        "the value of `{key}` is missing or of another type"
    ))
    .with_expected(expected)
}

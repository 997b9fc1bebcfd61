//! An operator while it is brought into the graph.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::graph::ValueId;

use super::invalid;
use super::text::OperatorInfo;
use super::value::Value;

/// An operator, and the values that it reads.
pub struct Layer<'a> {
    pub info: &'a OperatorInfo<'a>,
    pub inputs: Vec<Value>,
}

impl Layer<'_> {
    /// An argument by its name, a parameter or an operand; `None` where it is left out, or None.
    pub fn arg(&self, key: &str) -> Option<Value> {
        if let Some(text) = self.info.params.get(key) {
            return Some(Value::of_text(text)).filter(|value| *value != Value::None);
        }
        let operand = self.info.named.get(key)?;
        let place = self.info.inputs.iter().position(|name| name == operand)?;
        Some(self.inputs[place].clone()).filter(|value| *value != Value::None)
    }

    /// An argument by its name, or the operand at `place` where operands have no names.
    pub fn operand(&self, key: &str, place: usize) -> Option<Value> {
        self.arg(key).or_else(|| {
            let operand = *self.info.inputs.get(place)?;
            let named = self.info.named.values().any(|name| *name == operand);
            let value = self.inputs[place].clone();
            (!named && value != Value::None).then_some(value)
        })
    }

    /// An argument that must be there.
    ///
    /// # Errors
    /// `InvalidModel` where it is not.
    pub fn need(&self, key: &str) -> Result<Value> {
        self.arg(key)
            .ok_or_else(|| invalid(format!("the argument `{key}` is missing")))
    }

    /// The tensor that is the argument `key`, or the operand at `place`.
    ///
    /// # Errors
    /// `InvalidModel` where it is missing or no tensor.
    pub fn tensor(&self, key: &str, place: usize) -> Result<ValueId> {
        let value = self.optional_tensor(key, place)?;
        value.ok_or_else(|| invalid(format!("the input `{key}` is missing")))
    }

    /// A tensor that may be left out, see [`Layer::tensor`].
    ///
    /// # Errors
    /// `InvalidModel` where it is no tensor.
    pub fn optional_tensor(&self, key: &str, place: usize) -> Result<Option<ValueId>> {
        match self.operand(key, place) {
            None => Ok(None),
            Some(Value::Tensor(value)) => Ok(Some(value)),
            Some(other) => Err(other.no("a tensor")),
        }
    }

    /// The tensor that the operator is about.
    ///
    /// # Errors
    /// `InvalidModel` where it is missing.
    pub fn x(&self) -> Result<ValueId> {
        self.tensor("input", 0)
    }

    /// All operands, which must be tensors. A list is its elements.
    ///
    /// # Errors
    /// `InvalidModel` where one is something else.
    pub fn tensors(&self) -> Result<Vec<ValueId>> {
        let flat = self.inputs.iter().flat_map(|value| match value {
            Value::List(list) => &list[..],
            one => std::slice::from_ref(one),
        });
        let tensors = flat.map(|value| match value {
            Value::Tensor(value) => Ok(*value),
            other => Err(other.no("a tensor")),
        });
        tensors.collect()
    }

    /// An integer.
    ///
    /// # Errors
    /// `InvalidModel` where it is something else, `Unsupported` where the network computes it.
    pub fn int(&self, key: &str, default: i64) -> Result<i64> {
        self.arg(key).map_or(Ok(default), |value| value.int())
    }

    /// A number.
    ///
    /// # Errors
    /// Those of [`Layer::int`].
    pub fn float(&self, key: &str, default: f64) -> Result<f64> {
        self.arg(key).map_or(Ok(default), |value| value.float())
    }

    /// True or false; files of before write 1 and 0.
    ///
    /// # Errors
    /// Those of [`Layer::int`].
    pub fn flag(&self, key: &str, default: bool) -> Result<bool> {
        Ok(self.int(key, default.into())? != 0)
    }

    /// A word; empty where it is left out.
    ///
    /// # Errors
    /// `InvalidModel` where it is something else.
    pub fn word(&self, key: &str) -> Result<String> {
        match self.arg(key) {
            None => Ok(String::new()),
            Some(Value::Text(text)) => Ok(text),
            Some(other) => Err(other.no("a word")),
        }
    }

    /// Integers.
    ///
    /// # Errors
    /// Those of [`Layer::int`].
    pub fn ints(&self, key: &str) -> Result<Option<Vec<i64>>> {
        self.arg(key).map(|value| value.ints()).transpose()
    }

    /// Numbers of `axes` axes, which count something; one alone is that of all.
    ///
    /// # Errors
    /// `InvalidModel` where they are of another number or negative.
    pub fn counts(&self, key: &str, axes: usize, default: usize) -> Result<Vec<usize>> {
        let Some(numbers) = self.ints(key)? else {
            return Ok(vec![default; axes]);
        };
        let numbers = match numbers[..] {
            [one] => vec![one; axes],
            _ => numbers,
        };
        if numbers.len() != axes {
            return Err(invalid(format!("`{key}` is for another number of axes"))
                .with_expected(axes)
                .with_got(numbers.len()));
        }
        let counts = numbers.into_iter().map(usize::try_from);
        let counts = counts.collect::<std::result::Result<_, _>>();
        counts.map_err(|_| invalid(format!("`{key}` is negative, or too large")))
    }

    /// Numbers that must not be 0, see [`Layer::counts`].
    ///
    /// # Errors
    /// Those of [`Layer::counts`], and `InvalidModel` where one is 0.
    pub fn positives(&self, key: &str, axes: usize, default: usize) -> Result<Vec<usize>> {
        let counts = self.counts(key, axes, default)?;
        match counts.contains(&0) {
            true => Err(invalid(format!("`{key}` must not be 0"))),
            false => Ok(counts),
        }
    }

    /// A number that must not be 0.
    ///
    /// # Errors
    /// Those of [`Layer::positives`].
    pub fn positive(&self, key: &str, default: usize) -> Result<usize> {
        Ok(self.positives(key, 1, default)?[0])
    }

    /// An element type.
    ///
    /// # Errors
    /// `Unsupported` for complex numbers, `InvalidModel` where it is none.
    pub fn dtype(&self, key: &str) -> Result<Option<DType>> {
        self.arg(key).map(|value| value.dtype()).transpose()
    }

    /// Refuses an argument that is not what it is by default.
    ///
    /// # Errors
    /// `Unsupported` where it is.
    pub fn refuse(&self, key: &str, default: Value, what: &str) -> Result<()> {
        match self.arg(key) {
            None => Ok(()),
            Some(value) if value == default => Ok(()),
            Some(_) => Err(unsupported(what)),
        }
    }
}

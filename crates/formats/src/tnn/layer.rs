//! A layer while it is brought into the graph.

use kilim_core::error::Result;
use kilim_core::graph::ValueId;

use super::invalid;

/// A layer, and the values that it reads.
pub struct Layer<'a> {
    /// What a network calls it; weights are found by it.
    pub name: &'a str,
    pub inputs: Vec<ValueId>,
    /// The number of its outputs.
    pub outputs: usize,
    pub words: &'a [String],
    /// The scale of the numbers of the first input, of a layer whose blobs are integers of 8 bits.
    pub scale: Option<f32>,
}

impl Layer<'_> {
    /// Input `i`.
    ///
    /// # Errors
    /// `InvalidModel` where the layer has fewer.
    pub fn input(&self, i: usize) -> Result<ValueId> {
        let input = self.inputs.get(i).copied();
        input.ok_or_else(|| invalid(format!("input {i} is missing")))
    }

    /// The parameters from the first on.
    pub fn params(&self) -> Params<'_> {
        Params { rest: self.words }
    }
}

/// The parameters of a layer in their order. Those that are left out stand at the end.
#[derive(Clone, Copy)]
pub struct Params<'a> {
    rest: &'a [String],
}

impl Params<'_> {
    /// How many are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// The next number, a float as files write it.
    ///
    /// # Errors
    /// `InvalidModel` where it is no number.
    pub fn float(&mut self, default: f32) -> Result<f32> {
        let Some(word) = self.next() else {
            return Ok(default);
        };
        word.parse()
            .map_err(|_| invalid("a parameter is no number").with_got(word))
    }

    /// The next number, an integer.
    ///
    /// # Errors
    /// `InvalidModel` where it is none of 32 bits.
    pub fn int(&mut self, default: i64) -> Result<i64> {
        let Some(word) = self.next() else {
            return Ok(default);
        };
        let number = word.parse::<i32>().map(i64::from);
        number.map_err(|_| invalid("a parameter is no integer").with_got(word))
    }

    /// The next number, which counts something.
    ///
    /// # Errors
    /// Those of [`Params::int`], and `InvalidModel` where it is negative.
    pub fn count(&mut self, default: usize) -> Result<usize> {
        let number = self.int(i64::try_from(default).unwrap_or(i64::MAX))?;
        usize::try_from(number).map_err(|_| invalid("a parameter is negative").with_got(number))
    }

    /// The next number, which must not be 0: channels, kernels, strides.
    ///
    /// # Errors
    /// Those of [`Params::count`], and `InvalidModel` where it is 0.
    pub fn positive(&mut self, default: usize) -> Result<usize> {
        match self.count(default)? {
            0 => Err(invalid("a parameter must not be 0")),
            n => Ok(n),
        }
    }

    /// The next `n` numbers, which count something; 0 for those that are left out.
    ///
    /// # Errors
    /// Those of [`Params::count`].
    pub fn counts(&mut self, n: usize) -> Result<Vec<usize>> {
        (0..n).map(|_| self.count(0)).collect()
    }

    /// The next `n` numbers, which must not be 0.
    ///
    /// # Errors
    /// Those of [`Params::positive`].
    pub fn positives(&mut self, n: usize, default: usize) -> Result<Vec<usize>> {
        (0..n).map(|_| self.positive(default)).collect()
    }

    /// The next `n` integers.
    ///
    /// # Errors
    /// Those of [`Params::int`], and `InvalidModel` where there are fewer.
    pub fn ints(&mut self, n: usize) -> Result<Vec<i64>> {
        if n > self.left() {
            return Err(invalid("a list is longer than the layer's line").with_got(n));
        }
        (0..n).map(|_| self.int(0)).collect()
    }

    /// The next integers: as many as the first says.
    ///
    /// # Errors
    /// Those of [`Params::ints`].
    pub fn list(&mut self) -> Result<Vec<i64>> {
        let n = self.count(0)?;
        self.ints(n)
    }
}

//! The parameters of one dispatch, as words of its uniform buffer.

/// Words, and whether all numbers fitted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Words {
    pub words: Vec<u32>,
    /// A number did not fit in 32 bits, or a list in its room.
    pub overflow: bool,
}

impl Words {
    /// Adds words as they are.
    pub fn raw(&mut self, words: &[u32]) {
        self.words.extend(words);
    }

    /// Adds an `f32`.
    pub fn float(&mut self, value: f32) {
        self.words.push(value.to_bits());
    }

    /// Adds a `u32` for each value.
    pub fn sizes(&mut self, values: &[usize]) {
        for &value in values {
            self.overflow |= u32::try_from(value).is_err();
            self.words.push(value as u32);
        }
    }

    /// Adds an `i32` for each value.
    pub fn signed(&mut self, values: &[i64]) {
        for &value in values {
            self.overflow |= i32::try_from(value).is_err();
            self.words.push(value as i32 as u32);
        }
    }

    /// Adds up to `room` `u32`s, zeros behind them.
    pub fn list(&mut self, values: &[usize], room: usize) {
        let known = values.len().min(room);
        self.overflow |= known < values.len();
        self.sizes(&values[..known]);
        self.skip(room - known);
    }

    /// Adds up to `room` `i32`s, zeros behind them.
    pub fn signed_list(&mut self, values: &[i64], room: usize) {
        let known = values.len().min(room);
        self.overflow |= known < values.len();
        self.signed(&values[..known]);
        self.skip(room - known);
    }

    /// Adds zeros.
    pub fn skip(&mut self, words: usize) {
        self.words.resize(self.words.len() + words, 0);
    }
}

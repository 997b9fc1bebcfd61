//! The operator `pnnx.Expression` (`expand_expression` in `ir.cpp`): `add(@0,mul(@1,2))`, with operands by their numbers, calls, literals and
//! lists.

use kilim_core::error::{Error, ErrorCode, Result};

use super::import::Import;
use super::invalid;
use super::layer::Layer;
use super::numbers;
use super::value::Value;

/// Calls in each other, at most.
const DEPTH: usize = 200;

/// The values that an expression gives: one.
pub fn expression(imp: &mut Import, layer: &Layer) -> Result<Vec<Value>> {
    Ok(vec![evaluate(imp, layer, "expr")?])
}

/// What the text of a parameter stands for.
///
/// # Errors
/// `InvalidModel` where it is garbled, `Limit` where calls stand in each other too deep, `Unsupported` for unknown functions.
pub fn evaluate(imp: &mut Import, layer: &Layer, key: &str) -> Result<Value> {
    let text = layer.info.params.get(key);
    let text = *text.ok_or_else(|| invalid(format!("the argument `{key}` is missing")))?;
    let mut reader = Reader {
        rest: text,
        depth: 0,
    };
    let value = reader.value(imp, layer)?;
    match reader.rest {
        "" => Ok(value),
        rest => Err(garbled(rest)),
    }
}

fn garbled(rest: &str) -> Error {
    let got: String = rest.chars().take(64).collect();
    invalid("an expression is garbled").with_got(got)
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    /// A call, a list, an operand or a literal.
    fn value(&mut self, imp: &mut Import, layer: &Layer) -> Result<Value> {
        if self.depth == DEPTH {
            let message = "calls of an expression stand too deep in each other";
            return Err(
                Error::new(ErrorCode::Limit, message).with_expected(format!("at most {DEPTH}"))
            );
        }
        if self.takes('[') {
            return Value::list(self.list(imp, layer, ']')?);
        }
        let word = self.word();
        if self.takes('(') {
            let arguments = self.list(imp, layer, ')')?;
            return numbers::call(imp, word, &arguments);
        }
        if let Some(number) = word.strip_prefix('@') {
            let input = number.parse().ok().and_then(|i: usize| layer.inputs.get(i));
            return input
                .cloned()
                .ok_or_else(|| invalid("an expression has no such operand").with_got(word));
        }
        match Value::of_text(word) {
            Value::Text(_) => Err(garbled(if word.is_empty() { self.rest } else { word })),
            literal => Ok(literal),
        }
    }

    /// Values up to the sign that ends them.
    fn list(&mut self, imp: &mut Import, layer: &Layer, end: char) -> Result<Vec<Value>> {
        let mut list = Vec::new();
        if self.takes(end) {
            return Ok(list);
        }
        self.depth += 1;
        loop {
            list.push(self.value(imp, layer)?);
            if self.takes(end) {
                break;
            }
            if !self.takes(',') {
                return Err(garbled(self.rest));
            }
        }
        self.depth -= 1;
        Ok(list)
    }

    fn takes(&mut self, sign: char) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self.rest.find(['(', ')', '[', ']', ',']);
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }
}

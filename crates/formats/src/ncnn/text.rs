//! Networks in text, `.param`: the magic, the numbers of layers and blobs, then a line for each layer with type, name, numbers of
//! inputs and outputs, their blobs, and parameters `id=value` (`Net::load_param` in `src/net.cpp`).

use std::str::SplitAsciiWhitespace;

use kilim_core::Limits;
use kilim_core::error::Result;

use super::invalid;
use super::network::{Blobs, LayerInfo, MAGIC, Network, layers};
use super::params::{Form, Params, Value, id_of};

/// Whether a file begins like a network in text.
pub fn probe(bytes: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]);
    let mut words = begin
        .trim_start_matches('\u{feff}')
        .split_ascii_whitespace();
    words.next() == Some(&MAGIC.to_string())
        && words.next().is_some_and(|w| w.parse::<i64>().is_ok())
}

/// Reads a network.
///
/// # Errors
/// `InvalidModel` and `InvalidGraph` where the text is garbled, `Limit` where it has too many layers.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Network> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the file is no text"))?;
    let mut words = Words {
        rest: text.trim_start_matches('\u{feff}').split_ascii_whitespace(),
        next: None,
    };
    words.number()?;
    let count = layers(words.number()?, limits)?;
    words.number()?;
    let mut blobs = Blobs::default();
    let mut network = Network {
        layers: Vec::new(),
        blobs: Vec::new(),
    };
    for _ in 0..count {
        let (kind, name) = (words.word()?, words.word()?);
        let layer = words.layer(kind, name, &mut blobs);
        network.layers.push(layer.map_err(|e| e.at(name, kind))?);
    }
    network.blobs = blobs.into_names();
    Ok(network)
}

struct Words<'a> {
    rest: SplitAsciiWhitespace<'a>,
    /// A word that was looked at.
    next: Option<&'a str>,
}

impl<'a> Words<'a> {
    fn peek(&mut self) -> Option<&'a str> {
        self.next = self.next.or_else(|| self.rest.next());
        self.next
    }

    fn word(&mut self) -> Result<&'a str> {
        let word = self
            .peek()
            .ok_or_else(|| invalid("the file ends too early"))?;
        self.next = None;
        Ok(word)
    }

    fn number(&mut self) -> Result<i64> {
        let word = self.word()?;
        word.parse()
            .map_err(|_| invalid("a number is missing").with_got(word))
    }

    fn layer(&mut self, kind: &str, name: &str, blobs: &mut Blobs) -> Result<LayerInfo> {
        let (inputs, outputs) = (self.number()?, self.number()?);
        let bottoms = (0..inputs)
            .map(|_| blobs.read(self.word()?))
            .collect::<Result<_>>()?;
        let tops = (0..outputs)
            .map(|_| blobs.write(self.word()?))
            .collect::<Result<_>>()?;
        Ok(LayerInfo {
            kind: kind.to_string(),
            name: name.to_string(),
            bottoms,
            tops,
            params: self.params()?,
        })
    }

    fn params(&mut self) -> Result<Params> {
        let mut params = Params::default();
        while let Some((key, value)) = self.peek().and_then(key_and_value) {
            self.next = None;
            let (id, form) = id_of(key)?;
            let value = match form {
                Form::One if value.starts_with('"') => Value::Text(self.quoted(value)?),
                _ => read_value(value, form)?,
            };
            params.set(id, value);
        }
        Ok(params)
    }

    /// A text in quotes, whose blanks separate words.
    fn quoted(&mut self, begin: &'a str) -> Result<String> {
        let mut text = begin[1..].to_string();
        while !text.ends_with('"') {
            text.push(' ');
            text.push_str(self.word()?);
        }
        text.pop();
        Ok(text)
    }
}

fn key_and_value(word: &str) -> Option<(i32, &str)> {
    let (key, value) = word.split_once('=')?;
    Some((key.parse().ok()?, value))
}

fn read_value(text: &str, form: Form) -> Result<Value> {
    let number = |word: &str| -> Result<f64> {
        word.parse()
            .map_err(|_| invalid("a parameter is no number").with_got(word))
    };
    let numbers = |words: &str| -> Result<Vec<f64>> {
        words
            .split(',')
            .filter(|w| !w.is_empty())
            .map(number)
            .collect()
    };
    if form == Form::List {
        // The older form of lists: their length in front.
        let (length, rest) = text.split_once(',').unwrap_or((text, ""));
        let list = numbers(rest)?;
        return match length.parse() == Ok(list.len()) {
            true => Ok(Value::Numbers(list)),
            false => Err(invalid("a list has another length than the file says")
                .with_expected(length)
                .with_got(list.len())),
        };
    }
    match text.as_bytes().first() {
        Some(first) if first.is_ascii_alphabetic() => Ok(Value::Text(text.to_string())),
        _ if text.contains(',') => Ok(Value::Numbers(numbers(text)?)),
        _ => Ok(Value::Number(number(text)?)),
    }
}

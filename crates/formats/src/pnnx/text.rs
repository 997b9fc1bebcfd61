//! Networks in text (`Graph::load` in `ir.cpp`): the magic, which ncnn's networks have, too, the numbers of operators and operands, then a
//! line for each operator: type, name, numbers of inputs and outputs, their operands, and words. A word is a parameter `key=value`, weights
//! `@key=(3,4)f32`, the name of an input `$key=operand`, or what is known of an operand, `#operand=(1,?)f32`.

use std::collections::HashMap;

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::{Dim, Fact, Limits, Shape};

use super::invalid;

/// What files begin with.
const MAGIC: &str = "7767517";

/// An operator. Words are those of the file.
#[derive(Default)]
pub struct OperatorInfo<'a> {
    pub kind: &'a str,
    pub name: &'a str,
    pub inputs: Vec<&'a str>,
    pub outputs: Vec<&'a str>,
    pub params: HashMap<&'a str, &'a str>,
    /// Operands by what PyTorch calls the argument.
    pub named: HashMap<&'a str, &'a str>,
    /// Weights by their names, with element type and shape.
    pub weights: HashMap<&'a str, (&'a str, Vec<usize>)>,
    /// What the file says of operands.
    pub known: HashMap<&'a str, Fact>,
}

/// A whole network.
pub struct Network<'a> {
    pub operators: Vec<OperatorInfo<'a>>,
}

/// The first words of the first three lines that are not blank.
fn begins(text: &str) -> Option<[&str; 3]> {
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    let mut first = || lines.by_ref().find_map(|l| l.split_whitespace().next());
    Some([first()?, first()?, first()?])
}

/// Whether a file begins like a network. Operators of pnnx are in modules of PyTorch, with a dot or two colons in their names; ncnn's
/// layers are not.
pub fn probe(bytes: &[u8]) -> bool {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(256)]);
    begins(&begin).is_some_and(|[magic, count, kind]| {
        magic == MAGIC
            && count.parse::<u64>().is_ok()
            && (kind.contains('.') || kind.contains("::"))
    })
}

/// Reads a network.
///
/// # Errors
/// `InvalidModel` where the text is garbled, `Limit` where it has too many operators.
pub fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Network<'a>> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("the file is no text"))?;
    let lines = text.trim_start_matches('\u{feff}').lines();
    let mut lines = lines.map(str::trim).filter(|line| !line.is_empty());
    if lines.next() != Some(MAGIC) {
        return Err(invalid("the first line is no magic number"));
    }
    let mut words = lines.next().unwrap_or_default().split_ascii_whitespace();
    let expected = count(words.next())?;
    let mut operators = Vec::new();
    for line in lines {
        limits.check_nodes(operators.len() + 1)?;
        operators.push(operator(line)?);
    }
    match operators.len() == expected {
        true => Ok(Network { operators }),
        false => Err(
            invalid("the file has another number of operators than it says")
                .with_expected(expected)
                .with_got(operators.len()),
        ),
    }
}

fn count(word: Option<&str>) -> Result<usize> {
    let word = word.ok_or_else(|| invalid("a line ends too early"))?;
    let number = word.parse();
    number.map_err(|_| invalid("a number is missing").with_got(word))
}

fn operator(line: &str) -> Result<OperatorInfo<'_>> {
    let mut words = line.split_ascii_whitespace();
    let (Some(kind), Some(name)) = (words.next(), words.next()) else {
        return Err(invalid("an operator has no name").with_got(line));
    };
    let mut read = || -> Result<OperatorInfo<'_>> {
        let (inputs, outputs) = (count(words.next())?, count(words.next())?);
        let mut operands = |n: usize| -> Result<Vec<&str>> {
            let operands: Vec<_> = words.by_ref().take(n).collect();
            match operands.len() == n {
                true => Ok(operands),
                false => Err(invalid("the line of an operator ends within its operands")),
            }
        };
        let mut info = OperatorInfo {
            kind,
            name,
            inputs: operands(inputs)?,
            outputs: operands(outputs)?,
            ..OperatorInfo::default()
        };
        for word in words.by_ref() {
            let (key, value) = word
                .split_once('=')
                .ok_or_else(|| invalid("a word of an operator has no value").with_got(word))?;
            if let Some(key) = key.strip_prefix('@') {
                info.weights.insert(key, weights(value)?);
            } else if let Some(key) = key.strip_prefix('$') {
                info.named.insert(key, value);
            } else if let Some(key) = key.strip_prefix('#') {
                info.known.insert(key, fact(value)?);
            } else {
                info.params.insert(key, value);
            }
        }
        Ok(info)
    };
    read().map_err(|error| error.at(name, kind))
}

/// The dimensions in brackets, and the element type behind them.
fn shaped(text: &str) -> Result<(Vec<&str>, &str)> {
    let wrong = || invalid("a shape is garbled").with_got(text);
    let (dims, dtype) = text.split_once(')').ok_or_else(wrong)?;
    let dims = dims.strip_prefix('(').ok_or_else(wrong)?;
    Ok((
        dims.split(',').filter(|dim| !dim.is_empty()).collect(),
        dtype,
    ))
}

fn weights(text: &str) -> Result<(&str, Vec<usize>)> {
    let (dims, dtype) = shaped(text)?;
    let dims = dims.into_iter().map(|dim| count(Some(dim)));
    Ok((dtype, dims.collect::<Result<_>>()?))
}

/// `(1,?,224)f32`. Sizes that differ from run to run are signs of interrogation, or texts with `%`.
fn fact(text: &str) -> Result<Fact> {
    let (dims, dtype) = shaped(text)?;
    let dims = dims.into_iter().map(|dim| match dim.parse() {
        Ok(n) => Dim::Known(n),
        Err(_) => Dim::Unknown,
    });
    Ok(Fact {
        dtype: element_type(dtype).ok(),
        shape: Some(Shape(dims.collect())),
        ..Fact::default()
    })
}

/// Element types (`string_to_type` in `ir.cpp`).
///
/// # Errors
/// `Unsupported` for complex numbers and others.
pub fn element_type(name: &str) -> Result<DType> {
    Ok(match name {
        "f32" => DType::F32,
        "f64" => DType::F64,
        "f16" => DType::F16,
        "bf16" => DType::BF16,
        "i64" => DType::I64,
        "i32" => DType::I32,
        "i16" => DType::I16,
        "i8" => DType::I8,
        "u8" => DType::U8,
        "bool" => DType::Bool,
        other => return Err(unsupported(format!("the element type `{other}`"))),
    })
}

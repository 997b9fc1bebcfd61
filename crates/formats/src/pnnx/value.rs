//! What operands and arguments are: tensors, and what PyTorch's calls take beside them.

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::graph::ValueId;

use super::invalid;

/// An operand or an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Tensor(ValueId),
}

impl From<ValueId> for Value {
    fn from(value: ValueId) -> Value {
        Value::Tensor(value)
    }
}

/// What stands for the largest and the smallest index: pnnx writes indices in 32 bits.
const LAST: i64 = i32::MAX as i64;
const FIRST: i64 = i32::MIN as i64;

/// An index in a slice.
pub fn open(index: i64) -> i64 {
    match index {
        LAST.. => i64::MAX,
        ..=FIRST => i64::MIN,
        index => index,
    }
}

/// Elements of a list together with those of lists in it, at most: an operand that is a list twice in another is copied twice.
const MOST_ELEMENTS: usize = 1 << 16;

impl Value {
    /// A list of values.
    ///
    /// # Errors
    /// `Limit` where it is very long.
    pub fn list(values: Vec<Value>) -> Result<Value> {
        let list = Value::List(values);
        if list.len() > MOST_ELEMENTS {
            let message = "a list has too many elements";
            let error = Error::new(ErrorCode::Limit, message);
            return Err(error.with_expected(format!("at most {MOST_ELEMENTS}")));
        }
        Ok(list)
    }

    fn len(&self) -> usize {
        match self {
            Value::List(list) => 1 + list.iter().map(Value::len).sum::<usize>(),
            _ => 1,
        }
    }

    /// A parameter (`Parameter::parse_from_string` in `ir.cpp`).
    pub fn of_text(text: &str) -> Value {
        let inner = |open, close| text.strip_prefix(open)?.strip_suffix(close);
        if let Some(list) = inner('(', ')').or_else(|| inner('[', ']')) {
            let words = list.split(',').filter(|word| !word.is_empty());
            return Value::List(words.map(Value::of_word).collect());
        }
        Value::of_word(text)
    }

    fn of_word(word: &str) -> Value {
        match word {
            "None" => return Value::None,
            "True" => return Value::Bool(true),
            "False" => return Value::Bool(false),
            _ => (),
        }
        if let Ok(n) = word.parse() {
            return Value::Int(n);
        }
        match word.parse() {
            Ok(x) => Value::Float(x),
            Err(_) => Value::Text(word.to_string()),
        }
    }

    /// An integer.
    ///
    /// # Errors
    /// `Unsupported` where it is computed when the network runs, `InvalidModel` for anything else.
    pub fn int(&self) -> Result<i64> {
        match *self {
            Value::Int(n) => Ok(n),
            Value::Bool(b) => Ok(b.into()),
            Value::Tensor(_) => Err(unsupported("an argument that the network computes")),
            _ => Err(self.no("an integer")),
        }
    }

    /// A number.
    ///
    /// # Errors
    /// Those of [`Value::int`].
    pub fn float(&self) -> Result<f64> {
        match *self {
            Value::Float(x) => Ok(x),
            _ => self.int().map(|n| n as f64).map_err(|e| match self {
                Value::Tensor(_) => e,
                _ => self.no("a number"),
            }),
        }
    }

    /// Integers; one alone is a list of one.
    ///
    /// # Errors
    /// Those of [`Value::int`].
    pub fn ints(&self) -> Result<Vec<i64>> {
        match self {
            Value::List(list) => list.iter().map(Value::int).collect(),
            one => Ok(vec![one.int()?]),
        }
    }

    /// An element type, `torch.float` for instance.
    ///
    /// # Errors
    /// `Unsupported` for complex numbers, `InvalidModel` for anything else.
    pub fn dtype(&self) -> Result<DType> {
        let Value::Text(name) = self else {
            return Err(self.no("an element type"));
        };
        Ok(match name.strip_prefix("torch.").unwrap_or(name) {
            "float" | "float32" => DType::F32,
            "double" | "float64" => DType::F64,
            "half" | "float16" => DType::F16,
            "bfloat16" => DType::BF16,
            "long" | "int64" => DType::I64,
            "int" | "int32" => DType::I32,
            "short" | "int16" => DType::I16,
            "int8" => DType::I8,
            "uint8" => DType::U8,
            "bool" => DType::Bool,
            other => return Err(unsupported(format!("the element type `{other}`"))),
        })
    }

    /// An argument that is something else than it should be.
    pub fn no(&self, expected: &str) -> Error {
        let got = match self {
            Value::Tensor(_) => "a tensor".to_string(),
            Value::List(_) => "a list".to_string(),
            Value::Text(text) => text.chars().take(64).collect(),
            other => format!("{}", Shown(other)),
        };
        invalid("an argument is something else than PyTorch takes")
            .with_expected(expected)
            .with_got(got)
    }
}

struct Shown<'a>(&'a Value);

impl std::fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) => write!(f, "{x}"),
            _ => write!(f, "None"),
        }
    }
}

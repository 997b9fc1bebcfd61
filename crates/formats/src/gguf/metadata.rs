//! What a file says of its model: values by their keys.

use std::collections::HashMap;

use kilim_core::error::{Error, Result, unsupported};

use super::invalid;
use super::reader::Reader;

/// The types of values (`gguf_metadata_value_type` of the specification, `docs/gguf.md` in the repository of ggml).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    List,
    U64,
    I64,
    F64,
}

/// All types, each at its number.
const TYPES: [Type; 13] = [
    Type::U8,
    Type::I8,
    Type::U16,
    Type::I16,
    Type::U32,
    Type::I32,
    Type::F32,
    Type::Bool,
    Type::Text,
    Type::List,
    Type::U64,
    Type::I64,
    Type::F64,
];

/// Lists in lists, at most.
const DEPTH: usize = 8;

impl Type {
    fn read(reader: &mut Reader) -> Result<Type> {
        let number = reader.u32()?;
        let known = usize::try_from(number).ok().and_then(|i| TYPES.get(i));
        known
            .copied()
            .ok_or_else(|| invalid(format!("a value of the unknown type {number}")))
    }

    /// The bytes of a value; of one that may have any number of them, the fewest.
    fn least(self) -> usize {
        match self {
            Type::U8 | Type::I8 | Type::Bool => 1,
            Type::U16 | Type::I16 => 2,
            Type::U32 | Type::I32 | Type::F32 => 4,
            Type::U64 | Type::I64 | Type::F64 | Type::Text => 8,
            Type::List => 12,
        }
    }
}

/// A value, as it stands in the file.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Int(i64),
    /// More than an `i64` holds.
    Large(u64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    List(List<'a>),
}

impl Value<'_> {
    /// The value as text; of a list, how many values it has.
    fn described(self) -> String {
        match self {
            Value::Int(n) => n.to_string(),
            Value::Large(n) => n.to_string(),
            // The shortest text that stands for the number, which most files have in 32 bits.
            Value::Float(n) if f64::from(n as f32) == n => (n as f32).to_string(),
            Value::Float(n) => n.to_string(),
            Value::Bool(is) => is.to_string(),
            Value::Text(text) => text.to_string(),
            Value::List(list) => format!("[{} values]", list.count()),
        }
    }
}

/// Values of one type, which are read anew each time.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    of: Type,
    count: usize,
    bytes: &'a [u8],
}

impl<'a> List<'a> {
    /// The values in their order. The list was walked when the file was read, so that none of them ends too early.
    pub fn values(self) -> impl Iterator<Item = Value<'a>> {
        let mut reader = Reader::new(self.bytes);
        (0..self.count).map_while(move |_| value(&mut reader, self.of, 0).ok())
    }

    /// How many values there are.
    pub fn count(self) -> usize {
        self.count
    }
}

fn value<'a>(reader: &mut Reader<'a>, of: Type, depth: usize) -> Result<Value<'a>> {
    let int = |n: u64| i64::try_from(n).map_or(Value::Large(n), Value::Int);
    Ok(match of {
        Type::U8 => Value::Int(i64::from(reader.bytes(1)?[0])),
        Type::I8 => Value::Int(i64::from(reader.bytes(1)?[0] as i8)),
        Type::U16 | Type::I16 => {
            let bytes = reader.bytes(2)?;
            let n = u16::from_le_bytes([bytes[0], bytes[1]]);
            Value::Int(match of {
                Type::U16 => i64::from(n),
                _ => i64::from(n as i16),
            })
        }
        Type::U32 => Value::Int(i64::from(reader.u32()?)),
        Type::I32 => Value::Int(i64::from(reader.u32()? as i32)),
        Type::F32 => Value::Float(f64::from(f32::from_bits(reader.u32()?))),
        Type::Bool => Value::Bool(reader.bytes(1)?[0] != 0),
        Type::Text => Value::Text(reader.text()?),
        Type::U64 => int(reader.u64()?),
        Type::I64 => Value::Int(reader.u64()? as i64),
        Type::F64 => Value::Float(f64::from_bits(reader.u64()?)),
        Type::List => Value::List(list(reader, depth)?),
    })
}

fn list<'a>(reader: &mut Reader<'a>, depth: usize) -> Result<List<'a>> {
    if depth == DEPTH {
        return Err(invalid("lists in lists, too deep"));
    }
    let of = Type::read(reader)?;
    let count = reader.count_of(of.least())?;
    let mut walk = Reader::new(reader.rest());
    match of {
        Type::Text | Type::List => {
            for _ in 0..count {
                value(&mut walk, of, depth + 1)?;
            }
        }
        _ => walk.at = count * of.least(),
    }
    let bytes = reader.bytes(walk.at)?;
    Ok(List { of, count, bytes })
}

/// The values of a file by their keys.
pub struct Metadata<'a> {
    values: HashMap<&'a str, Value<'a>>,
    /// The keys in the order of the file.
    keys: Vec<&'a str>,
}

/// Bytes of a key and its value, at least.
pub const LEAST: usize = 8 + 4 + 1;

impl<'a> Metadata<'a> {
    /// Reads `count` keys and values.
    ///
    /// # Errors
    /// `InvalidModel` where they are garbled, or a key is there twice.
    pub fn read(reader: &mut Reader<'a>, count: usize) -> Result<Metadata<'a>> {
        let (mut values, mut keys) = (HashMap::new(), Vec::new());
        for _ in 0..count {
            let key = reader.text()?;
            let of = Type::read(reader)?;
            let value = value(reader, of, 0)?;
            if values.insert(key, value).is_some() {
                return Err(invalid(format!("the key `{key}` is there twice")));
            }
            keys.push(key);
        }
        Ok(Metadata { values, keys })
    }

    /// The value of a key, where there is one.
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.values.get(key).copied()
    }

    /// What the file says of itself: all keys with their values as texts; of a list, how many values it has.
    ///
    /// # Errors
    /// `Limit` where there are too many keys.
    pub fn described(&self) -> Result<kilim_core::Metadata> {
        let text = |key: &str| match self.get(key) {
            Some(Value::Text(text)) => text.to_string(),
            _ => String::new(),
        };
        let mut described = kilim_core::Metadata {
            name: text("general.name"),
            description: text("general.description"),
            version: text("general.version"),
            ..kilim_core::Metadata::default()
        };
        let keys = self.keys.iter().filter(|key| !key.is_empty());
        for (key, value) in keys.filter_map(|key| Some((*key, self.get(key)?))) {
            described.add(key, value.described())?;
        }
        Ok(described)
    }

    /// The text of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it has another type.
    pub fn text(&self, key: &str) -> Result<Option<&'a str>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(of_type(key, "a text")),
        }
    }

    /// The number of a key that counts something.
    ///
    /// # Errors
    /// `InvalidModel` where it is no such number.
    pub fn count(&self, key: &str) -> Result<Option<usize>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Int(n)) => usize::try_from(n)
                .map(Some)
                .map_err(|_| of_type(key, "a count")),
            Some(_) => Err(of_type(key, "a count")),
        }
    }

    /// A count that is needed.
    ///
    /// # Errors
    /// `InvalidModel` where it is missing, or 0.
    pub fn needed(&self, key: &str) -> Result<usize> {
        let count = self.count(key)?.filter(|&n| n > 0);
        count.ok_or_else(|| of_type(key, "a count above 0"))
    }

    /// The floating-point number of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it has another type.
    pub fn float(&self, key: &str) -> Result<Option<f64>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Float(n)) => Ok(Some(n)),
            Some(_) => Err(of_type(key, "a floating-point number")),
        }
    }

    /// What a key says is so or not.
    ///
    /// # Errors
    /// `InvalidModel` where it has another type.
    pub fn flag(&self, key: &str) -> Result<Option<bool>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(is)) => Ok(Some(is)),
            Some(_) => Err(of_type(key, "true or false")),
        }
    }

    /// The list of a key.
    ///
    /// # Errors
    /// `InvalidModel` where it is no list.
    pub fn list(&self, key: &str) -> Result<Option<List<'a>>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::List(list)) => Ok(Some(list)),
            Some(_) => Err(of_type(key, "a list")),
        }
    }

    /// A count for each of `layers` layers: one for all, or a list.
    ///
    /// # Errors
    /// `InvalidModel` where it is neither.
    pub fn counts(&self, key: &str, layers: usize) -> Result<Option<Vec<usize>>> {
        let list = match self.get(key) {
            Some(Value::List(list)) => list,
            _ => return Ok(self.count(key)?.map(|n| vec![n; layers])),
        };
        let counts: Option<Vec<usize>> = list
            .values()
            .map(|value| match value {
                Value::Int(n) => usize::try_from(n).ok(),
                _ => None,
            })
            .collect();
        match counts {
            Some(counts) if counts.len() == layers => Ok(Some(counts)),
            _ => Err(of_type(key, "a count for each layer")),
        }
    }

    /// Refuses a key whose text is none of `values`, where it is there.
    ///
    /// # Errors
    /// `Unsupported` where it is another; `InvalidModel` where it is no text.
    pub fn only_text(&self, key: &str, values: &[&str]) -> Result<()> {
        match self.text(key)? {
            Some(text) if !values.contains(&text) => {
                Err(unsupported(format!("`{key}` is `{text}`")).with_expected(values.join(", ")))
            }
            _ => Ok(()),
        }
    }
}

fn of_type(key: &str, expected: &str) -> Error {
    invalid(format!(
        "the value of `{key}` is missing or of another type"
    ))
    .with_expected(expected)
}

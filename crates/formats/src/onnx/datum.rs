//! Values in files of their own, as ONNX test cases have them: `TensorProto`, `SequenceProto`,
//! `MapProto`, `OptionalProto`. In the last three the name is field 1, and one field a form:
//!
//! | | tensor | sequence | map |
//! |---|---|---|---|
//! | `SequenceProto` | 3 | | 6 |
//! | `OptionalProto` | 3 | 5 | 6 |
//!
//! `MapProto` has integer keys in field 3, strings in field 4 and a sequence of values in field 5.

use kilim_core::error::{Result, unsupported};
use kilim_core::memory::{shared_text, try_collect};
use kilim_core::{Datum, Form, Kind, Map, Tensor};

use super::proto::{Numbers, Reader, TensorProto, invalid};
use super::tensor::Tensors;

/// The name and the value that a file of this kind holds.
pub fn read(bytes: &[u8], kind: Kind, tensors: &Tensors) -> Result<(String, Datum)> {
    let name = |fields: &Fields| fields.name.to_string();
    if !kind.optional {
        if kind.form == Form::Tensor {
            let proto = TensorProto::decode(bytes)?;
            return Ok((proto.name.to_string(), tensors.read(&proto)?.into()));
        }
        let fields = Fields::of(bytes)?;
        return Ok((name(&fields), whole(bytes, kind.form, tensors)?));
    }
    let fields = Fields::of(bytes)?;
    let field = match kind.form {
        Form::Tensor => 3,
        Form::Sequence | Form::MapSequence => 5,
        Form::Map => 6,
    };
    let datum = match fields.all(field).next() {
        Some(bytes) => whole(bytes, kind.form, tensors)?,
        None => Datum::Absent,
    };
    Ok((name(&fields), datum))
}

/// The fields of a message that hold bytes, and the numbers in field 3.
#[derive(Default)]
struct Fields<'a> {
    name: &'a str,
    list: Vec<(u32, &'a [u8])>,
    keys: Numbers<'a>,
}

impl<'a> Fields<'a> {
    fn of(bytes: &'a [u8]) -> Result<Fields<'a>> {
        let mut fields = Fields::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, field)) = reader.field()? {
            match (number, field.bytes()) {
                (1, _) => fields.name = field.string()?,
                (_, Ok(bytes)) => fields.list.push((number, bytes)),
                _ => {}
            }
            if number == 3 {
                fields.keys.push(field);
            }
        }
        Ok(fields)
    }

    fn all(&self, number: u32) -> impl Iterator<Item = &'a [u8]> + '_ {
        let found = self.list.iter().filter(move |(n, _)| *n == number);
        found.map(|(_, bytes)| *bytes)
    }
}

fn whole(bytes: &[u8], form: Form, tensors: &Tensors) -> Result<Datum> {
    let tensor = |bytes| tensors.read(&TensorProto::decode(bytes)?);
    Ok(match form {
        Form::Tensor => Datum::Tensor(tensor(bytes)?),
        Form::Sequence => {
            let fields = Fields::of(bytes)?;
            Datum::Sequence(fields.all(3).map(tensor).collect::<Result<_>>()?)
        }
        Form::Map => Datum::Map(map(bytes, tensors)?),
        Form::MapSequence => {
            let fields = Fields::of(bytes)?;
            let maps = fields.all(6).map(|bytes| map(bytes, tensors));
            Datum::MapSequence(maps.collect::<Result<_>>()?)
        }
    })
}

fn map(bytes: &[u8], tensors: &Tensors) -> Result<Map> {
    let fields = Fields::of(bytes)?;
    let texts = fields.all(4).map(|bytes| {
        let text = std::str::from_utf8(bytes);
        shared_text(text.map_err(|_| invalid("a key is not valid UTF-8"))?)
    });
    let texts = try_collect(texts)?;
    let keys = match texts.len() {
        0 => {
            let keys = fields.keys.ints()?;
            Tensor::from_slice(&[keys.len()], &keys)?
        }
        n => Tensor::from_texts(&[n], texts)?,
    };
    let values = fields.all(5).next();
    let values = values.ok_or_else(|| invalid("a map without values"))?;
    let Datum::Sequence(values) = whole(values, Form::Sequence, tensors)? else {
        return Err(invalid("the values of a map are no sequence"));
    };
    match &values[..] {
        [one] if one.len() == keys.len() => Ok(Map {
            values: one.reshaped(&[keys.len()])?,
            keys,
        }),
        _ => Err(unsupported("a map of tensors")),
    }
}

//! The tensors of a file: each stands behind what is said of it, and nothing says how many there are.

use std::collections::HashMap;
use std::ops::Range;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::tensor::Tensor;

use super::front::{Front, count, with_front};
use super::invalid;
use crate::ModelFile;
use crate::build::Refusals;
use crate::gguf::Reader;
use crate::language::blocks::{self, ElementType, Form};
use crate::language::{Described, Tensors};
use crate::parts::{FileParts, Replaced};

/// Dimensions of a tensor at most (`whisper_model_load` in `src/whisper.cpp`).
const DIMENSIONS: usize = 4;
/// Letters of a name at most: far more than any name has.
const LETTERS: usize = 256;
/// Bytes of what is said of a tensor, at most.
const SAID: usize = 12 + 4 * DIMENSIONS + LETTERS;

/// A tensor of a file.
#[derive(Debug)]
struct Info {
    /// The outermost dimension first.
    shape: Vec<usize>,
    of: &'static ElementType,
    data: Range<u64>,
}

/// Reads what is said of a tensor at `at` of a file, whose bytes from there on are `bytes`.
fn tensor(bytes: &[u8], at: u64) -> Result<(String, Info)> {
    let mut reader = Reader::new(bytes);
    let (rank, letters, of) = (count(&mut reader)?, count(&mut reader)?, reader.u32()?);
    if rank > DIMENSIONS || letters > LETTERS {
        let e = invalid("a tensor of an unusual rank or name");
        return Err(e.with_got(format!("{rank} dimensions, {letters} letters")));
    }
    let mut shape = Vec::with_capacity(rank);
    for _ in 0..rank {
        shape.push(count(&mut reader)?);
    }
    shape.reverse();
    let name = std::str::from_utf8(reader.bytes(letters)?);
    let name = name.map_err(|_| invalid("a name that is not valid UTF-8"))?;
    let of = blocks::element_type(of).map_err(|e| e.with_input(name))?;
    let len = of.bytes_of(&shape).map_err(|e| e.with_input(name))?;
    let start = at + reader.at as u64;
    let end = start.checked_add(len as u64);
    let end = end.ok_or_else(|| invalid("a tensor is too large").with_input(name))?;
    let data = start..end;
    Ok((name.to_string(), Info { shape, of, data }))
}

/// The tensors of a file, and its bytes.
pub struct OfFile<'a> {
    tensors: HashMap<String, Info>,
    source: &'a ModelFile<'a>,
}

impl<'a> OfFile<'a> {
    /// The tensors behind the front of a file.
    ///
    /// # Errors
    /// `InvalidModel` where the file ends within one, or is garbled; `Unsupported` for elements that Kilim cannot read, all in one error.
    pub fn read(front: &Front, source: &'a ModelFile<'a>) -> Result<OfFile<'a>> {
        let size = source.size();
        let mut said = [0; SAID];
        let mut tensors = HashMap::new();
        let mut refused = Refusals::default();
        let mut at = front.end as u64;
        while at < size {
            let said = &mut said[..(SAID as u64).min(size - at) as usize];
            source.read(at, said)?;
            let (name, info) = tensor(said, at)?;
            if info.data.end > size {
                let e = Error::new(ErrorCode::InvalidModel, "the file ends within a tensor");
                return Err(e.with_input(name));
            }
            if let Form::Other = info.of.form {
                refused.add(format!("elements of type {}", info.of.name), &name);
            }
            at = info.data.end;
            if tensors.contains_key(&name) {
                return Err(invalid(format!("the tensor `{name}` is there twice")));
            }
            tensors.insert(name, info);
        }
        refused.check()?;
        Ok(OfFile { tensors, source })
    }
}

impl Tensors for OfFile<'_> {
    fn find(&self, name: &str) -> Option<Described<'_>> {
        let info = self.tensors.get(name)?;
        Some(Described {
            shape: &info.shape,
            of: info.of,
        })
    }

    fn names(&self) -> Vec<&str> {
        self.tensors.keys().map(String::as_str).collect()
    }

    fn raw(&self, name: &str) -> Result<Tensor> {
        let info = self.tensors.get(name);
        let data = &info.ok_or_else(|| invalid("the tensor is missing"))?.data;
        // So many as the shape has, which memory can hold.
        self.source
            .part(data.start, (data.end - data.start) as usize)
    }
}

/// The front alone; of a garbled file the whole, since the reader says what is wrong with it.
pub fn outline(file: &dyn FileParts) -> Vec<Replaced> {
    let begin = |to: &mut [u8]| file.read(0, to);
    let end = with_front(file.size(), &begin, |front| Ok(front.end as u64));
    Replaced::rest(end.ok(), file)
}

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
use crate::source::{FileParts, large};

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
    data: Range<usize>,
}

/// Reads what is said of a tensor at `at` of a file, whose bytes from there on are `bytes`.
fn tensor(bytes: &[u8], at: usize) -> Result<(String, Info)> {
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
    let start = at + reader.at;
    let end = start.checked_add(len);
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
        let bytes = source.bytes.as_slice();
        let mut tensors = HashMap::new();
        let mut refused = Refusals::default();
        let mut at = front.end;
        while at < bytes.len() {
            let (name, info) = tensor(&bytes[at..], at)?;
            if info.data.end > bytes.len() {
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
        self.source.part(data.start, data.len())
    }
}

/// Where the large tensors of a file lie; none of a file that is garbled, which whoever has all of its bytes says.
pub fn weights(file: &dyn FileParts) -> Vec<Range<usize>> {
    ranges(file).map_or_else(|_| Vec::new(), |all| large(all.into_iter()))
}

fn ranges(file: &dyn FileParts) -> Result<Vec<Range<usize>>> {
    let size = file.size();
    let begin = |to: &mut [u8]| file.read(0, to);
    let mut at = with_front(size, &begin, |front| Ok(front.end))?;
    let mut all = Vec::new();
    let mut said = [0; SAID];
    while at < size {
        let said = &mut said[..SAID.min(size - at)];
        file.read(at, said)?;
        let (_, info) = tensor(said, at)?;
        at = info.data.end;
        all.push(info.data);
    }
    match at == size {
        true => Ok(all),
        false => Err(invalid("the file ends within a tensor")),
    }
}

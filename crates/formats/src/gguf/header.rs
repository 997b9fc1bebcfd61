//! The beginning of a file: metadata, and where the tensors lie.

use std::collections::HashMap;
use std::ops::Range;

use kilim_core::error::{ErrorCode, Result, unsupported};
use kilim_core::ops::check_rank;
use kilim_core::tensor::AlignedBytes;

use super::invalid;
use super::metadata::{LEAST, Metadata};
use super::reader::Reader;
use crate::build::Refusals;
use crate::language::blocks::{self, ElementType, Form};
use crate::parts::{FileParts, Replaced};

const MAGIC: &[u8] = b"GGUF";

/// Where the data of tensors begins, unless `general.alignment` says otherwise.
const ALIGNMENT: u64 = 32;

/// Bytes of what is said of a tensor, at least: a name, the number of its dimensions, type and place.
const TENSOR: usize = 8 + 4 + 4 + 8;

/// A tensor of the file.
#[derive(Clone, Debug)]
pub struct TensorInfo<'a> {
    pub name: &'a str,
    /// The outermost dimension first; files begin with the innermost.
    pub shape: Vec<usize>,
    pub of: &'static ElementType,
    /// The bytes of the file.
    pub data: Range<u64>,
}

/// What stands in front of the data of tensors.
pub struct Header<'a> {
    pub metadata: Metadata<'a>,
    /// Where what is said of tensors ends.
    end: usize,
    tensors: HashMap<&'a str, TensorInfo<'a>>,
}

/// Whether a file begins as one of this format.
pub fn probe(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl<'a> Header<'a> {
    /// Reads the beginning of a file, `bytes`, or as much of it as holds what is said of tensors.
    ///
    /// # Errors
    /// `InvalidModel` where it is garbled, `Unsupported` for other versions and for types of elements that are not known.
    pub fn read(bytes: &'a [u8]) -> Result<Header<'a>> {
        let mut reader = Reader::new(bytes);
        if reader.bytes(MAGIC.len())? != MAGIC {
            return Err(invalid("the file does not begin with `GGUF`"));
        }
        match reader.u32()? {
            2 | 3 => {}
            other => {
                let e = unsupported(match other.swap_bytes() {
                    2 | 3 => "a GGUF file for machines that keep the highest byte first".into(),
                    _ => format!("version {other} of GGUF"),
                });
                return Err(e.with_expected("version 2 or 3, the lowest byte first"));
            }
        }
        let tensors = reader.count_of(TENSOR)?;
        let values = reader.count_of(LEAST)?;
        let metadata = Metadata::read(&mut reader, values)?;
        let alignment = metadata.count("general.alignment")?;
        let alignment = alignment.map_or(ALIGNMENT, |n| n as u64);
        if !alignment.is_power_of_two() {
            return Err(invalid("`general.alignment` is no power of two").with_got(alignment));
        }
        let mut infos = Vec::new();
        for _ in 0..tensors {
            infos.push(tensor(&mut reader)?);
        }
        let data = (reader.at as u64).checked_next_multiple_of(alignment);
        let mut named = HashMap::new();
        for (mut info, offset) in infos {
            let start = data.and_then(|data| data.checked_add(offset));
            let end = start.and_then(|start| start.checked_add(info.data.end));
            let place = start.zip(end).filter(|_| offset.is_multiple_of(alignment));
            let (start, end) = place.ok_or_else(|| {
                let e = invalid("a tensor has no such place in a file");
                e.with_input(info.name).with_got(offset)
            })?;
            info.data = start..end;
            let name = info.name;
            if named.insert(name, info).is_some() {
                return Err(invalid(format!("the tensor `{name}` is there twice")));
            }
        }
        Ok(Header {
            metadata,
            end: reader.at,
            tensors: named,
        })
    }

    /// The tensor of a name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo<'a>> {
        self.tensors.get(name)
    }

    /// How many tensors there are.
    pub fn count(&self) -> usize {
        self.tensors.len()
    }

    /// The names of all tensors, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.tensors.keys().copied()
    }

    /// Refuses tensors whose elements Kilim cannot read, all of them in one error.
    ///
    /// # Errors
    /// `Unsupported` where there are any.
    pub fn check_elements(&self) -> Result<()> {
        let mut names: Vec<_> = self.names().collect();
        names.sort_unstable();
        let mut refused = Refusals::default();
        for info in names.into_iter().filter_map(|name| self.tensor(name)) {
            if let Form::Other = info.of.form {
                refused.add(format!("elements of type {}", info.of.name), info.name);
            }
        }
        refused.check()
    }
}

/// What is said of the next tensor, with the bytes that it has, and the place behind which they begin.
fn tensor<'a>(reader: &mut Reader<'a>) -> Result<(TensorInfo<'a>, u64)> {
    let name = reader.text()?;
    let rank = reader.u32()? as usize;
    check_rank(rank)?;
    let mut shape = Vec::new();
    for _ in 0..rank {
        shape.push(reader.count()?);
    }
    shape.reverse();
    let of = blocks::element_type(reader.u32()?).map_err(|e| e.with_input(name))?;
    let offset = reader.u64()?;
    let bytes = of.bytes_of(&shape).map_err(|e| e.with_input(name))?;
    let info = TensorInfo {
        name,
        shape,
        of,
        data: 0..bytes as u64,
    };
    Ok((info, offset))
}

/// Bytes with which reading a header begins.
const FIRST: usize = 1 << 20;

/// Calls `read` with the header of a file of `size` bytes; `begin` fills a buffer with the beginning of the file, as much as is needed.
///
/// # Errors
/// Those of [`Header::read`], of `begin` and of `read`; `Limit` where memory is short.
pub fn with_header<T>(
    size: u64,
    begin: &dyn Fn(&mut [u8]) -> Result<()>,
    read: impl FnOnce(&Header) -> Result<T>,
) -> Result<T> {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let mut len = FIRST;
    loop {
        len = len.min(size);
        let mut bytes = AlignedBytes::zeroed(len)?;
        begin(bytes.as_mut_slice())?;
        let bytes = bytes.as_slice();
        match Header::read(bytes) {
            Ok(header) => return read(&header),
            Err(e) if len == size || !probe(bytes) => return Err(e),
            Err(e) if e.code() == ErrorCode::InvalidModel => len = len.saturating_mul(2),
            Err(e) => return Err(e),
        }
    }
}

/// The beginning alone, where all data follows it; of a garbled file the whole, since the reader says what is wrong with it.
pub fn outline(file: &dyn FileParts) -> Vec<Replaced> {
    let begin = |to: &mut [u8]| file.read(0, to);
    let end = with_header(file.size(), &begin, |header| Ok(header.end as u64));
    Replaced::rest(end.ok(), file)
}

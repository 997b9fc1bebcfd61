//! A file of weights: the length of its header in eight bytes, the header in JSON, the data of the tensors
//! (`README.md` of the project safetensors).

use std::ops::Range;

use kilim_core::error::{Error, ErrorCode, Result};
use serde_json::{Map, Value};

use super::invalid;

/// Bytes of the length in front.
const PREFIX: u64 = 8;

/// Bytes of a header at most: it is in memory several times as large.
const MOST: u64 = 25_000_000;

/// The key of what a header says that is no tensor.
const METADATA: &str = "__metadata__";

/// A tensor of a file.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    /// The type of elements as the file calls it.
    pub dtype: String,
    /// The outermost dimension first.
    pub shape: Vec<usize>,
    /// The bytes of the file.
    pub data: Range<u64>,
}

/// What a header says.
#[derive(Debug, Default)]
pub struct Header {
    pub entries: Vec<Entry>,
    /// What the file says of itself: keys and texts.
    pub metadata: Vec<(String, String)>,
}

/// Whether a file begins as one of this format.
pub fn probe(bytes: &[u8]) -> bool {
    let Some((length, rest)) = bytes.split_first_chunk() else {
        return false;
    };
    let length = u64::from_le_bytes(*length);
    (2..1 << 30).contains(&length) && rest.starts_with(b"{")
}

/// Reads what the header of a file of `size` bytes says; `part` fills a buffer from a byte of the file on.
///
/// # Errors
/// `InvalidModel` where the header is garbled, tells of data that the file does not have or not of all data that it has, `Limit` where
/// it is too long, and those of `part`.
pub fn read(size: u64, part: &dyn Fn(u64, &mut [u8]) -> Result<()>) -> Result<Header> {
    let mut prefix = [0; PREFIX as usize];
    if size < PREFIX {
        return Err(invalid("the file ends within its header"));
    }
    part(0, &mut prefix)?;
    let length = u64::from_le_bytes(prefix);
    if length > size - PREFIX {
        return Err(invalid("the file ends within its header"));
    }
    if length > MOST {
        let e = Error::new(
            ErrorCode::Limit,
            "the header of a file of weights is too long",
        );
        return Err(e
            .with_expected(format!("at most {MOST} bytes"))
            .with_got(length));
    }
    let mut text = vec![0; length as usize];
    part(PREFIX, &mut text)?;
    let mut header: Map<String, Value> =
        serde_json::from_slice(&text).map_err(|e| invalid(format!("the header: {e}")))?;
    let start = PREFIX + length;
    let metadata = match header.remove(METADATA) {
        Some(Value::Object(texts)) => texts,
        _ => Map::new(),
    };
    let metadata = metadata.into_iter().filter_map(|(key, value)| match value {
        Value::String(text) => Some((key, text)),
        _ => None,
    });
    let entries = header.into_iter().map(|(name, value)| {
        let made = entry(&value, start, size);
        let (dtype, shape, data) = made.ok_or_else(|| {
            invalid("what the header says of a tensor cannot be").with_input(&name)
        })?;
        Ok(Entry {
            name,
            dtype,
            shape,
            data,
        })
    });
    let entries = entries.collect::<Result<Vec<_>>>()?;
    check_data(&entries, start..size)?;
    Ok(Header {
        entries,
        metadata: metadata.collect(),
    })
}

/// The tensors lie behind each other and fill `data`, as the format asks. Where a name stands twice in a header, its first tensor is
/// a hole.
fn check_data(entries: &[Entry], data: Range<u64>) -> Result<()> {
    let mut ordered: Vec<&Entry> = entries.iter().collect();
    ordered.sort_by_key(|entry| (entry.data.start, entry.data.end));
    let mut end = data.start;
    for entry in ordered {
        if entry.data.start != end {
            let e = invalid("the data of a tensor does not follow that of the one before it");
            return Err(e
                .with_input(&entry.name)
                .with_got(entry.data.start)
                .with_expected(end));
        }
        end = entry.data.end;
    }
    if end != data.end {
        let e = invalid("the file has data of no tensor");
        return Err(e.with_expected(data.end).with_got(end));
    }
    Ok(())
}

/// Type, shape and bytes of a tensor of a file of `size` bytes, whose data begin at `start`.
fn entry(value: &Value, start: u64, size: u64) -> Option<(String, Vec<usize>, Range<u64>)> {
    let count = |n: &Value| usize::try_from(n.as_u64()?).ok();
    let dtype = value.get("dtype")?.as_str()?.to_string();
    let shape = value.get("shape")?.as_array()?;
    let shape = shape.iter().map(count).collect::<Option<Vec<_>>>()?;
    let [from, to] = value.get("data_offsets")?.as_array()?.as_slice() else {
        return None;
    };
    let (from, to) = (
        start.checked_add(from.as_u64()?)?,
        start.checked_add(to.as_u64()?)?,
    );
    (from <= to && to <= size).then_some((dtype, shape, from..to))
}

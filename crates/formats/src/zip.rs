//! Files in a zip archive (PKWARE's APPNOTE.TXT, 6.3), its 64-bit form included: stored as they are, or deflated.

use std::collections::HashMap;
use std::ops::Range;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::tensor::AlignedBytes;

/// The signature, and the size without names and extra fields, of the record that ends an archive, of its 64-bit form and of what says where
/// that lies, of one in its directory, and of the one in front of a file's bytes.
const END: (&[u8; 4], usize) = (b"PK\x05\x06", 22);
const WIDE_END: (&[u8; 4], usize) = (b"PK\x06\x06", 56);
const WIDE_PLACE: (&[u8; 4], usize) = (b"PK\x06\x07", 20);
const LISTED: (&[u8; 4], usize) = (b"PK\x01\x02", 46);
const BEFORE: (&[u8; 4], usize) = (b"PK\x03\x04", 30);

/// Bytes of a comment at the end, at most.
const COMMENT: usize = u16::MAX as usize;

/// Stands for a number that the 64-bit form has.
const WIDE: usize = u32::MAX as usize;

/// The extra field with the numbers of 64 bits.
const WIDE_FIELD: usize = 1;

/// How a file lies there.
const STORED: usize = 0;
const DEFLATED: usize = 8;

/// What a byte that is deflated can become, at most.
const GROWTH: usize = 1032;

/// A file of an archive.
struct Entry {
    /// Where the record in front of the file's bytes begins.
    before: usize,
    packed: usize,
    size: usize,
    method: usize,
    crc32: u32,
    encrypted: bool,
}

/// What files an archive has. The archive itself need not be in memory: parts of it are read by their first byte and their length, which
/// lie within it.
pub struct Directory {
    size: usize,
    entries: HashMap<String, Entry>,
}

impl Directory {
    /// Reads the directory of an archive of `size` bytes; `None` where it has none.
    ///
    /// # Errors
    /// Those of `part`.
    pub fn read(
        size: usize,
        part: impl Fn(usize, usize) -> Result<Vec<u8>>,
    ) -> Result<Option<Directory>> {
        let last = END.1 + COMMENT + WIDE_PLACE.1;
        let from = size.saturating_sub(last);
        let tail = part(from, size - from)?;
        let Some((count, place)) = end_of(&tail) else {
            return Ok(None);
        };
        let (count, listed) = match place {
            Place::Directory(listed) => (count, listed),
            Place::WideEnd(at) if within(&(at..at.saturating_add(WIDE_END.1)), size) => {
                let record = part(at, WIDE_END.1)?;
                let found = self::record(&record, 0, WIDE_END)
                    .and_then(|end| Some((wide(end, 32)?, wide(end, 40)?, wide(end, 48)?)));
                match found {
                    Some((count, len, at)) => (count, at..at.saturating_add(len)),
                    None => return Ok(None),
                }
            }
            Place::WideEnd(_) => return Ok(None),
        };
        if !within(&listed, size) {
            return Ok(None);
        }
        let bytes = part(listed.start, listed.len())?;
        Ok(entries(&bytes, count).map(|entries| Directory { size, entries }))
    }

    /// The paths of all files, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.entries.keys().map(String::as_str)
    }

    /// Where the bytes of a file lie that is stored as it is.
    ///
    /// # Errors
    /// `InvalidModel` where there is none of the name, or it is garbled; `Unsupported` where it is packed; those of `part`.
    pub fn stored(
        &self,
        name: &str,
        part: impl Fn(usize, usize) -> Result<Vec<u8>>,
    ) -> Result<Range<usize>> {
        let entry = self.entry(name)?;
        match entry.method {
            STORED => self.place(entry, name, part),
            other => Err(unsupported("a file of an archive that is packed")
                .with_input(name)
                .with_got(format!("method {other}"))),
        }
    }

    fn entry(&self, name: &str) -> Result<&Entry> {
        let entry = self.entries.get(name);
        let entry = entry.ok_or_else(|| invalid("the archive has no such file", name))?;
        match entry.encrypted {
            true => Err(unsupported("a file that is encrypted").with_input(name)),
            false => Ok(entry),
        }
    }

    /// Where the bytes of a file lie, as they are packed.
    fn place(
        &self,
        entry: &Entry,
        name: &str,
        part: impl Fn(usize, usize) -> Result<Vec<u8>>,
    ) -> Result<Range<usize>> {
        let before = entry.before..entry.before.saturating_add(BEFORE.1);
        let garbled = || invalid("a file of an archive is garbled", name);
        if !within(&before, self.size) {
            return Err(garbled());
        }
        let head = part(before.start, before.len())?;
        let head = record(&head, 0, BEFORE).ok_or_else(garbled)?;
        let start = before.end + short(head, 26) + short(head, 28);
        let packed = start..start.saturating_add(entry.packed);
        match within(&packed, self.size) {
            true => Ok(packed),
            false => Err(garbled()),
        }
    }
}

/// Where the directory lies, or the record that says it in 64 bits.
enum Place {
    Directory(Range<usize>),
    WideEnd(usize),
}

/// The number of files, and where they are listed, by the last bytes of an archive.
fn end_of(tail: &[u8]) -> Option<(usize, Place)> {
    let last = tail.len().checked_sub(END.1)?;
    let first = last.saturating_sub(COMMENT);
    let (found, end) = (first..=last)
        .rev()
        .find_map(|at| Some((at, record(tail, at, END)?)))?;
    let (count, len, at) = (short(end, 10), long(end, 12), long(end, 16));
    if at != WIDE && len != WIDE && count != usize::from(u16::MAX) {
        return Some((count, Place::Directory(at..at.checked_add(len)?)));
    }
    let before = found.checked_sub(WIDE_PLACE.1);
    let place = before.and_then(|before| record(tail, before, WIDE_PLACE));
    match place {
        Some(place) => Some((count, Place::WideEnd(wide(place, 8)?))),
        None => Some((count, Place::Directory(at..at.checked_add(len)?))),
    }
}

/// The files that a directory lists; `None` where it ends too early.
fn entries(directory: &[u8], count: usize) -> Option<HashMap<String, Entry>> {
    let (mut at, mut entries) = (0usize, HashMap::new());
    for _ in 0..count {
        let listed = record(directory, at, LISTED)?;
        let name = at.checked_add(LISTED.1)?;
        let behind = name.checked_add(short(listed, 28))?;
        let text = std::str::from_utf8(directory.get(name..behind)?).ok()?;
        let extra = behind.checked_add(short(listed, 30))?;
        // Size, packed size and place in this order, those alone that are too large for 32 bits.
        let mut numbers = [24, 20, 42].map(|at| long(listed, at));
        let mut field = wide_field(directory.get(behind..extra)?);
        for number in numbers.iter_mut().filter(|number| **number == WIDE) {
            if let Some((first, rest)) = field.and_then(<[u8]>::split_first_chunk::<8>) {
                *number = usize::try_from(u64::from_le_bytes(*first)).ok()?;
                field = Some(rest);
            }
        }
        let [size, packed, before] = numbers;
        let entry = Entry {
            before,
            packed,
            size,
            method: short(listed, 10),
            crc32: long(listed, 16) as u32,
            encrypted: short(listed, 8) & 1 != 0,
        };
        entries.insert(text.to_string(), entry);
        at = extra.checked_add(short(listed, 32))?;
    }
    Some(entries)
}

/// The numbers of 64 bits among extra fields.
fn wide_field(mut extra: &[u8]) -> Option<&[u8]> {
    loop {
        let (head, rest) = extra.split_at_checked(4)?;
        let (field, rest) = rest.split_at_checked(short(head, 2))?;
        if short(head, 0) == WIDE_FIELD {
            return Some(field);
        }
        extra = rest;
    }
}

/// An archive in memory.
pub struct Archive<'a> {
    bytes: &'a [u8],
    directory: Directory,
}

impl<'a> Archive<'a> {
    /// Reads the directory of an archive; `None` where `bytes` are none, or a part of one.
    pub fn read(bytes: &'a [u8]) -> Option<Archive<'a>> {
        if !bytes.starts_with(BEFORE.0) {
            return None;
        }
        let part = |from: usize, len: usize| Ok(bytes[from..from + len].to_vec());
        let directory = Directory::read(bytes.len(), part).ok()??;
        Some(Archive { bytes, directory })
    }

    /// The paths of all files, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> + '_ {
        self.directory.names()
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// `InvalidModel` where there is none of the name, or it is garbled; `Unsupported` where it is packed in another way; `Limit` where it is
    /// too large.
    pub fn file(&self, name: &str, limits: &Limits) -> Result<AlignedBytes> {
        let entry = self.directory.entry(name)?;
        limits.check_file(entry.size as u64)?;
        let part = |from: usize, len: usize| Ok(self.bytes[from..from + len].to_vec());
        let packed = &self.bytes[self.directory.place(entry, name, part)?];
        let most = match entry.method {
            STORED => packed.len(),
            DEFLATED => packed.len().saturating_mul(GROWTH),
            other => {
                let e = unsupported("a file of an archive that is packed in another way");
                let e = e.with_input(name).with_got(format!("method {other}"));
                return Err(e.with_expected("stored or deflated"));
            }
        };
        // The size is the archive's word: memory is taken for what its bytes can become.
        if entry.size > most {
            return Err(invalid(
                "a file of an archive is shorter than it says",
                name,
            ));
        }
        let mut bytes = AlignedBytes::zeroed(entry.size)?;
        let made = match entry.method {
            STORED => {
                bytes.as_mut_slice().copy_from_slice(&packed[..entry.size]);
                packed.len() == entry.size
            }
            _ => {
                let packed = std::iter::once(packed);
                let out = bytes.as_mut_slice();
                let made =
                    miniz_oxide::inflate::decompress_slice_iter_to_slice(out, packed, false, true);
                made == Ok(entry.size)
            }
        };
        if !made || crc32(bytes.as_slice()) != entry.crc32 {
            return Err(invalid("a file of an archive is garbled", name));
        }
        Ok(bytes)
    }
}

fn invalid(message: &str, name: &str) -> Error {
    Error::new(ErrorCode::InvalidModel, message).with_input(name)
}

fn within(range: &Range<usize>, size: usize) -> bool {
    range.start <= range.end && range.end <= size
}

fn record<'a>(bytes: &'a [u8], at: usize, (mark, size): (&[u8; 4], usize)) -> Option<&'a [u8]> {
    let record = bytes.get(at..at.checked_add(size)?)?;
    record.starts_with(mark).then_some(record)
}

fn short(record: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([record[at], record[at + 1]]))
}

fn long(record: &[u8], at: usize) -> usize {
    short(record, at) | short(record, at + 2) << 16
}

/// A number of 64 bits; `None` where it is too large.
fn wide(record: &[u8], at: usize) -> Option<usize> {
    let bytes = record.get(at..at + 8)?.first_chunk::<8>()?;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

/// The polynomial of CRC-32, its lowest term in the highest bit.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// What each four bits do to a CRC-32.
const STEPS: [u32; 16] = {
    let mut steps = [0; 16];
    let mut i = 0;
    while i < 16 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 4 {
            crc = (crc >> 1) ^ (POLYNOMIAL * (crc & 1));
            bit += 1;
        }
        steps[i] = crc;
        i += 1;
    }
    steps
};

pub fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| crc >> 4 ^ STEPS[(crc & 15) as usize];
    !bytes
        .iter()
        .fold(!0, |crc, &byte| step(step(crc ^ u32::from(byte))))
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn sums_are_those_of_the_standard() {
        // The check value of CRC-32 in the catalogue of parametrised CRC algorithms.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}

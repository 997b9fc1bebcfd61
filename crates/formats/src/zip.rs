//! Files in a zip archive (PKWARE's APPNOTE.TXT, 6.3): stored as they are, or deflated.

use std::collections::HashMap;
use std::ops::Range;

use kilim_core::Limits;
use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::tensor::AlignedBytes;

/// The signature, and the size without names and extra fields, of the record that ends an archive, of one in its directory, and of the one in
/// front of a file's bytes.
const END: (&[u8; 4], usize) = (b"PK\x05\x06", 22);
const LISTED: (&[u8; 4], usize) = (b"PK\x01\x02", 46);
const BEFORE: (&[u8; 4], usize) = (b"PK\x03\x04", 30);

/// Bytes of a comment at the end, at most.
const COMMENT: usize = u16::MAX as usize;

/// How a file lies there.
const STORED: usize = 0;
const DEFLATED: usize = 8;

/// What a byte that is deflated can become, at most.
const GROWTH: usize = 1032;

/// A file of an archive.
struct Entry {
    packed: Range<usize>,
    size: usize,
    method: usize,
    crc32: u32,
    encrypted: bool,
}

/// An archive in memory.
pub struct Archive<'a> {
    bytes: &'a [u8],
    entries: HashMap<&'a str, Entry>,
}

impl<'a> Archive<'a> {
    /// Reads the directory of an archive; `None` where `bytes` are none, or a part of one.
    pub fn read(bytes: &'a [u8]) -> Option<Archive<'a>> {
        if !bytes.starts_with(BEFORE.0) {
            return None;
        }
        let last = bytes.len().checked_sub(END.1)?;
        let first = last.saturating_sub(COMMENT);
        let end = (first..=last).rev().find_map(|at| record(bytes, at, END))?;
        let (count, mut at) = (short(end, 10), long(end, 16));
        let mut entries = HashMap::new();
        for _ in 0..count {
            let listed = record(bytes, at, LISTED)?;
            let name = at.checked_add(LISTED.1)?;
            let behind = name.checked_add(short(listed, 28))?;
            let text = std::str::from_utf8(bytes.get(name..behind)?).ok()?;
            let before = long(listed, 42);
            let head = record(bytes, before, BEFORE)?;
            let start = before.checked_add(BEFORE.1 + short(head, 26) + short(head, 28))?;
            let packed = start..start.checked_add(long(listed, 20))?;
            bytes.get(packed.clone())?;
            let entry = Entry {
                packed,
                size: long(listed, 24),
                method: short(listed, 10),
                crc32: long(listed, 16) as u32,
                encrypted: short(listed, 8) & 1 != 0,
            };
            entries.insert(text, entry);
            at = behind.checked_add(short(listed, 30) + short(listed, 32))?;
        }
        Some(Archive { bytes, entries })
    }

    /// The paths of all files, in no order.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.entries.keys().copied()
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// `InvalidModel` where there is none of the name, or it is garbled; `Unsupported` where it is packed in another way; `Limit` where it is
    /// too large.
    pub fn file(&self, name: &str, limits: &Limits) -> Result<AlignedBytes> {
        let entry = self.entries.get(name);
        let entry = entry.ok_or_else(|| invalid("the archive has no such file", name))?;
        if entry.encrypted {
            return Err(unsupported("a file that is encrypted").with_input(name));
        }
        limits.check_file(entry.size as u64)?;
        let packed = &self.bytes[entry.packed.clone()];
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

//! Archives of test cases: zip files whose entries are not compressed, so that every tool opens them, git stores
//! small differences of them, and a reader is short.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// What an entry of an archive is found by, and what it must be.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    bytes: Range<usize>,
    crc32: u32,
}

/// A zip file in memory.
pub struct Archive {
    file: Cow<'static, [u8]>,
    entries: BTreeMap<String, Entry>,
}

/// The signature, and the size without its name and extra fields, of the record that ends an archive.
const END: (&[u8; 4], usize) = (b"PK\x05\x06", 22);
/// The signature, and the size without its name and extra fields, of an entry's record in the directory.
const LISTED: (&[u8; 4], usize) = (b"PK\x01\x02", 46);
/// The signature, and the size without its name and extra fields, of the record before an entry's bytes.
const STORED: (&[u8; 4], usize) = (b"PK\x03\x04", 30);

impl Archive {
    /// Reads the directory of a file; `None` where it is no zip file, or one with a compressed entry.
    pub fn read(file: impl Into<Cow<'static, [u8]>>) -> Option<Archive> {
        let file = file.into();
        let at = file.len().checked_sub(END.1)?;
        // A comment behind the last record would move it; the archives here have none.
        let end = record(&file, at, END)?;
        let (mut left, mut at) = (short(end, 10)?, long(end, 16)?);
        let mut entries = BTreeMap::new();
        while left > 0 {
            let listed = record(&file, at, LISTED)?;
            let [name, extra, comment] =
                [28, 30, 32].map(|field| short(listed, field).unwrap_or(0));
            let (method, size) = (short(listed, 10)?, long(listed, 24)?);
            let text = file.get(at + LISTED.1..at + LISTED.1 + name)?;
            let stored = long(listed, 42)?;
            let head = record(&file, stored, STORED)?;
            let start = stored + STORED.1 + short(head, 26)? + short(head, 28)?;
            let bytes = start..start + size;
            if method != 0 || file.get(bytes.clone()).is_none() {
                return None;
            }
            let crc32 = long(listed, 16)? as u32;
            let name_of = String::from_utf8_lossy(text).into_owned();
            entries.insert(name_of, Entry { bytes, crc32 });
            at += LISTED.1 + name + extra + comment;
            left -= 1;
        }
        Some(Archive { file, entries })
    }

    /// An entry's bytes.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.file.get(self.entries.get(name)?.bytes.clone())
    }

    /// Names and CRC-32 of all entries, sorted by name. The CRC is what the directory says.
    pub fn entries(&self) -> impl Iterator<Item = (&str, u32)> {
        self.entries
            .iter()
            .map(|(name, entry)| (name.as_str(), entry.crc32))
    }
}

/// Cases of one kind, as `tools/references` writes them: an archive and an index in text.
pub struct Cases {
    pub archive: Archive,
    /// JSON; `Case` in `tests/src/conformance.rs` says what stands in it.
    pub index: Cow<'static, [u8]>,
}

impl Cases {
    /// The cases of `tests/references/KIND.zip`.
    ///
    /// # Panics
    /// Where the repository has no such cases.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn of(kind: &str) -> Cases {
        let folder = crate::material::root().join("tests/references");
        let read = |suffix: &str| {
            let file = folder.join(format!("{kind}.{suffix}"));
            std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
        };
        Cases::new(read("zip"), read("json"))
    }

    /// The cases of an archive in memory.
    ///
    /// # Panics
    /// Where `archive` is none.
    pub fn new(
        archive: impl Into<Cow<'static, [u8]>>,
        index: impl Into<Cow<'static, [u8]>>,
    ) -> Cases {
        Cases {
            archive: Archive::read(archive).expect("an archive of cases"),
            index: index.into(),
        }
    }

    /// A file of a case.
    ///
    /// # Panics
    /// Where there is no such file.
    pub fn file(&self, path: &str) -> &[u8] {
        let file = self.archive.get(path);
        file.unwrap_or_else(|| panic!("the cases have no {path}"))
    }
}

fn record<'a>(file: &'a [u8], at: usize, (mark, size): (&[u8; 4], usize)) -> Option<&'a [u8]> {
    let record = file.get(at..at.checked_add(size)?)?;
    record.starts_with(mark).then_some(record)
}

fn short(record: &[u8], at: usize) -> Option<usize> {
    let bytes = record.get(at..at + 2)?;
    Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
}

fn long(record: &[u8], at: usize) -> Option<usize> {
    let bytes = record.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
}

//! The seeds in a folder, as libFuzzer reads them, and what of a folder is kept in the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Result;
use std::path::Path;

use crate::input::Input;
use crate::seeds;
use crate::zip::zip;

/// Bytes of the inputs that are kept of a format, apart from those that once broke its importer.
const KEPT: usize = 40 << 10;

/// Letters of a word of a dictionary.
const WORD: std::ops::RangeInclusive<usize> = 3..=32;

/// Words of a dictionary at most: those that most seeds have.
const WORDS: usize = 600;

/// What the names of inputs begin with that once broke an importer. They stay.
pub const BROKE: &str = "broke-";

/// Writes into a folder: `seeds`, of the reference cases, `kept`, of former runs, `passes`, those of both that go through the passes, and `words`,
/// a dictionary.
pub fn unpack(format: &str, folder: &Path) -> Result<()> {
    let found = seeds::seeds(format);
    for part in ["seeds", "kept", "passes"] {
        fs::create_dir_all(folder.join(part))?;
    }
    for (part, inputs) in [("seeds", &found), ("kept", &seeds::kept(format))] {
        for (name, bytes) in inputs {
            let part = if Input::read(bytes).passes {
                "passes"
            } else {
                part
            };
            fs::write(folder.join(part).join(name), bytes)?;
        }
    }
    fs::write(folder.join("words"), dictionary(found.values()))
}

/// The texts that several inputs have, as libFuzzer reads them.
fn dictionary<'a>(inputs: impl ExactSizeIterator<Item = &'a Vec<u8>>) -> String {
    // What one of many inputs has is a name of its own.
    let common = inputs.len().min(2);
    let mut counts: BTreeMap<&[u8], usize> = BTreeMap::new();
    for input in inputs {
        let is_text = |byte: &u8| byte.is_ascii_graphic();
        let words = input.split(|byte| !is_text(byte));
        let words: BTreeSet<&[u8]> = words.filter(|word| WORD.contains(&word.len())).collect();
        for word in words {
            *counts.entry(word).or_default() += 1;
        }
    }
    let words = counts.into_iter();
    let mut words: Vec<_> = words.filter(|&(_, count)| count >= common).collect();
    words.sort_by_key(|&(_, count)| usize::MAX - count);
    words.truncate(WORDS);
    let line = |(word, _): (&[u8], usize)| {
        let escaped = word.iter().map(|byte| format!("\\x{byte:02x}"));
        format!("\"{}\"\n", escaped.collect::<String>())
    };
    words.into_iter().map(line).collect()
}

/// Puts the files of a folder, the smallest first, into the format's archive in the place of those that are there. Files whose names say that they
/// broke an importer stay, and others of the kind are added.
pub fn keep(format: &str, folder: &Path) -> Result<()> {
    let kept = seeds::kept(format).into_iter();
    let mut inputs: BTreeMap<String, Vec<u8>> =
        kept.filter(|(name, _)| name.starts_with(BROKE)).collect();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let bytes = fs::read(path)?;
        match name.starts_with(BROKE) {
            true => _ = inputs.insert(name, bytes),
            false => files.push(bytes),
        }
    }
    files.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let mut room = KEPT;
    for bytes in files {
        let Some(left) = room.checked_sub(bytes.len()) else {
            break;
        };
        room = left;
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        inputs.insert(format!("{:016x}", hasher.finish()), bytes);
    }
    let files: Vec<_> = inputs
        .iter()
        .map(|(name, bytes)| (&**name, &**bytes))
        .collect();
    let path = seeds::kept_at(format);
    fs::create_dir_all(path.parent().unwrap_or(folder))?;
    fs::write(path, zip(&files))
}

//! What a file is that is no model of a known format: what users download, rename or export by mistake.

mod archives;
mod models;
#[cfg(test)]
mod tests;
mod texts;

use kilim_core::error::{Error, ErrorCode};

/// Something else than a model that can be read.
struct Stranger {
    /// What the file is, with an article.
    what: &'static str,
    hint: &'static str,
    looks: fn(&File) -> bool,
}

/// A file, and views of it.
struct File<'a> {
    bytes: &'a [u8],
    /// The file's name without its folder, in lower case; empty where there is none.
    name: String,
}

/// Bytes that are searched for a word.
const SEARCHED: usize = 1 << 16;

impl File<'_> {
    fn begins(&self, with: &[u8]) -> bool {
        self.bytes.starts_with(with)
    }

    fn has_at(&self, offset: usize, what: &[u8]) -> bool {
        let rest = self.bytes.get(offset..);
        rest.is_some_and(|rest| rest.starts_with(what))
    }

    /// Whether a word stands in the first [`SEARCHED`] bytes.
    fn mentions(&self, word: &str) -> bool {
        let searched = &self.bytes[..self.bytes.len().min(SEARCHED)];
        let mut places = searched.windows(word.len());
        places.any(|place| place == word.as_bytes())
    }

    fn is_named(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.name.ends_with(ending))
    }
}

/// Where the model that an export starts from is still there.
const EXPORT_FROM_PYTORCH: &str = "export the model with torch.onnx.export";
const EXPORT_FROM_TENSORFLOW: &str =
    "convert it with tf2onnx to ONNX, or with the TFLite converter";
const DOWNLOAD_AGAIN: &str = "download or copy the file again";

const EMPTY: &[Stranger] = &[Stranger {
    what: "an empty file",
    hint: DOWNLOAD_AGAIN,
    looks: |file| file.bytes.is_empty(),
}];

/// Bytes that are shown of what is not known.
const SHOWN: usize = 8;

/// The error for a file that no format takes: what it looks like instead, and what to do about it.
pub fn refuse(bytes: &[u8], name: &str, formats: &str) -> Error {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let path = last.split(['?', '#']).next().unwrap_or_default();
    let file = File {
        bytes,
        name: path.to_ascii_lowercase(),
    };
    let first = |lists: &[&'static [Stranger]]| {
        let mut all = lists.iter().copied().flatten();
        all.find(|stranger| (stranger.looks)(&file))
    };
    let by_content = [EMPTY, models::BY_CONTENT, archives::KNOWN, texts::KNOWN];
    let (got, hint) = if let Some(known) = first(&by_content) {
        (known.what.to_string(), known.hint)
    } else if texts::is_text(bytes) {
        let hint = "check the file's name or URL: this may be what a server says of an error";
        (format!("text: “{}”", texts::first_line(bytes)), hint)
    } else if let Some(known) = first(&[models::BY_NAME]) {
        (known.what.to_string(), known.hint)
    } else {
        let begin: Vec<String> = bytes
            .iter()
            .take(SHOWN)
            .map(|b| format!("{b:02x}"))
            .collect();
        let hint = "if these are the weights of an ONNX model (.onnx.data), open the .onnx file that belongs to them";
        (
            format!("{} bytes that begin with {}", bytes.len(), begin.join(" ")),
            hint,
        )
    };
    let message = format!("`{name}` is not a model of a known format");
    let error = Error::new(ErrorCode::UnknownFormat, message);
    error.with_expected(formats).with_got(got).with_hint(hint)
}

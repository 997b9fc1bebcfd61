//! What a model file says of itself.

use std::collections::HashMap;

use serde::{Serialize, Serializer};

use crate::error::{Error, ErrorCode, Result, value_error};

/// Entries at most. Each takes more memory than the shortest one takes in a file.
const MOST_ENTRIES: usize = 1 << 16;

/// What a model file says of itself, beside its graph. Texts are empty where it says nothing. No run depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// What the model is called.
    pub name: String,
    /// What the model is for, in words.
    pub description: String,
    /// The program that wrote the file.
    pub producer: String,
    /// The version of that program.
    pub producer_version: String,
    /// Whose model it is, as a domain in the reverse order: `org.example`.
    pub domain: String,
    /// The version of the model: a number in formats that count.
    pub version: String,
    /// Everything else: keys of the format or of the author, and texts, in the order of the file. A key may stand twice.
    #[serde(serialize_with = "by_key")]
    pub entries: Vec<(String, String)>,
}

impl Metadata {
    /// The last text of a key among [`Metadata::entries`].
    pub fn entry(&self, key: &str) -> Option<&str> {
        let found = self.entries.iter().rev().find(|(known, _)| known == key);
        found.map(|(_, text)| text.as_str())
    }

    /// Adds a key and its text behind the others.
    ///
    /// # Errors
    /// `InvalidValue` where the key is empty, `Limit` where there are 65536 entries already.
    pub fn add(&mut self, key: impl Into<String>, text: impl Into<String>) -> Result<()> {
        let key = key.into();
        if key.is_empty() {
            return Err(value_error("an entry of the metadata has no key"));
        }
        if self.entries.len() == MOST_ENTRIES {
            let message = "the file says too much of itself";
            let most = format!("at most {MOST_ENTRIES} entries");
            return Err(Error::new(ErrorCode::Limit, message).with_expected(most));
        }
        self.entries.push((key, text.into()));
        Ok(())
    }

    /// The fields that say something, with what people call them; the entries are not among them.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = [
            ("name", &self.name),
            ("description", &self.description),
            ("producer", &self.producer),
            ("producer version", &self.producer_version),
            ("domain", &self.domain),
            ("version", &self.version),
        ];
        let said = fields.into_iter().filter(|(_, text)| !text.is_empty());
        said.map(|(name, text)| (name, text.as_str()))
    }
}

/// Entries as an object; of a key that stands twice the last, as [`Metadata::entry`] has it.
fn by_key<S: Serializer>(entries: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    let each = || entries.iter().map(|(key, text)| (key, text)).enumerate();
    let last: HashMap<_, _> = each().map(|(i, (key, _))| (key, i)).collect();
    let valid = each().filter(|(i, (key, _))| last[key] == *i);
    to.collect_map(valid.map(|(_, entry)| entry))
}

#[cfg(test)]
mod tests {
    use super::{MOST_ENTRIES, Metadata};
    use crate::error::ErrorCode;

    #[test]
    fn entries_keep_their_order_and_have_a_limit() {
        let mut metadata = Metadata::default();
        metadata.add("b", "1").expect("room");
        metadata.add("a", "2").expect("room");
        metadata.add("b", "3").expect("room");
        let keys: Vec<_> = metadata.entries.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["b", "a", "b"]);
        assert_eq!(
            (metadata.entry("b"), metadata.entry("c")),
            (Some("3"), None)
        );
        let nameless = metadata.add("", "4").expect_err("no key");
        assert_eq!(nameless.code(), ErrorCode::InvalidValue);
        for i in metadata.entries.len()..MOST_ENTRIES {
            metadata.add(i.to_string(), "").expect("room");
        }
        let full = metadata.add("c", "").expect_err("no room");
        assert_eq!(full.code(), ErrorCode::Limit);
    }
}

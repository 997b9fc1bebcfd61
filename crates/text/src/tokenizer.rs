//! Words and their numbers.

use std::path::Path;

use kilim_core::{Error, ErrorCode, Result};

/// A tokenizer, of the file `tokenizer.json`.
pub struct Tokenizer(tokenizers::Tokenizer);

impl Tokenizer {
    /// # Errors
    /// `Io` where the file cannot be read, `InvalidModel` where it is no tokenizer.
    pub fn open(file: &Path) -> Result<Tokenizer> {
        let bytes = std::fs::read(file).map_err(|e| crate::folder::unreadable(file, &e))?;
        Tokenizer::of_bytes(&bytes, file)
    }

    /// The tokenizer that `json` describes, of `file`.
    ///
    /// # Errors
    /// `InvalidModel` where it is no tokenizer.
    pub fn of_bytes(json: &[u8], file: &Path) -> Result<Tokenizer> {
        let tokenizer = tokenizers::Tokenizer::from_bytes(json).map_err(|e| {
            let message = format!("`{}` is not a tokenizer: {e}", file.display());
            Error::new(ErrorCode::InvalidModel, message)
        })?;
        Ok(Tokenizer(tokenizer))
    }

    /// The numbers of a text's words. `special` puts before and behind them what the tokenizer says, the word that
    /// begins a text for instance.
    ///
    /// # Errors
    /// `InvalidValue` for a text that the tokenizer cannot take apart.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>> {
        let encoded = self.0.encode(text, special).map_err(failed)?;
        Ok(encoded.get_ids().to_vec())
    }

    /// Makes text of words that come one after the other. Special words leave none.
    pub fn stream(&self) -> Stream<'_> {
        Stream {
            tokenizer: &self.0,
            ids: Vec::new(),
            shown: 0,
        }
    }

    /// The number of a word, where there is such a word.
    pub fn id(&self, word: &str) -> Option<u32> {
        self.0.token_to_id(word)
    }

    /// The text of a word, where there is such a word.
    pub fn word(&self, id: u32) -> Option<String> {
        self.0.id_to_token(id)
    }
}

/// The text of words that come one after the other: a character of several words comes with the last of them.
pub struct Stream<'a> {
    tokenizer: &'a tokenizers::Tokenizer,
    /// The words whose text was given last, and those behind them: what stands before a word may change its text.
    ids: Vec<u32>,
    /// How many words have been given.
    shown: usize,
}

impl Stream<'_> {
    /// The text that a further word completes: none where a character is not whole yet.
    ///
    /// # Errors
    /// `InvalidValue` where the tokenizer cannot decode the words.
    pub fn add(&mut self, id: u32) -> Result<String> {
        self.ids.push(id);
        let text = self.text()?;
        if text.is_empty() || text.ends_with(char::REPLACEMENT_CHARACTER) {
            return Ok(String::new());
        }
        self.ids.drain(..self.shown);
        self.shown = self.ids.len();
        Ok(text)
    }

    /// What is left at the end: characters that never became whole.
    ///
    /// # Errors
    /// As of [`Stream::add`].
    pub fn rest(self) -> Result<String> {
        self.text()
    }

    /// The text of the words that have not been given.
    fn text(&self) -> Result<String> {
        let decode = |ids| self.tokenizer.decode(ids, true).map_err(failed);
        let (all, shown) = (decode(&self.ids)?, decode(&self.ids[..self.shown])?);
        Ok(all.get(shown.len()..).unwrap_or_default().to_string())
    }
}

fn failed(error: tokenizers::Error) -> Error {
    let message = format!("the tokenizer says: {error}");
    Error::new(ErrorCode::InvalidValue, message)
}

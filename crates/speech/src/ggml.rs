//! What a file of whisper.cpp says, in the form of the files that lie beside other models of speech.

use kilim_core::error::unsupported;
use kilim_core::{Error, ErrorCode, Result};
use kilim_formats::ggml::{Front, with_front};
use serde_json::{Map, Value, json};

use crate::settings::Files;

/// Texts in place of a folder's files.
#[derive(Clone, Debug)]
pub struct GgmlSpeech {
    /// `config.json`.
    pub config: String,
    /// `generation_config.json`.
    pub generation: String,
    /// `preprocessor_config.json`.
    pub preprocessor: String,
    /// `tokenizer.json`, which makes text of words, and no words of text.
    pub tokenizer: String,
}

/// Samples a second, and from one transform to the next (`WHISPER_SAMPLE_RATE` and `WHISPER_HOP_LENGTH` in `include/whisper.h`).
const RATE: usize = 16_000;
const HOP: usize = 160;
/// Places of an encoder in a second: one for every second transform.
const PLACES: usize = RATE / HOP / 2;

/// The languages of OpenAI's models in the order of their words (github.com/openai/whisper, `tokenizer.py`).
const LANGUAGES: &str = "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue";

/// Words of a model of English alone: those of GPT-2. Models of several languages have others.
const ENGLISH: usize = 50_256;
/// The word that ends a text, which some files of English have among the words of text.
const END: &str = "<|endoftext|>";
/// Words that stand behind those of languages, in their order.
const BEHIND: [&str; 6] = [
    "translate",
    "transcribe",
    "startoflm",
    "startofprev",
    "nospeech",
    "notimestamps",
];

/// What is written of sounds that are no speech (`non_speech_tokens` in `tokenizer.py`), also behind a space.
const SYMBOLS: &str = "\" # ( ) * + / : ; < = > @ [ \\ ] ^ _ ` { | } ~ 「 」 『 』 << >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪";
/// Signs of notes: where one has no word of its own, its first word is left out.
const NOTES: &str = "♩ ♪ ♫ ♬ ♭ ♮ ♯";
/// What no text begins with.
const NOT_FIRST: [&str; 2] = [" -", " '"];

/// The numbers of words that are no text.
struct Special {
    end: usize,
    languages: Vec<&'static str>,
    /// The first of [`BEHIND`].
    behind: usize,
    several: bool,
}

impl Special {
    /// The words behind those of text, by how many there are: the end, the start, languages, [`BEHIND`], and a time for each place and one more.
    fn of(front: &Front) -> Result<Special> {
        let has_end = front.words.last() == Some(&END.as_bytes());
        let end = front.words.len() - usize::from(has_end);
        let others = 2 + BEHIND.len();
        let times = front.sizes.places.saturating_add(1);
        let left = front.sizes.words.checked_sub(end);
        let count = left.and_then(|left| left.checked_sub(others)?.checked_sub(times));
        let known = LANGUAGES.split(' ').count();
        let count = count.filter(|&count| count <= known).ok_or_else(|| {
            let e = unsupported("a Whisper with other words than OpenAI's models have");
            let words = front.sizes.words;
            let least = end.saturating_add(others).saturating_add(times);
            e.with_expected(format!("{least} to {} words", least.saturating_add(known)))
                .with_got(words)
        })?;
        Ok(Special {
            end,
            languages: LANGUAGES.split(' ').take(count).collect(),
            behind: end + 2 + count,
            several: end != ENGLISH,
        })
    }

    fn start(&self) -> usize {
        self.end + 1
    }

    /// The word of a language, by its place in the order.
    fn language(&self, i: usize) -> usize {
        self.end + 2 + i
    }

    /// The number of one of [`BEHIND`].
    fn number(&self, name: &str) -> usize {
        let at = BEHIND.iter().position(|known| *known == name);
        self.behind + at.unwrap_or_default()
    }

    fn first_time(&self) -> usize {
        self.behind + BEHIND.len()
    }

    /// The texts of all of them, in the order of their numbers.
    fn texts(&self, places: usize) -> Vec<String> {
        let named = |name: &str| format!("<|{name}|>");
        let mut texts = vec![END.to_string(), named("startoftranscript")];
        texts.extend(self.languages.iter().map(|code| named(code)));
        texts.extend(BEHIND.map(named));
        let time = |i: usize| named(&format!("{:.2}", i as f64 / PLACES as f64));
        texts.extend((0..=places).map(time));
        texts
    }
}

impl GgmlSpeech {
    /// Reads what a file of `size` bytes says; `begin` fills a buffer with its beginning.
    ///
    /// # Errors
    /// `InvalidModel` where the file is garbled, `Unsupported` for a model with other words than OpenAI's, and those of `begin`.
    pub fn read(size: usize, begin: &dyn Fn(&mut [u8]) -> Result<()>) -> Result<GgmlSpeech> {
        with_front(size as u64, begin, GgmlSpeech::of)
    }

    /// Reads it from the beginning of a file, at least as much as stands in front of the tensors.
    ///
    /// # Errors
    /// Those of [`GgmlSpeech::read`].
    pub fn of_beginning(bytes: &[u8]) -> Result<GgmlSpeech> {
        Front::read(bytes).and_then(|front| GgmlSpeech::of(&front))
    }

    /// The texts that [`crate::Settings::read`] takes.
    pub fn files(&self) -> Files<'_> {
        Files {
            config: &self.config,
            generation: Some(&self.generation),
            preprocessor: Some(&self.preprocessor),
        }
    }

    fn of(front: &Front) -> Result<GgmlSpeech> {
        let (sizes, special) = (&front.sizes, Special::of(front)?);
        if !sizes.places.is_multiple_of(PLACES) {
            let e = unsupported("a Whisper whose window is no whole number of seconds");
            return Err(e.with_got(format!("{} places", sizes.places)));
        }
        let bins = sizes.frequencies.checked_sub(1);
        let bins = bins.ok_or_else(|| invalid("filters of no frequencies"))?;
        Ok(GgmlSpeech {
            config: json!({
                "model_type": "whisper",
                "eos_token_id": special.end,
                "decoder_start_token_id": special.start(),
                "max_source_positions": sizes.places,
                "max_target_positions": sizes.context,
                "d_model": sizes.width,
                "decoder_attention_heads": sizes.decoder_heads,
            })
            .to_string(),
            generation: generation(front, &special).to_string(),
            preprocessor: json!({
                "feature_size": sizes.bands,
                "n_fft": bins.saturating_mul(2),
                "hop_length": HOP,
                "sampling_rate": RATE,
                "chunk_length": sizes.places / PLACES,
            })
            .to_string(),
            tokenizer: tokenizer(front, &special)?.to_string(),
        })
    }
}

/// How texts are made: as OpenAI's program does.
fn generation(front: &Front, special: &Special) -> Value {
    let languages = special.languages.iter().enumerate();
    let languages: Map<String, Value> = languages
        .map(|(i, code)| (format!("<|{code}|>"), special.language(i).into()))
        .collect();
    let mut never = no_speech(front);
    never.extend(special.start()..special.first_time());
    never.sort_unstable();
    never.dedup();
    let mut not_first: Vec<usize> = word_of(front, " ").into_iter().collect();
    not_first.push(special.end);
    json!({
        "eos_token_id": special.end,
        "decoder_start_token_id": special.start(),
        "is_multilingual": special.several,
        "lang_to_id": languages,
        "task_to_id": {
            "transcribe": special.number("transcribe"),
            "translate": special.number("translate"),
        },
        "no_timestamps_token_id": special.number("notimestamps"),
        // A second.
        "max_initial_timestamp_index": PLACES,
        "suppress_tokens": never,
        "begin_suppress_tokens": not_first,
    })
}

/// The number of the word of a text, where it is one.
fn word_of(front: &Front, text: &str) -> Option<usize> {
    front.words.iter().position(|word| *word == text.as_bytes())
}

/// Words for what is no speech.
fn no_speech(front: &Front) -> Vec<usize> {
    let spaced = |symbols: &'static str| {
        let symbols = symbols.split(' ');
        symbols.flat_map(|symbol| [symbol.to_string(), format!(" {symbol}")])
    };
    let whole = spaced(SYMBOLS).chain(NOT_FIRST.map(str::to_string));
    let mut found: Vec<usize> = whole.filter_map(|text| word_of(front, &text)).collect();
    for note in spaced(NOTES) {
        // The three bytes of a sign of notes have their first two in common with others that are no speech.
        let prefixes = (note.len() - 1..=note.len()).rev();
        let words = &front.words;
        let mut prefixes = prefixes.map(|len| &note.as_bytes()[..len]);
        let at = prefixes.find_map(|prefix| words.iter().position(|word| *word == prefix));
        found.extend(at);
    }
    found
}

/// The words in the form of `tokenizer.json`.
fn tokenizer(front: &Front, special: &Special) -> Result<Value> {
    let letters = letters();
    let mut vocabulary = Map::new();
    for (id, word) in front.words[..special.end].iter().enumerate() {
        let text: String = word
            .iter()
            .map(|&byte| letters[usize::from(byte)])
            .collect();
        vocabulary.insert(text, id.into());
    }
    let texts = special.texts(front.sizes.places);
    let added = texts.iter().enumerate().map(|(i, text)| {
        json!({
            "id": special.end + i, "content": text, "special": true,
            "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
        })
    });
    let added: Vec<Value> = added.collect();
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    Ok(json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": bytes,
        "post_processor": null,
        "decoder": bytes,
        "model": {
            "type": "BPE",
            "dropout": null,
            "unk_token": null,
            "continuing_subword_prefix": null,
            "end_of_word_suffix": null,
            "fuse_unk": false,
            "byte_fallback": false,
            "ignore_merges": false,
            "vocab": vocabulary,
            "merges": [],
        },
    }))
}

/// The letters that stand for bytes in such a file: those that can be seen for themselves, others from U+0100 on (`bytes_to_unicode` in
/// github.com/openai/gpt-2, `src/encoder.py`).
fn letters() -> [char; 256] {
    let mut letters = ['\0'; 256];
    let mut others = '\u{100}'..;
    for (byte, letter) in (0..=u8::MAX).zip(&mut letters) {
        let seen = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        *letter = match seen {
            true => char::from(byte),
            false => others.next().unwrap_or_default(),
        };
    }
    letters
}

fn invalid(message: &str) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

#[cfg(test)]
mod tests {
    use kilim_formats::ggml::Sizes;

    use super::*;

    fn front(words: &[&'static [u8]], texts: usize, all: usize) -> Front<'static> {
        let mut list = vec![b"x".as_slice(); texts - words.len()];
        list.extend(words);
        Front {
            sizes: Sizes {
                words: all,
                places: 1500,
                width: 384,
                heads: 6,
                layers: 4,
                context: 448,
                decoder_heads: 6,
                decoder_layers: 4,
                bands: 80,
                frequencies: 201,
            },
            words: list,
            end: 0,
        }
    }

    /// The numbers that OpenAI's models have (`whisper_vocab` in `src/whisper.cpp`).
    #[test]
    fn words_that_are_no_text_are_those_of_openai() {
        for (words, texts, all, several, languages) in [
            (&[][..], 50257, 51865, true, 99),
            (&[], 50257, 51866, true, 100),
            (&[], 50256, 51864, false, 99),
            (&[END.as_bytes()], 50257, 51864, false, 99),
        ] {
            let front = front(words, texts, all);
            let special = Special::of(&front).expect("words of Whisper");
            let shift = all - 51864;
            assert_eq!(special.languages.len(), languages, "{all}");
            assert_eq!(special.several, several, "{all}");
            assert_eq!(special.start(), 50257 + usize::from(several), "{all}");
            assert_eq!(special.number("translate"), 50357 + shift, "{all}");
            assert_eq!(special.number("notimestamps"), 50362 + shift, "{all}");
            assert_eq!(special.first_time(), 50363 + shift, "{all}");
            let texts = special.texts(1500);
            assert_eq!(special.end + texts.len(), all);
            let text = |id: usize| texts[id - special.end].as_str();
            assert_eq!(text(special.language(2)), "<|de|>");
            assert_eq!(text(special.number("nospeech")), "<|nospeech|>");
            assert_eq!(text(special.first_time() + 1), "<|0.02|>");
            assert_eq!(text(all - 1), "<|30.00|>");
        }
        for all in [51000, 51967] {
            let error = Special::of(&front(&[], 50257, all))
                .err()
                .expect("an error");
            assert_eq!(error.code(), ErrorCode::Unsupported);
        }
    }

    #[test]
    fn signs_of_no_speech_are_found_whole_or_by_their_first_word() {
        let words: [&[u8]; 5] = [" ♪".as_bytes(), b"\xe2\x99", b"((", b"-", b" -"];
        let front = front(&words, 5, 2000);
        let mut found = no_speech(&front);
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, [0, 1, 2, 4]);
    }

    #[test]
    fn bytes_stand_for_letters_of_their_own() {
        let mut letters = letters();
        assert_eq!(letters[usize::from(b' ')], 'Ġ');
        assert_eq!([letters[0], letters[0xad]], ['Ā', 'Ń']);
        letters.sort_unstable();
        assert!(letters.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

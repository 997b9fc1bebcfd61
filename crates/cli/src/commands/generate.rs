//! `kilim generate`.

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Instant;

use clap::value_parser;
use kilim_text::{Decoder, Ended, Folder, Generated, Message, Options, Sampling, Tokenizer};
use serde::Serialize;

use crate::interrupt::interrupted;
use crate::model::{self, BackendArgs};
use crate::{Failure, out};

pub const EXAMPLES: &str = "\
Examples:
  kilim generate models/llama --prompt \"Once upon a time\"
  kilim generate llama.gguf --prompt \"Once upon a time\"
  kilim generate models/llama --chat --prompt \"Who are you?\" --system \"Be brief.\"
  kilim generate models/llama --prompt Hello --temperature 0.8 --top-p 0.95 --seed 7 --max-words 64";

#[derive(clap::Args)]
pub struct Args {
    /// A folder with a model, its settings and its tokenizer, as Hugging Face or onnxruntime-genai lay it out, or a GGUF file.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The text to go on from.
    #[arg(long, short, value_name = "TEXT")]
    prompt: String,
    /// Take the prompt as what a user says, by the folder's chat template.
    #[arg(long)]
    chat: bool,
    /// What the system says before the user does.
    #[arg(long, value_name = "TEXT", requires = "chat")]
    system: Option<String>,
    /// The model's file, from the folder on, where there are several.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Make so many words (tokens) at most.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = value_parser!(u32).range(1..))]
    max_words: u32,
    /// End at this text, which is not printed; may be given several times.
    #[arg(long = "stop", value_name = "TEXT")]
    stops: Vec<String>,
    /// Print the text and its figures as JSON when it is whole.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    backends: BackendArgs,
}

/// How words are chosen; what is not said is as the folder says.
#[derive(clap::Args)]
#[command(next_help_heading = "Sampling")]
struct SamplingArgs {
    /// How freely words are drawn; 0 takes the best one always.
    #[arg(long, value_name = "T")]
    temperature: Option<f64>,
    /// Draw from the K best words only; 0 for all.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Draw from the best words only that together have this probability.
    #[arg(long, value_name = "P")]
    top_p: Option<f64>,
    /// Draw from words only that have this part of the best one's probability.
    #[arg(long, value_name = "P")]
    min_p: Option<f64>,
    /// Divide the scores of words that came before by this.
    #[arg(long, value_name = "N")]
    repetition_penalty: Option<f64>,
    /// Subtract this from a word's score for each time that it was made.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    frequency_penalty: Option<f64>,
    /// Subtract this from the score of each word that was made.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    presence_penalty: Option<f64>,
    /// Seed of the random numbers: equal seeds give equal text.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl SamplingArgs {
    fn over(&self, folder: &Sampling) -> Sampling {
        Sampling {
            temperature: self.temperature.unwrap_or(folder.temperature),
            top_k: self.top_k.unwrap_or(folder.top_k),
            top_p: self.top_p.unwrap_or(folder.top_p),
            min_p: self.min_p.unwrap_or(folder.min_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(folder.repetition_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(folder.frequency_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(folder.presence_penalty),
            seed: self.seed,
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Figures<'a> {
    text: &'a str,
    words: &'a [u32],
    ended: &'static str,
    prompt_words: usize,
    load_seconds: f64,
    first_word_seconds: f64,
    words_per_second: Option<f64>,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let start = Instant::now();
    let folder = Folder::open(&args.folder, args.file.as_deref())?;
    let tokenizer = folder.tokenizer()?;
    let prompt = args.prompt_words(&folder, &tokenizer)?;
    let options = Options {
        sampling: args.sampling.over(&folder.settings.sampling),
        most: args.max_words as usize,
        stops: args.stops.clone(),
        abort: Some(interrupted()?),
    };
    options.sampling.check()?;
    let mut load = args.backends.options()?;
    // Nothing reads the scores behind the other words of a prompt.
    load.last_only
        .insert(folder.settings.ports.logits.clone(), 1);
    let mut session = model::load(&folder.model, load).await?;
    let load = start.elapsed().as_secs_f64();
    let mut decoder = Decoder::new(&session, &folder.settings)?;
    let mut show = |text: &str| {
        if !args.json {
            out::piece(text);
        }
    };
    let settings = &folder.settings;
    let made = kilim_text::generate(
        &mut session,
        &mut decoder,
        &tokenizer,
        settings,
        &prompt,
        &options,
        &mut show,
    );
    let made = made.await?;
    args.backends.keep_cache()?;
    if args.json {
        return out::json(&Figures {
            text: &made.text,
            words: &made.words,
            ended: ended(&made.ended),
            prompt_words: made.prompt,
            load_seconds: load,
            first_word_seconds: made.first,
            words_per_second: made.words_per_second(),
        });
    }
    out::piece("\n");
    print(&made, load);
    Ok(())
}

impl Args {
    fn prompt_words(&self, folder: &Folder, tokenizer: &Tokenizer) -> Result<Vec<u32>, Failure> {
        if !self.chat {
            return Ok(tokenizer.encode(&self.prompt, true)?);
        }
        let said = |role: &str, content: &str| Message {
            role: role.to_string(),
            content: content.to_string(),
        };
        let system = self.system.iter().map(|system| said("system", system));
        let messages: Vec<Message> = system.chain([said("user", &self.prompt)]).collect();
        let prompt = folder.chat()?.prompt(&messages)?;
        // The template writes the special words.
        Ok(tokenizer.encode(&prompt, false)?)
    }
}

fn ended(ended: &Ended) -> &'static str {
    match ended {
        Ended::Word(_) => "end",
        Ended::Stop(_) => "stop",
        Ended::Most => "max_words",
        Ended::Context => "context",
        Ended::Aborted => "aborted",
    }
}

fn print(made: &Generated, load: f64) {
    let rate = match made.words_per_second() {
        Some(rate) => format!(", then {rate:.1} words a second"),
        None => String::new(),
    };
    // The text is whole before its figures.
    let _ = stdout().flush();
    eprintln!(
        "loaded in {load:.2} s; {} words of prompt, the first word after {:.1} ms{rate}; {} words, ended by: {}",
        made.prompt,
        made.first * 1e3,
        made.words.len(),
        ended(&made.ended),
    );
}

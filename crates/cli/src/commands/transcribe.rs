//! `kilim transcribe`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use kilim::LoadOptions;
use kilim_speech::{Folder, Listener, Options, Segment, Sound, Wanted, read_sound, transcribe};
use serde::Serialize;

use crate::interrupt::interrupted;
use crate::model::{self, BackendArgs};
use crate::{Failure, out};

pub const EXAMPLES: &str = "\
Examples:
  kilim transcribe models/whisper-base talk.wav
  kilim transcribe models/whisper-base talk.wav --language de --translate
  kilim transcribe models/whisper-base talk.wav --format srt > talk.srt
  kilim transcribe models/ggml-base.bin talk.wav
  kilim transcribe models/moonshine-tiny note.wav --json";

/// How a transcript is written.
#[derive(Clone, Copy, Default, PartialEq, ValueEnum)]
enum Format {
    /// The text alone, a line for each part.
    #[default]
    Text,
    /// Each part with its times.
    Times,
    /// Subtitles, SubRip.
    Srt,
    /// Subtitles, WebVTT.
    Vtt,
}

#[derive(clap::Args)]
pub struct Args {
    /// A folder with a Whisper or Moonshine model, as Optimum or transformers.js lay it out; or a Whisper file of whisper.cpp.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// What was said: a WAV file, of any rate and number of channels.
    #[arg(value_name = "SOUND")]
    sound: PathBuf,
    /// The language that is spoken, `en` for instance; if nothing is said, the model finds out.
    #[arg(long, value_name = "CODE")]
    language: Option<String>,
    /// Write it in English.
    #[arg(long)]
    translate: bool,
    /// How the transcript is written.
    #[arg(long, value_enum, default_value_t, conflicts_with = "json")]
    format: Format,
    /// Print the text, its parts and the figures as JSON when it is whole.
    #[arg(long)]
    json: bool,
    /// How names of the models end, where there are several: `q4` for `encoder_model_q4.onnx`.
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    #[command(flatten)]
    backends: BackendArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Figures<'a> {
    text: String,
    language: Option<&'a str>,
    parts: Vec<Timed<'a>>,
    sound_seconds: f64,
    load_seconds: f64,
    seconds: f64,
}

#[derive(Serialize)]
struct Timed<'a> {
    start: f64,
    end: f64,
    text: &'a str,
    words: &'a [u32],
    certainty: f64,
    cut: bool,
}

pub async fn run(args: Args) -> Result<(), Failure> {
    let start = Instant::now();
    let folder = Folder::open(&args.folder, args.kind.as_deref())?;
    let tokenizer = folder.tokenizer()?;
    let settings = folder.settings.clone();
    let sound = read_sound(&args.sound)?.at(settings.rate as u32)?;
    let mut options = args.backends.options()?;
    let [encoded, decoded] = folder.outputs();
    let mut listening = LoadOptions {
        change: Some(Arc::new(move |graph| settings.listening(graph))),
        ..options.clone()
    };
    listening.outputs = encoded;
    let encoder = model::load(&folder.encoder, listening).await?;
    // Nothing reads the scores behind the other words of a prompt.
    let scores = folder.settings.text.ports.logits.clone();
    options.last_only.insert(scores, 1);
    options.outputs = decoded;
    let decoder = model::load(&folder.decoder, options).await?;
    let load = start.elapsed().as_secs_f64();
    let mut listener = Listener::new(encoder, decoder, folder.settings.clone())?;
    let wanted = Wanted {
        language: args.language.clone(),
        translate: args.translate,
        times: args.wants_times(&listener),
        ..Wanted::default()
    };
    let options = Options {
        wanted,
        abort: Some(interrupted()?),
    };
    if args.format == Format::Vtt && !args.json {
        say!("WEBVTT\n");
    }
    let start = Instant::now();
    let mut printer = Printer {
        format: args.format,
        printed: 0,
    };
    let mut show = |segment: &Segment, _| {
        if !args.json {
            printer.part(segment);
        }
    };
    let samples = &sound.samples;
    let made = transcribe(&mut listener, &tokenizer, samples, &options, &mut show).await?;
    let seconds = start.elapsed().as_secs_f64();
    args.backends.keep_cache()?;
    if args.json {
        let parts = made.segments.iter().map(|segment| Timed {
            start: segment.start,
            end: segment.end,
            text: &segment.text,
            words: &segment.words,
            certainty: segment.certainty,
            cut: segment.cut,
        });
        return out::json(&Figures {
            text: made.text(),
            language: made.language.as_deref(),
            parts: parts.collect(),
            sound_seconds: sound.seconds(),
            load_seconds: load,
            seconds,
        });
    }
    for segment in made.segments.iter().filter(|segment| segment.cut) {
        let start = clock(segment.start, '.');
        eprintln!(
            "the model came to no end of what it hears from {start} on: more may be said there"
        );
    }
    print(&sound, load, seconds, made.language.as_deref());
    Ok(())
}

impl Args {
    /// JSON has times where the model has them.
    fn wants_times(&self, listener: &Listener) -> bool {
        match self.json {
            true => listener.settings().has_times(),
            false => self.format != Format::Text,
        }
    }
}

struct Printer {
    format: Format,
    printed: usize,
}

impl Printer {
    fn part(&mut self, segment: &Segment) {
        let (start, end, text) = (segment.start, segment.end, segment.text.trim());
        self.printed += 1;
        match self.format {
            Format::Text => say!("{text}"),
            Format::Times => say!("{} – {}  {text}", clock(start, '.'), clock(end, '.')),
            Format::Srt => {
                let (start, end) = (clock(start, ','), clock(end, ','));
                say!("{}\n{start} --> {end}\n{text}\n", self.printed);
            }
            Format::Vtt => say!("{} --> {}\n{text}\n", clock(start, '.'), clock(end, '.')),
        }
    }
}

/// Hours, minutes, seconds and thousandths, as subtitles have them.
fn clock(seconds: f64, point: char) -> String {
    let thousandths = (seconds * 1e3).round() as u64;
    let (seconds, thousandths) = (thousandths / 1000, thousandths % 1000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!(
        "{hours:02}:{minutes:02}:{:02}{point}{thousandths:03}",
        seconds % 60
    )
}

fn print(sound: &Sound, load: f64, seconds: f64, language: Option<&str>) {
    let language = language.map_or(String::new(), |code| format!(", language {code}"));
    eprintln!(
        "loaded in {load:.2} s; {:.1} s of sound in {seconds:.2} s, {:.1} times as fast{language}",
        sound.seconds(),
        sound.seconds() / seconds,
    );
}

#[cfg(test)]
mod tests {
    use super::clock;

    #[test]
    fn times_are_written_as_subtitles_have_them() {
        assert_eq!(clock(0.0, ','), "00:00:00,000");
        assert_eq!(clock(3725.0604, '.'), "01:02:05.060");
        assert_eq!(clock(59.9996, '.'), "00:01:00.000");
    }
}

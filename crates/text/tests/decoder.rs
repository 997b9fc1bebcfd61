//! A decoder's caches have room and stay where they are: the words are those of caches that grow with each step.

mod speaker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kilim::core::AbortSignal;
use kilim::{Datum, Dim, ErrorCode, Keep, RunOptions, Session, Tensor};
use kilim_text::{Settings, Windows};
use speaker::{Speaker, best, prompt, session, session_with, settings, spoken, step};

/// The models of `tests/references/language.zip` whose caches are in the type of their arithmetic.
const MODELS: [&str; 8] = [
    "llama-int4",
    "llama-int4-asymmetric",
    "llama-int8",
    "qwen2-int4",
    "qwen3-int4",
    "phi3-int4",
    "smollm3-int4",
    "lfm2-int4",
];

/// A model with caches of `float16`, which the CPU widens.
const HALF: &str = "llama-fp16";

/// A text whose caches are what the step before gave, with no room behind it.
struct Growing {
    session: Session,
    caches: Vec<(String, Datum)>,
    words: usize,
}

impl Growing {
    fn new(model: &str) -> Growing {
        let session = session_with(model, |_| {});
        let inputs = session.inputs().iter();
        let caches = inputs.filter(|port| port.name.starts_with("past"));
        let empty = |port: &kilim::Port| {
            let dims = port.fact.shape.as_ref().unwrap().0.iter();
            let open = [1, 1, 0, 16];
            let shape = dims
                .zip(open)
                .map(|(d, open)| Dim::known(d).unwrap_or(open));
            let shape: Vec<usize> = shape.collect();
            let tensor = Tensor::zeros(port.fact.dtype.unwrap(), &shape).unwrap();
            (port.name.clone(), Datum::from(tensor))
        };
        Growing {
            caches: caches.map(empty).collect(),
            words: 0,
            session,
        }
    }

    fn step(&mut self, words: &[u32]) -> u32 {
        let total = self.words + words.len();
        let row = |numbers: Vec<i64>| -> Datum {
            Tensor::from_slice(&[1, numbers.len()], &numbers)
                .unwrap()
                .into()
        };
        let mut inputs: Vec<(&str, Datum)> = Vec::new();
        for port in self.session.inputs() {
            let datum = match port.name.as_str() {
                "input_ids" => row(words.iter().map(|&w| w.into()).collect()),
                "attention_mask" => row(vec![1; total]),
                "position_ids" => row((self.words as i64..total as i64).collect()),
                _ => continue,
            };
            let name = ["input_ids", "attention_mask", "position_ids"];
            let name = name.into_iter().find(|name| *name == port.name);
            inputs.push((name.unwrap(), datum));
        }
        inputs.extend(self.caches.iter().map(|(n, d)| (n.as_str(), d.clone())));
        let options = RunOptions {
            keep: Keep::new(["present*"]),
            ..RunOptions::default()
        };
        let outputs = pollster::block_on(self.session.run_data(&inputs, &options)).unwrap();
        drop(inputs);
        let mut scores = Vec::new();
        for (name, datum) in outputs {
            let past = if name.ends_with(".conv") {
                "past"
            } else {
                "past_key_values"
            };
            let cache = name.replace("present", past);
            match self.caches.iter_mut().find(|(name, _)| *name == cache) {
                Some((_, kept)) => *kept = datum,
                None => {
                    let all = datum.tensor().unwrap().to_f64s().unwrap();
                    scores = all[all.len() - all.len() / words.len()..].to_vec();
                }
            }
        }
        self.words = total;
        best(&scores)
    }

    fn spoken(&mut self, prompt: &[u32], count: usize) -> Vec<u32> {
        let mut words = vec![self.step(prompt)];
        while words.len() < count {
            let last = words[words.len() - 1];
            words.push(self.step(&[last]));
        }
        words
    }
}

#[test]
fn the_words_are_those_of_growing_caches() {
    for model in MODELS.into_iter().chain([HALF]) {
        let want = Growing::new(model).spoken(&prompt(5, 1), 40);
        let mut s = session(model);
        let written = match model {
            HALF => 0,
            // One layer has a convolution's state in place of caches.
            "lfm2-int4" => 2,
            _ => 4,
        };
        assert_eq!(s.written_on().len(), written, "{model}");
        let mut decoder = Speaker::new(&mut s, &settings(128));
        assert_eq!(spoken(&mut decoder, &prompt(5, 1), 40), want, "{model}");
    }
}

/// One layer of this model sees the last 8 words. How many more its caches hold, and whether they ever forget, changes no word.
#[test]
fn caches_of_windows_forget() {
    let said = |places| {
        let mut s = session("gemma2-int4");
        let settings = Settings {
            windows: Windows {
                layers: vec![0],
                places,
            },
            ..settings(128)
        };
        let mut decoder = Speaker::new(&mut s, &settings);
        let mut words = spoken(&mut decoder, &prompt(5, 1), 30);
        // Several words at once behind them.
        words.extend(spoken(&mut decoder, &prompt(12, 2), 10));
        words
    };
    let want = said(64);
    for places in [8, 9, 13] {
        assert_eq!(said(places), want, "{places}");
    }
}

/// 300 words, for which the room is made larger once, and a second text behind it.
#[test]
fn a_text_outgrows_its_room() {
    let want = Growing::new("llama-int4").spoken(&prompt(6, 2), 300);
    let mut s = session("llama-int4");
    for _ in 0..2 {
        let mut decoder = Speaker::new(&mut s, &settings(2048));
        assert_eq!(spoken(&mut decoder, &prompt(6, 2), 300), want);
        assert_eq!(decoder.length(), 305);
    }
    // A plan for each of two prompts and two rooms.
    let plans = s.report().plans;
    assert!(plans.made <= 4, "{plans:?}");
    let bytes = |s: &Session| -> Vec<usize> {
        let report = s.report();
        let arenas = report.memory.iter().map(|plan| plan.bytes);
        arenas.collect()
    };
    let memory = bytes(&s);
    let mut decoder = Speaker::new(&mut s, &settings(2048));
    spoken(&mut decoder, &prompt(6, 2), 300);
    assert_eq!(bytes(&s), memory);
}

#[test]
fn a_prompt_may_be_longer_than_a_room() {
    let want = Growing::new("qwen3-int4").spoken(&prompt(600, 3), 20);
    let mut s = session("qwen3-int4");
    let mut decoder = Speaker::new(&mut s, &settings(2048));
    assert_eq!(spoken(&mut decoder, &prompt(600, 3), 20), want);
    // Several prompts, one behind the other.
    let mut growing = Growing::new("qwen3-int4");
    let mut decoder = Speaker::new(&mut s, &settings(700));
    for (count, seed) in [(3, 1), (250, 2), (1, 3), (300, 4), (146, 5)] {
        let words = prompt(count, seed);
        assert_eq!(step(&mut decoder, &words), growing.step(&words), "{count}");
    }
    assert_eq!(decoder.length(), 700);
}

/// A step that was aborted has taken the caches along; the text goes on as if it had not been.
#[test]
fn a_text_goes_on_behind_a_step_that_was_aborted() {
    /// Is set from the question with this number on.
    struct After(usize, AtomicUsize);
    impl AbortSignal for After {
        fn is_set(&self) -> bool {
            self.1.fetch_add(1, Ordering::Relaxed) >= self.0
        }

        fn piece(&self) -> usize {
            64
        }
    }
    let want = Growing::new("llama-int4").spoken(&prompt(6, 4), 30);
    let mut s = session("llama-int4");
    let mut decoder = Speaker::new(&mut s, &settings(128));
    let mut words = vec![step(&mut decoder, &prompt(6, 4))];
    let mut aborted = 0;
    while words.len() < want.len() {
        let last = words[words.len() - 1];
        let options = RunOptions {
            abort: Some(Arc::new(After(7 * words.len(), AtomicUsize::new(0)))),
            ..RunOptions::default()
        };
        let length = decoder.length();
        match decoder.run(&[last], &options) {
            Ok(scores) => words.push(best(&scores)),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::Aborted);
                assert_eq!(decoder.length(), length);
                aborted += 1;
                words.push(step(&mut decoder, &[last]));
            }
        }
    }
    assert!(aborted > 5, "{aborted}");
    assert_eq!(words, want);
    let options = RunOptions {
        abort: Some(Arc::new(AtomicBool::new(true))),
        ..RunOptions::default()
    };
    assert!(decoder.run(&[7], &options).is_err());
}

/// Turns of a conversation, one that takes back what was said last, and another text: each begins with words that the caches know.
#[test]
fn a_text_that_begins_as_the_one_before_keeps_its_caches() {
    for model in ["llama-int4", HALF] {
        let mut s = session(model);
        let mut decoder = Speaker::new(&mut s, &settings(2048));
        let mut text = prompt(9, 5);
        let mut want_kept = 0;
        for turn in 0..6 {
            let kept = pollster::block_on(decoder.decoder.resume(&text)).unwrap();
            // The mask of this one is for a prompt, or for one word behind it, which the second turn shows.
            if model == HALF && turn > 1 && want_kept + 1 < text.len() {
                want_kept = 0;
            }
            assert_eq!(kept, want_kept, "{model}, turn {turn}");
            assert_eq!(decoder.length(), kept);
            let said = spoken(&mut decoder, &text[kept..], 12);
            let want = Growing::new(model).spoken(&text, 12);
            assert_eq!(said, want, "{model}, turn {turn}");
            // The last word was not run.
            let run = text.len() + said.len() - 1;
            match turn {
                // The same once more: its last word is run again.
                1 => want_kept = text.len() - 1,
                // A shorter beginning, and other words.
                3 => {
                    text.truncate(4);
                    want_kept = 4;
                    text.extend(prompt(5, 6));
                }
                // Nothing in common.
                4 => {
                    text = prompt(7, 8);
                    want_kept = 0;
                }
                _ => {
                    text.extend(said);
                    want_kept = run;
                    text.extend(prompt(3, turn));
                }
            }
        }
    }
}

//! A decoder's session: words go in, scores come out, caches go round.

use kilim_core::error::unsupported;
use kilim_core::{DType, Datum, Error, ErrorCode, Keep, Port, Result, RunOptions, Session, Tensor};

use crate::cache::{Cache, shape_of};
use crate::settings::{CacheNames, PortNames, Settings};

/// A decoder in the middle of a text. Its session is given at each call, the same one always.
pub struct Decoder {
    feeds: Vec<Feed>,
    /// The output with the scores.
    logits: String,
    /// Caches stay where they are computed.
    keep: Keep,
    /// What an encoder made, where the model attends to that.
    source: Option<Datum>,
    /// Words that the model can look back on.
    context: Option<usize>,
    /// The words so far.
    text: Vec<u32>,
    /// How many of them the caches know: all, unless a step has failed.
    cached: usize,
    /// Whether the model takes several words at once behind those of its caches, as far as is known: masks of some exporters are for a
    /// prompt, or for one word behind it.
    appends: bool,
}

/// An input of the model.
struct Feed {
    name: String,
    dtype: DType,
    what: What,
}

enum What {
    /// Numbers of the new words, `[1, n]`.
    Words,
    /// Ones for all words so far, `[1, total]`.
    Mask,
    /// Places of the new words in the text, `[1, n]`.
    Positions,
    /// Whether there is a cache already, `[1]`: decoders of two branches.
    CacheBranch,
    /// For how many of the last words scores are wanted: one.
    Wanted,
    /// What an encoder made, `[1, places, size]`.
    Source,
    /// Ones for all places of it, `[1, places]`.
    SourceMask,
    /// What an output gave in the step before.
    Cache(Cache),
}

impl Decoder {
    /// # Errors
    /// `Unsupported` where the model has an input that is none of a decoder's, or no words or scores; `DType` where one
    /// has an unusual element type; `Shape` where the sizes of a cache are not known.
    pub fn new(session: &Session, settings: &Settings) -> Result<Decoder> {
        let names = &settings.ports;
        let outputs = session.outputs();
        let caches = outputs.iter().filter_map(|port| names.cache(&port.name));
        let caches: Vec<CacheNames> = caches.collect();
        let written = session.written_on();
        let feeds = session.inputs().iter().map(|port| {
            let cache = caches.iter().find(|cache| cache.taken == port.name);
            let dtype = port.fact.dtype.ok_or_else(|| {
                let e = Error::new(ErrorCode::DType, "an input of unknown type");
                e.with_input(&port.name)
            })?;
            let what = match cache {
                Some(names) => {
                    let written = written.contains(&(&*names.given, &*names.taken));
                    What::Cache(Cache::new(port, dtype, names, written, settings)?)
                }
                None => What::of(port, names)?,
            };
            Ok(Feed {
                name: port.name.clone(),
                dtype,
                what,
            })
        });
        let feeds = feeds.collect::<Result<Vec<Feed>>>()?;
        let words = feeds.iter().any(|feed| matches!(feed.what, What::Words));
        let scores = outputs.iter().any(|port| port.name == names.logits);
        if !words || !scores {
            let [what, name, ports] = match words {
                false => ["input", &names.words, &list(session.inputs())],
                true => ["output", &names.logits, &list(session.outputs())],
            };
            let e = unsupported(format!("a decoder without the {what} `{name}`"));
            return Err(e.with_got(ports));
        }
        let kept = feeds.iter().filter_map(|feed| match &feed.what {
            What::Cache(cache) => Some(&cache.from),
            _ => None,
        });
        Ok(Decoder {
            keep: Keep::new(kept),
            feeds,
            logits: names.logits.clone(),
            source: None,
            context: settings.context,
            text: Vec::new(),
            cached: 0,
            appends: true,
        })
    }

    /// Begins an empty text about `source`, what an encoder made: `[1, places, size]`.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn attend(&mut self, source: Datum) -> Result<()> {
        self.source = Some(source);
        self.restart()
    }

    /// Begins an empty text.
    ///
    /// # Errors
    /// `Limit` where memory is short.
    pub fn restart(&mut self) -> Result<()> {
        self.text.clear();
        self.forget()
    }

    /// Words so far.
    pub fn length(&self) -> usize {
        self.text.len()
    }

    /// Goes back to what the words so far and `text` begin with in common, one word less than `text` at least, so that a step
    /// with the rest of `text` is left: a conversation's caches serve its next turn. Gives how many words are kept; none where a
    /// cache cannot forget some of its words alone.
    ///
    /// # Errors
    /// `Limit` where memory is short, `Device` where the device that has a cache is gone.
    pub async fn resume(&mut self, text: &[u32]) -> Result<usize> {
        let pairs = self.text[..self.cached].iter().zip(text);
        let common = pairs.take_while(|(own, other)| own == other).count();
        let mut kept = common.min(text.len().saturating_sub(1));
        let lost = self.caches().any(|cache| cache.is_lost());
        let cuts = self.caches().all(|cache| cache.can_be_cut());
        if kept < self.cached && (lost || !cuts) || !self.appends && kept + 1 < text.len() {
            kept = 0;
        }
        match kept {
            0 => self.forget()?,
            _ if kept < self.cached => {
                for cache in self.caches() {
                    cache.cut(kept).await?;
                }
            }
            _ => {}
        }
        self.text.truncate(kept);
        self.cached = kept;
        Ok(kept)
    }

    /// Runs the model on further words, and gives the scores of all words for the place behind them.
    ///
    /// # Errors
    /// Those of [`Session::run`]; `InvalidValue` without words; `Shape` for scores of another form than
    /// `[1, n, words]`. The text stays as it was; where the step took caches along, the next one computes them again.
    pub async fn step(
        &mut self,
        session: &mut Session,
        words: &[u32],
        options: &RunOptions,
    ) -> Result<Vec<f64>> {
        if words.is_empty() {
            return Err(Error::new(ErrorCode::InvalidValue, "a step without words"));
        }
        if self.caches().any(|cache| cache.is_lost()) || !self.appends && words.len() > 1 {
            self.forget()?;
        }
        let behind = self.cached > 0 && words.len() > 1;
        match self.run(session, words, options).await {
            // Anew, with all words at once.
            Err(e) if e.code() == ErrorCode::Shape && behind => {
                self.forget()?;
                let scores = self.run(session, words, options).await?;
                self.appends = false;
                Ok(scores)
            }
            scores => scores,
        }
    }

    /// Has the caches know nothing. The text stays.
    fn forget(&mut self) -> Result<()> {
        self.cached = 0;
        self.caches().try_for_each(Cache::clear)
    }

    /// Runs the model on the words that the caches do not know, and on `words`.
    async fn run(
        &mut self,
        session: &mut Session,
        words: &[u32],
        options: &RunOptions,
    ) -> Result<Vec<f64>> {
        let new = [&self.text[self.cached..], words].concat();
        let (total, context) = (self.cached + new.len(), self.context);
        for cache in self.caches() {
            cache.make_room(total, context).await?;
        }
        let mut inputs = Vec::with_capacity(self.feeds.len());
        for feed in &mut self.feeds {
            let datum = feed.datum(&new, self.cached, self.source.as_ref())?;
            inputs.push((&*feed.name, datum));
        }
        let options = RunOptions {
            keep: self.keep.clone(),
            ..options.clone()
        };
        let outputs = session.run_owned(inputs, &options).await?;
        let (mut scores, first) = (None, self.cached == 0);
        for (name, datum) in outputs {
            if name == self.logits {
                scores = Some(datum);
            } else if let Some(cache) = self.caches().find(|cache| cache.from == name) {
                cache.take(datum, first);
            }
        }
        self.text.extend(words);
        self.cached = self.text.len();
        let scores = scores.ok_or_else(|| Error::new(ErrorCode::State, "a run gave no scores"))?;
        last_row(scores.tensor()?)
    }

    fn caches(&mut self) -> impl Iterator<Item = &mut Cache> {
        self.feeds
            .iter_mut()
            .filter_map(|feed| match &mut feed.what {
                What::Cache(cache) => Some(cache),
                _ => None,
            })
    }
}

impl What {
    /// What an input that is no cache takes.
    fn of(port: &Port, names: &PortNames) -> Result<What> {
        let what = match port.name.as_str() {
            name if name == names.words => What::Words,
            name if name == names.mask => What::Mask,
            name if name == names.positions => What::Positions,
            "use_cache_branch" => What::CacheBranch,
            "num_logits_to_keep" | "logits_to_keep" => What::Wanted,
            name if name == names.source => What::Source,
            name if name == names.source_mask => What::SourceMask,
            name => {
                let e = unsupported(format!("a decoder with the input `{name}`"));
                let known = [&*names.words, &names.mask, &names.positions, "caches"];
                return Err(e.with_input(name).with_expected(known.join(", ")));
            }
        };
        let rank = port.fact.shape.as_ref().map(|shape| shape.0.len());
        let flat = match what {
            What::Words | What::Mask | What::Positions | What::SourceMask => 2,
            _ => return Ok(what),
        };
        match rank {
            Some(rank) if rank != flat => {
                let e = unsupported(format!("a decoder's input of {rank} dimensions"));
                Err(e.with_input(&port.name).with_expected("[1, words]"))
            }
            _ => Ok(what),
        }
    }
}

impl Feed {
    /// What a step with these words gives the input.
    fn datum(&mut self, words: &[u32], before: usize, source: Option<&Datum>) -> Result<Datum> {
        let source = || {
            let message = "the decoder attends to an encoder's output, and was given none";
            source.ok_or_else(|| Error::new(ErrorCode::State, message))
        };
        let total = before + words.len();
        let row = |n: usize| vec![1, n];
        let (shape, numbers): (Vec<usize>, Vec<i64>) = match &mut self.what {
            What::Cache(cache) => return cache.give(),
            What::Words => {
                let numbers = words.iter().map(|&w| i64::from(w));
                (row(words.len()), numbers.collect())
            }
            What::Mask => (row(total), vec![1; total]),
            What::Positions => (row(words.len()), (before as i64..total as i64).collect()),
            What::CacheBranch => (vec![1], vec![i64::from(before > 0)]),
            What::Wanted => (Vec::new(), vec![1]),
            What::Source => return Ok(source()?.clone()),
            What::SourceMask => {
                let places = shape_of(source()?).and_then(|shape| shape.get(1));
                let places = places.copied().unwrap_or_default();
                (row(places), vec![1; places])
            }
        };
        let tensor = match self.dtype {
            DType::I64 => Tensor::from_slice(&shape, &numbers)?,
            DType::I32 => {
                let numbers: Vec<i32> = numbers.iter().map(|&n| n as i32).collect();
                Tensor::from_slice(&shape, &numbers)?
            }
            DType::Bool => {
                let numbers: Vec<bool> = numbers.iter().map(|&n| n != 0).collect();
                Tensor::from_bools(&shape, &numbers)?
            }
            other => {
                let e = Error::new(ErrorCode::DType, "an unusual input of a decoder");
                let e = e.with_input(&self.name).with_got(other);
                return Err(e.with_expected("int64, int32 or bool"));
            }
        };
        Ok(tensor.into())
    }
}

/// The scores behind the last word.
fn last_row(logits: &Tensor) -> Result<Vec<f64>> {
    let (&[1, rows, words], true) = (logits.shape(), !logits.is_empty()) else {
        let e = Error::new(ErrorCode::Shape, "scores of an unusual shape");
        let shape: Vec<String> = logits.shape().iter().map(usize::to_string).collect();
        let e = e.with_got(format!("[{}]", shape.join(", ")));
        return Err(e.with_expected("[1, n, words]"));
    };
    let mut scores = Vec::new();
    logits.append_f64s((rows - 1) * words..rows * words, &mut scores)?;
    Ok(scores)
}

fn list(ports: &[Port]) -> String {
    let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    names.join(", ")
}

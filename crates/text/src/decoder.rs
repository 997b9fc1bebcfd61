//! A decoder's session: words go in, scores come out, caches go round.

use kilim_core::error::unsupported;
use kilim_core::{
    DType, Datum, Dim, Error, ErrorCode, Keep, Port, Result, RunOptions, Session, Tensor,
};

use crate::settings::{PortNames, Settings};

/// A decoder in the middle of a text.
pub struct Decoder<'a> {
    session: &'a mut Session,
    feeds: Vec<Feed>,
    /// The output with the scores.
    logits: String,
    /// Caches stay where they are computed.
    keep: Keep,
    /// Words that the caches know.
    length: usize,
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
    /// What the output `from` gave in the step before.
    Cache { from: String, value: Datum },
}

impl<'a> Decoder<'a> {
    /// # Errors
    /// `Unsupported` where the model has an input that is none of a decoder's, or no words or scores; `DType` where one
    /// has an unusual element type; `Shape` where the sizes of a cache are not known.
    pub fn new(session: &'a mut Session, settings: &Settings) -> Result<Decoder<'a>> {
        let names = &settings.ports;
        let outputs = session.outputs();
        let caches: Vec<[String; 2]> = outputs
            .iter()
            .filter_map(|port| Some([names.taken(&port.name)?, port.name.clone()]))
            .collect();
        let feeds = session.inputs().iter().map(|port| {
            let cache = caches.iter().find(|[taken, _]| *taken == port.name);
            let dtype = port.fact.dtype.ok_or_else(|| {
                let e = Error::new(ErrorCode::DType, "an input of unknown type");
                e.with_input(&port.name)
            })?;
            let what = match cache {
                Some([_, from]) => What::Cache {
                    from: from.clone(),
                    value: Tensor::zeros(dtype, &empty_cache(port, settings)?)?.into(),
                },
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
            What::Cache { from, .. } => Some(from),
            _ => None,
        });
        Ok(Decoder {
            keep: Keep::new(kept),
            feeds,
            logits: names.logits.clone(),
            session,
            length: 0,
        })
    }

    /// Words so far.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Runs the model on further words, and gives the scores of all words for the place behind them.
    ///
    /// # Errors
    /// Those of [`Session::run`]; `InvalidValue` without words; `Shape` for scores of another form than
    /// `[1, n, words]`. The text stays as it was.
    pub async fn step(&mut self, words: &[u32], options: &RunOptions) -> Result<Vec<f64>> {
        if words.is_empty() {
            return Err(Error::new(ErrorCode::InvalidValue, "a step without words"));
        }
        let mut inputs = Vec::with_capacity(self.feeds.len());
        for feed in &self.feeds {
            inputs.push((&*feed.name, feed.datum(words, self.length)?));
        }
        let options = RunOptions {
            keep: self.keep.clone(),
            ..options.clone()
        };
        let outputs = self.session.run_data(&inputs, &options).await?;
        drop(inputs);
        let mut scores = None;
        for (name, datum) in outputs {
            if name == self.logits {
                scores = Some(last_row(datum.tensor()?)?);
            } else if let Some(value) = self.cache(&name) {
                *value = datum;
            }
        }
        self.length += words.len();
        scores.ok_or_else(|| Error::new(ErrorCode::State, "a run gave no scores"))
    }

    fn cache(&mut self, output: &str) -> Option<&mut Datum> {
        self.feeds.iter_mut().find_map(|feed| match &mut feed.what {
            What::Cache { from, value } if from == output => Some(value),
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
            name => {
                let e = unsupported(format!("a decoder with the input `{name}`"));
                let known = [&*names.words, &names.mask, &names.positions, "caches"];
                return Err(e.with_input(name).with_expected(known.join(", ")));
            }
        };
        let rank = port.fact.shape.as_ref().map(|shape| shape.0.len());
        let flat = match what {
            What::Words | What::Mask | What::Positions => 2,
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
    fn datum(&self, words: &[u32], before: usize) -> Result<Datum> {
        let total = before + words.len();
        let row = |n: usize| vec![1, n];
        let (shape, numbers): (Vec<usize>, Vec<i64>) = match &self.what {
            What::Cache { value, .. } => return Ok(value.clone()),
            What::Words => {
                let numbers = words.iter().map(|&w| i64::from(w));
                (row(words.len()), numbers.collect())
            }
            What::Mask => (row(total), vec![1; total]),
            What::Positions => (row(words.len()), (before as i64..total as i64).collect()),
            What::CacheBranch => (vec![1], vec![i64::from(before > 0)]),
            What::Wanted => (Vec::new(), vec![1]),
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

/// The shape of a cache before the first word: sizes that the model leaves open are one sequence, no words, and what
/// the settings say of heads.
fn empty_cache(port: &Port, settings: &Settings) -> Result<Vec<usize>> {
    let unknown = || {
        let e = Error::new(ErrorCode::Shape, "a cache of unknown size");
        let e = e.with_input(&port.name).with_got(&port.fact);
        e.with_hint("the model's settings must say how many heads it has, and their size")
    };
    let shape = port.fact.shape.as_ref().ok_or_else(unknown)?;
    let heads = shape.0.len() == 4;
    let size = |(axis, dim): (usize, &Dim)| match (dim.known(), axis) {
        (Some(size), _) => Ok(size),
        (None, 0) => Ok(1),
        (None, 1) if heads => settings.heads.ok_or_else(unknown),
        (None, 2) if heads => Ok(0),
        (None, 3) if heads => settings.head_size.ok_or_else(unknown),
        _ => Err(unknown()),
    };
    shape.0.iter().enumerate().map(size).collect()
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

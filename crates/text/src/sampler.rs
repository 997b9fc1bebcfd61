//! Choosing the next word by the scores of all words.

use std::cmp::Ordering;
use std::collections::HashMap;

use kilim_core::{Error, ErrorCode, Result};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// How words are chosen. Everything but the seed is applied in the order of the fields. As JSON it is what the npm package has.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sampling {
    /// Scores of words of the prompt and the text so far are divided by it where they are above zero, multiplied
    /// where they are below. 1 changes nothing.
    pub repetition_penalty: f64,
    /// Subtracted from a word's score for each time that it stands in the text so far, the prompt left out.
    pub frequency_penalty: f64,
    /// Subtracted from the score of every word that stands in the text so far, the prompt left out.
    pub presence_penalty: f64,
    /// Scores are divided by it. 0 takes the best word always, the first one of several.
    pub temperature: f64,
    /// Only so many of the best words are drawn from; 0 for all of them.
    pub top_k: usize,
    /// Only the best words are drawn from that together have this probability; 1 for all of them.
    pub top_p: f64,
    /// Only words are drawn from that have this part of the best word's probability; 0 for all of them.
    pub min_p: f64,
    /// Seed of the random numbers: equal seeds give equal words for equal scores, on every machine.
    pub seed: u64,
}

impl Default for Sampling {
    /// The best word always.
    fn default() -> Self {
        Sampling {
            repetition_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            temperature: 0.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            seed: 0,
        }
    }
}

impl Sampling {
    /// # Errors
    /// `InvalidValue` for a number out of its range.
    pub fn check(&self) -> Result<()> {
        let checks = [
            (
                "repetition_penalty",
                self.repetition_penalty,
                self.repetition_penalty > 0.0,
                "above 0",
            ),
            ("frequency_penalty", self.frequency_penalty, true, "finite"),
            ("presence_penalty", self.presence_penalty, true, "finite"),
            (
                "temperature",
                self.temperature,
                self.temperature >= 0.0,
                "0 or more",
            ),
            (
                "top_p",
                self.top_p,
                self.top_p > 0.0 && self.top_p <= 1.0,
                "above 0, at most 1",
            ),
            (
                "min_p",
                self.min_p,
                (0.0..=1.0).contains(&self.min_p),
                "from 0 to 1",
            ),
        ];
        for (name, value, fits, expected) in checks {
            if !fits || !value.is_finite() {
                let message = format!("the sampling option `{name}` is out of its range");
                let e = Error::new(ErrorCode::InvalidValue, message);
                return Err(e.with_expected(expected).with_got(value));
            }
        }
        Ok(())
    }
}

/// How often a word has been seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// In the prompt or the text.
    at_all: bool,
    /// In the text alone.
    count: u32,
}

/// Chooses words one after the other.
pub struct Sampler {
    sampling: Sampling,
    random: ChaCha8Rng,
    seen: HashMap<u32, Seen>,
}

impl Sampler {
    /// # Errors
    /// Those of [`Sampling::check`].
    pub fn new(sampling: Sampling) -> Result<Sampler> {
        sampling.check()?;
        Ok(Sampler {
            random: ChaCha8Rng::seed_from_u64(sampling.seed),
            sampling,
            seen: HashMap::new(),
        })
    }

    /// Tells the sampler of words of a prompt.
    pub fn prompt(&mut self, words: &[u32]) {
        for &word in words {
            self.seen.entry(word).or_default().at_all = true;
        }
    }

    /// The next word, which counts as one of the text. `scores` has one for each word.
    ///
    /// # Errors
    /// `InvalidValue` where no score is a number.
    pub fn pick(&mut self, scores: &mut [f64]) -> Result<u32> {
        self.penalise(scores);
        let word = match self.sampling.temperature {
            0.0 => best(scores),
            _ => self.draw(scores),
        };
        let word = word.ok_or_else(|| {
            let message = "the model gives no word a score that is a number";
            Error::new(ErrorCode::InvalidValue, message)
        })?;
        let seen = self.seen.entry(word).or_default();
        seen.at_all = true;
        seen.count += 1;
        Ok(word)
    }

    fn penalise(&self, scores: &mut [f64]) {
        let s = &self.sampling;
        for (&word, seen) in &self.seen {
            let Some(score) = scores.get_mut(word as usize) else {
                continue;
            };
            if seen.at_all {
                *score = match *score > 0.0 {
                    true => *score / s.repetition_penalty,
                    false => *score * s.repetition_penalty,
                };
            }
            if seen.count > 0 {
                *score -= f64::from(seen.count) * s.frequency_penalty + s.presence_penalty;
            }
        }
    }

    fn draw(&mut self, scores: &[f64]) -> Option<u32> {
        let words = chances(scores, &self.sampling);
        let sum: f64 = words.iter().map(|&(_, chance)| chance).sum();
        // 53 bits, as many as a number has.
        let unit = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut left = unit * sum;
        for &(word, chance) in &words {
            left -= chance;
            if left < 0.0 {
                return Some(word);
            }
        }
        // Sums are rounded.
        words.last().map(|&(word, _)| word)
    }
}

/// Higher scores first; of equal ones, the word that comes first.
fn better(a: &(u32, f64), b: &(u32, f64)) -> Ordering {
    b.1.total_cmp(&a.1).then(a.0.cmp(&b.0))
}

fn numbers(scores: &[f64]) -> impl Iterator<Item = (u32, f64)> {
    let words = scores.iter().enumerate();
    words
        .map(|(word, &score)| (word as u32, score))
        .filter(|(_, score)| !score.is_nan() && *score != f64::NEG_INFINITY)
}

fn best(scores: &[f64]) -> Option<u32> {
    numbers(scores).min_by(better).map(|(word, _)| word)
}

/// The words to draw from, the best first where that matters, with weights that are their probabilities times a
/// common factor.
fn chances(scores: &[f64], sampling: &Sampling) -> Vec<(u32, f64)> {
    let mut words: Vec<(u32, f64)> = numbers(scores).collect();
    if sampling.top_k > 0 && sampling.top_k < words.len() {
        words.select_nth_unstable_by(sampling.top_k - 1, better);
        words.truncate(sampling.top_k);
        words.sort_unstable_by(better);
    }
    let highest = words.iter().fold(f64::NEG_INFINITY, |h, &(_, s)| h.max(s));
    for (_, score) in &mut words {
        // An infinite score: it is drawn for certain.
        *score = match *score == highest {
            true => 1.0,
            false => ((*score - highest) / sampling.temperature).exp(),
        };
    }
    // The best has the weight 1 now.
    words.retain(|&(_, weight)| weight >= sampling.min_p);
    if sampling.top_p < 1.0 {
        words.sort_unstable_by(better);
        let mut room = sampling.top_p * words.iter().map(|&(_, weight)| weight).sum::<f64>();
        let kept = words.iter().take_while(|&&(_, weight)| {
            let begins = room > 0.0;
            room -= weight;
            begins
        });
        let kept = kept.count().max(1);
        words.truncate(kept);
    }
    words
}

#[cfg(test)]
mod tests;

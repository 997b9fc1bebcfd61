//! Where the windows of a recording begin and end, and when what was heard in them was said.

use serde::Serialize;

use crate::rules::Times;
use crate::settings::Settings;
use crate::writer::Heard;

/// The shortest pause that a long recording of a model without times is cut in, in seconds; and how long before the end of a window
/// one is looked for.
const PAUSE: f64 = 0.03;
const SEARCHED: f64 = 10.0;

/// A part of a window, in seconds from its begin.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    pub start: f64,
    pub end: f64,
    /// Words of text.
    pub words: Vec<u32>,
    /// The mean of the natural logarithms of the probabilities of all words of the window: 0 where the model is sure, Whisper's authors doubt
    /// what is below −1.
    pub certainty: f64,
    /// Whether the model came to no end of this text, so that more may have been said.
    pub cut: bool,
}

impl Settings {
    /// How many of the samples that are left of a recording are heard next. `times` says whether the model is asked when a word was said:
    /// where it is not, a window ends in the quietest place of its last ten seconds.
    pub fn next_window(&self, samples: &[f32], times: bool) -> usize {
        if samples.len() <= self.window {
            return samples.len();
        }
        match times {
            true => self.window,
            false => quietest(&samples[..self.window], self.rate as f64),
        }
    }

    /// The parts of a window of so many samples, and how many of these are done with. Where a sentence goes on behind the window, it is
    /// heard again from its begin on.
    pub fn parts(&self, heard: Heard, times: bool, samples: usize) -> (Vec<Part>, usize) {
        let rate = self.rate as f64;
        let times = self.times().filter(|_| times);
        let (parts, passed) = parts_of(heard, times, samples as f64 / rate);
        // Never for ever in one place.
        (
            parts,
            ((passed * rate).round() as usize).clamp(1, samples.max(1)),
        )
    }
}

/// The middle of the quietest pause near the end.
fn quietest(samples: &[f32], rate: f64) -> usize {
    let pause = ((PAUSE * rate) as usize).clamp(1, samples.len());
    let searched = ((SEARCHED * rate) as usize).clamp(pause, samples.len());
    let from = samples.len() - searched;
    let loudness = |place: &[f32]| -> f64 { place.iter().map(|s| f64::from(s * s)).sum() };
    let places = samples[from..].chunks_exact(pause).map(loudness);
    let quiet = places.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    quiet.map_or(samples.len(), |(place, _)| {
        from + place * pause + pause.div_ceil(2)
    })
}

/// The parts of a window of so many seconds, and how much of it is done with: where a sentence goes on behind the window, it is heard again
/// from the begin on.
fn parts_of(heard: Heard, times: Option<&Times>, seconds: f64) -> (Vec<Part>, f64) {
    let certainty = heard.certainty;
    let whole = |words: Vec<u32>, cut: bool| Part {
        start: 0.0,
        end: seconds,
        words,
        certainty,
        cut,
    };
    let Some(times) = times else {
        let part = whole(heard.words, heard.cut);
        let said = !part.words.is_empty();
        return (Vec::from_iter(said.then_some(part)), seconds);
    };
    let mut parts = Vec::new();
    let mut open: Option<Part> = None;
    for word in heard.words {
        match times.seconds(word) {
            Some(at) => match open.take_if(|part| !part.words.is_empty()) {
                Some(part) => parts.push(Part { end: at, ..part }),
                None => {
                    open = Some(Part {
                        start: at,
                        ..whole(Vec::new(), false)
                    })
                }
            },
            None => {
                let part = open.get_or_insert_with(|| whole(Vec::new(), false));
                part.words.push(word);
            }
        }
    }
    let begun = open.as_ref().is_some_and(|part| part.words.is_empty());
    let cut = open.filter(|part| !part.words.is_empty());
    match parts.last().map(|part| part.end) {
        // A sentence goes on behind the window, or begins in it behind one that ended.
        Some(end) if (cut.is_some() || begun) && end > 0.0 => (parts, end),
        _ => {
            let cut = cut.map(|part| Part {
                cut: heard.cut,
                ..part
            });
            parts.extend(cut);
            (parts, seconds)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times {
        first: 100,
        step: 0.5,
        none: 99,
        latest_begin: None,
    };

    fn parts(words: &[u32]) -> (Vec<(f64, f64, Vec<u32>)>, f64) {
        let heard = Heard {
            words: words.to_vec(),
            language: None,
            certainty: 0.0,
            cut: false,
        };
        let (parts, passed) = parts_of(heard, Some(&TIMES), 30.0);
        let parts = parts.into_iter().map(|p| (p.start, p.end, p.words));
        (parts.collect(), passed)
    }

    #[test]
    fn a_window_that_ends_in_a_pause_is_done() {
        let (parts, passed) = parts(&[100, 1, 2, 104, 104, 3, 110]);
        assert_eq!(parts, [(0.0, 2.0, vec![1, 2]), (2.0, 5.0, vec![3])]);
        assert_eq!(passed, 30.0);
    }

    #[test]
    fn a_sentence_that_is_cut_is_heard_again() {
        let (first, passed) = parts(&[100, 1, 104, 106, 2, 3]);
        assert_eq!((first, passed), (vec![(0.0, 2.0, vec![1])], 2.0));
        let (second, passed) = parts(&[100, 1, 104, 106]);
        assert_eq!((second, passed), (vec![(0.0, 2.0, vec![1])], 2.0));
    }

    #[test]
    fn a_single_sentence_that_is_cut_is_taken_as_it_is() {
        let (parts, passed) = parts(&[102, 1, 2]);
        assert_eq!((parts, passed), (vec![(1.0, 30.0, vec![1, 2])], 30.0));
        assert_eq!(super::tests::parts(&[]), (vec![], 30.0));
        let still = super::tests::parts(&[100, 1, 100, 100, 2]);
        let expected = vec![(0.0, 0.0, vec![1]), (0.0, 30.0, vec![2])];
        assert_eq!(still, (expected, 30.0));
    }

    #[test]
    fn a_text_without_an_end_says_so() {
        let heard = |words: &[u32]| Heard {
            words: words.to_vec(),
            language: None,
            certainty: -0.5,
            cut: true,
        };
        let cut = |times: Option<&Times>, words: &[u32]| -> Vec<bool> {
            let (parts, _) = parts_of(heard(words), times, 30.0);
            assert!(parts.iter().all(|part| part.certainty == -0.5));
            parts.iter().map(|part| part.cut).collect()
        };
        assert_eq!(cut(None, &[1, 2]), [true]);
        assert!(cut(None, &[]).is_empty());
        assert_eq!(cut(Some(&TIMES), &[100, 1, 2]), [true]);
        // What follows is heard again.
        assert_eq!(cut(Some(&TIMES), &[100, 1, 104, 104, 2]), [false]);
    }

    #[test]
    fn a_long_recording_is_cut_where_it_is_quiet() {
        let mut samples = vec![0.5f32; 16_000 * 30];
        samples[400_000..401_000].fill(0.0);
        let cut = quietest(&samples, 16_000.0);
        assert!((400_000..401_000).contains(&cut), "{cut}");
    }
}

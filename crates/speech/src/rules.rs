//! Which words may come next in a window, and which times they stand for.

/// Words that stand for places in a window: Whisper's `<|0.00|>` and those behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// The word for the window's begin. All words from it on are times.
    pub first: u32,
    /// Seconds from one to the next.
    pub step: f64,
    /// The word that says that there are none.
    pub none: u32,
    /// Steps behind the window's begin where the first text may begin.
    pub latest_begin: Option<u32>,
}

impl Times {
    /// Seconds behind the window's begin; `None` for words of text.
    pub fn seconds(&self, word: u32) -> Option<f64> {
        Some(f64::from(word.checked_sub(self.first)?) * self.step)
    }
}

/// What a model must not say. The rules of times are those of Whisper's decoder (Radford et al., Robust Speech Recognition via
/// Large-Scale Weak Supervision, 2022, and its code).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    /// Words that never come.
    pub never: Vec<u32>,
    /// Words that do not begin a window.
    pub not_first: Vec<u32>,
    /// Where times are wanted.
    pub times: Option<Times>,
    /// Words below this one are text.
    pub text_ends: u32,
}

impl Rules {
    /// Takes the scores from words that may not follow `words`, those of the window behind its prompt.
    pub fn apply(&self, words: &[u32], scores: &mut [f64]) {
        let mut forbid = |word: u32| {
            if let Some(score) = scores.get_mut(word as usize) {
                *score = f64::NEG_INFINITY;
            }
        };
        self.never.iter().copied().for_each(&mut forbid);
        if words.is_empty() {
            self.not_first.iter().copied().for_each(&mut forbid);
        }
        if let Some(times) = &self.times {
            forbid(times.none);
            self.apply_times(times, words, scores);
        }
    }

    fn apply_times(&self, times: &Times, words: &[u32], scores: &mut [f64]) {
        let first = (times.first as usize).min(scores.len());
        let is_time = |word: &u32| *word >= times.first;
        let forbid = |scores: &mut [f64]| scores.fill(f64::NEG_INFINITY);
        // Times come in pairs, the end of one text and the begin of the next.
        let last = words.last().is_some_and(is_time);
        let paired = words.len() < 2 || is_time(&words[words.len() - 2]);
        match (last, paired) {
            (true, true) => forbid(&mut scores[first..]),
            (true, false) => forbid(&mut scores[..(self.text_ends as usize).min(first)]),
            (false, _) => {}
        }
        if let Some(&latest) = words.iter().rev().find(|word| is_time(word)) {
            // A text may end where the one before it began only if there is none in between.
            let earliest = latest as usize + usize::from(!last || paired);
            let earliest = earliest.clamp(first, scores.len());
            forbid(&mut scores[first..earliest]);
        }
        if words.is_empty() {
            forbid(&mut scores[..first]);
            if let Some(latest) = times.latest_begin {
                let behind = (first + latest as usize + 1).min(scores.len());
                forbid(&mut scores[behind..]);
            }
        }
        // A time comes where all of them together are more likely than any word of text.
        let (text, times) = scores.split_at_mut(first);
        let best = text.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if log_sum_exp(times) > best {
            forbid(text);
        }
    }
}

pub(crate) fn log_sum_exp(scores: &[f64]) -> f64 {
    let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if highest.is_infinite() {
        return highest;
    }
    let sum: f64 = scores.iter().map(|score| (score - highest).exp()).sum();
    highest + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words 0 to 3 are text, 4 ends it, 5 says that there are no times, 6 to 9 are times.
    fn rules() -> Rules {
        Rules {
            never: vec![3],
            not_first: vec![0],
            times: Some(Times {
                first: 6,
                step: 0.02,
                none: 5,
                latest_begin: Some(1),
            }),
            text_ends: 4,
        }
    }

    fn allowed(words: &[u32], scores: [f64; 10]) -> Vec<usize> {
        let mut scores = scores;
        rules().apply(words, &mut scores);
        let kept = scores.iter().enumerate();
        let kept = kept.filter(|(_, score)| **score > f64::NEG_INFINITY);
        kept.map(|(word, _)| word).collect()
    }

    /// Text is likelier than all times.
    const TEXT: [f64; 10] = [9.0, 9.0, 9.0, 9.0, 9.0, 9.0, 0.0, 0.0, 0.0, 0.0];

    #[test]
    fn a_window_begins_with_a_time_that_is_not_late() {
        assert_eq!(allowed(&[], TEXT), [6, 7]);
    }

    #[test]
    fn behind_a_first_time_comes_text() {
        assert_eq!(allowed(&[6], TEXT), [0, 1, 2, 4]);
    }

    #[test]
    fn behind_text_comes_text_or_a_later_time() {
        assert_eq!(allowed(&[7, 1], TEXT), [0, 1, 2, 4, 8, 9]);
    }

    #[test]
    fn behind_an_end_comes_a_begin_or_the_end() {
        assert_eq!(allowed(&[6, 1, 8], TEXT), [4, 8, 9]);
    }

    #[test]
    fn likely_times_leave_no_text() {
        let mut scores = [0.0; 10];
        // Three of them: together more than one.
        scores[7..].fill(-1.0);
        assert_eq!(allowed(&[6, 1], scores), [7, 8, 9]);
        scores[7..].fill(-1.2);
        assert_eq!(allowed(&[6, 1], scores), [0, 1, 2, 4, 7, 8, 9]);
    }

    #[test]
    fn without_times_only_lists_count() {
        let rules = Rules {
            times: None,
            ..rules()
        };
        let mut scores = TEXT;
        rules.apply(&[], &mut scores);
        let kept = scores.iter().filter(|score| **score > f64::NEG_INFINITY);
        assert_eq!(kept.count(), 8);
    }
}

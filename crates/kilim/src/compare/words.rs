//! Comparisons in words, as manifests of models have them.

use kilim_core::Result;
use kilim_core::error::value_error;

use super::{Comparison, Detections, Rule};

impl Rule {
    /// Reads a comparison:
    ///
    /// | text | the output and its reference |
    /// |---|---|
    /// | `0.001`, `at most 0.001 of the largest magnitude` | [`Comparison::Relative`] |
    /// | `root mean square at most 0.01` | [`Comparison::RelativeRms`] |
    /// | `root mean square at most 0.01 of the largest magnitude` | [`Comparison::RmsOfLargest`] |
    /// | `exact` | [`Comparison::Exact`] |
    /// | `at most 2 quanta per element` | [`Comparison::Quanta`] |
    /// | `root mean square at most 0.5 quanta` | [`Comparison::QuantaRms`] |
    /// | `class map equal on at least 99 % of the pixels` | [`Comparison::EqualShare`] |
    /// | `keypoints within 0.02`, `keypoints with a score of at least 0.3 within 0.02` | [`Comparison::Keypoints`] |
    /// | `detections with a score of at least 0.5 overlap by at least 0.9 with scores within 0.05` | [`Detections`] |
    ///
    /// Small words, and `%` for hundredths, may stand where English has them. A text with any other word is
    /// not understood: it may ask for more.
    ///
    /// # Errors
    /// `InvalidValue` for a text that is not understood.
    pub fn parse(text: &str) -> Result<Rule> {
        let read = Sentence::of(text).and_then(|s| FORMS.iter().find_map(|form| form(&s)));
        read.ok_or_else(|| {
            value_error("this way to compare outputs is not understood")
                .with_expected(
                    "a number, `exact`, or a sentence about quanta, the root mean square, an equal share, \
                     keypoints or detections",
                )
                .with_got(text)
        })
    }
}

/// Words that say nothing of their own.
const SMALL: &[&str] = &[
    "a", "all", "an", "and", "are", "at", "by", "each", "every", "in", "is", "of", "on", "per",
    "that", "the", "their", "to", "where", "with",
];

/// What a difference is called, and of what.
const DIFFERENCE: &[&str] = &[
    "difference",
    "differences",
    "differ",
    "error",
    "errors",
    "element",
    "elements",
    "output",
    "outputs",
    "reference",
    "references",
    "relative",
];

/// Whether a number is the least or the most that is allowed.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    Least,
    Most,
}

/// A number of a sentence, with the last words before it that say what it is of.
#[derive(Clone, Copy)]
struct Number<'a> {
    value: f64,
    percent: bool,
    bound: Option<Bound>,
    noun: Option<&'a str>,
}

impl Number<'_> {
    /// A number that is no share.
    fn plain(self) -> Option<f64> {
        (!self.percent).then_some(self.value)
    }

    /// A share of a whole, as such or in percent.
    fn share(self) -> Option<f64> {
        let share = if self.percent {
            self.value / 100.0
        } else {
            self.value
        };
        (share <= 1.0).then_some(share)
    }

    /// A tolerance: nothing that is at least so much.
    fn at_most(self) -> Option<f64> {
        let value = if self.percent {
            self.value / 100.0
        } else {
            self.value
        };
        (self.bound != Some(Bound::Least)).then_some(value)
    }
}

struct Sentence<'a> {
    words: Vec<&'a str>,
    numbers: Vec<Number<'a>>,
}

impl<'a> Sentence<'a> {
    /// `None` where a number is negative or none.
    fn of(text: &'a str) -> Option<Sentence<'a>> {
        let (mut words, mut numbers) = (Vec::new(), Vec::<Number>::new());
        let (mut bound, mut noun) = (None, None);
        for word in text.split([' ', ',', ';', ':']).filter(|w| !w.is_empty()) {
            if word == "%" {
                numbers.last_mut()?.percent = true;
                continue;
            }
            let digits = word.strip_suffix('%').unwrap_or(word);
            if let Ok(value) = digits.parse::<f64>() {
                if !(value.is_finite() && value >= 0.0) {
                    return None;
                }
                numbers.push(Number {
                    value,
                    percent: digits != word,
                    bound,
                    noun,
                });
                continue;
            }
            match word {
                "least" => bound = Some(Bound::Least),
                "most" | "within" => bound = Some(Bound::Most),
                "score" | "scores" | "overlap" => noun = Some(word),
                _ => {}
            }
            words.push(word);
        }
        Some(Sentence { words, numbers })
    }

    /// Whether one of these words is there.
    fn has(&self, words: &[&str]) -> bool {
        self.words.iter().any(|w| words.contains(w))
    }

    /// Whether no words are there but these and small ones.
    fn only(&self, lists: &[&[&str]]) -> bool {
        let known = |w: &&str| SMALL.contains(w) || lists.iter().any(|list| list.contains(w));
        self.words.iter().all(known)
    }

    /// The only number.
    fn number(&self) -> Option<Number<'a>> {
        match self.numbers[..] {
            [number] => Some(number),
            _ => None,
        }
    }

    /// The only number of a bound and a noun.
    fn bounded(&self, bound: Bound, nouns: &[&str]) -> Option<f64> {
        let mut of = self
            .numbers
            .iter()
            .filter(|n| n.bound == Some(bound) && n.noun.is_some_and(|noun| nouns.contains(&noun)));
        let number = of.next()?;
        match of.next() {
            None => number.share(),
            Some(_) => None,
        }
    }

    fn rms(&self) -> bool {
        self.has(&["rms"]) || ["root", "mean", "square"].iter().all(|w| self.has(&[w]))
    }
}

const RMS: &[&str] = &["rms", "root", "mean", "square"];
const MOST: &[&str] = &["most", "within"];
const LARGEST: &[&str] = &["largest", "magnitude"];

const FORMS: [fn(&Sentence) -> Option<Rule>; 7] =
    [bare, exact, quanta, magnitude, share, keypoints, detections];

fn each(comparison: Comparison) -> Option<Rule> {
    Some(Rule::Each(comparison))
}

fn bare(s: &Sentence) -> Option<Rule> {
    let t = s.number()?.plain().filter(|_| s.words.is_empty())?;
    each(Comparison::Relative(t))
}

fn exact(s: &Sentence) -> Option<Rule> {
    let said = s.has(&["exact"]) && s.only(&[&["exact"], DIFFERENCE]) && s.numbers.is_empty();
    said.then_some(Rule::Each(Comparison::Exact))
}

fn quanta(s: &Sentence) -> Option<Rule> {
    let own = &["quanta", "quantum"];
    if !s.has(own) || !s.only(&[own, MOST, RMS, DIFFERENCE]) {
        return None;
    }
    let number = s.number()?;
    let t = number.at_most().filter(|_| !number.percent)?;
    match (s.rms(), s.has(RMS)) {
        (true, _) => each(Comparison::QuantaRms(t)),
        (false, false) => each(Comparison::Quanta(t)),
        // A mean is something else.
        (false, true) => None,
    }
}

/// The root mean square of the differences, or the largest, as a share of the reference.
fn magnitude(s: &Sentence) -> Option<Rule> {
    let largest = LARGEST.iter().all(|w| s.has(&[w]));
    if !s.only(&[MOST, RMS, DIFFERENCE, LARGEST]) || (s.has(LARGEST) && !largest) {
        return None;
    }
    let t = s.number()?.at_most()?;
    match (s.rms(), s.has(RMS), largest) {
        (true, _, false) => each(Comparison::RelativeRms(t)),
        (true, _, true) => each(Comparison::RmsOfLargest(t)),
        (false, false, true) => each(Comparison::Relative(t)),
        _ => None,
    }
}

fn share(s: &Sentence) -> Option<Rule> {
    let equal = &["equal", "same", "agree"];
    let of = &[
        "least", "class", "classes", "map", "maps", "pixel", "pixels", "element", "elements",
    ];
    let number = s.number()?;
    let said = s.has(equal) && s.only(&[equal, of]) && number.bound == Some(Bound::Least);
    each(Comparison::EqualShare(number.share().filter(|_| said)?))
}

const SCORE: &[&str] = &["score", "scores"];

fn keypoints(s: &Sentence) -> Option<Rule> {
    let own = &["keypoint", "keypoints"];
    if !s.has(own) || !s.only(&[own, MOST, SCORE, &["least", "distance", "reference"]]) {
        return None;
    }
    let mut most = s.numbers.iter().filter(|n| n.bound == Some(Bound::Most));
    let distance = most.next()?.plain()?;
    let score = match s.numbers.len() {
        1 if !s.has(SCORE) => 0.0,
        2 => s.bounded(Bound::Least, SCORE)?,
        _ => return None,
    };
    each(Comparison::Keypoints { distance, score })
}

fn detections(s: &Sentence) -> Option<Rule> {
    let own = &["detection", "detections"];
    let known = [
        own,
        MOST,
        SCORE,
        &["least", "overlap", "same", "class", "reference"],
    ];
    let said = s.has(own) && s.only(&known) && s.numbers.len() == 3;
    let detections = Detections {
        score: s.bounded(Bound::Least, SCORE)?,
        overlap: s.bounded(Bound::Least, &["overlap"])?,
        within: s.bounded(Bound::Most, SCORE)?,
    };
    said.then_some(Rule::Detections(detections))
}

#[cfg(test)]
mod tests {
    use kilim_core::ErrorCode;

    use super::*;

    #[test]
    fn sentences_of_manifests_are_read() {
        let keypoints = |distance, score| Comparison::Keypoints { distance, score };
        for (text, comparison) in [
            ("0.001", Comparison::Relative(0.001)),
            ("1e-3", Comparison::Relative(0.001)),
            (
                "at most 0.5 % of the largest magnitude",
                Comparison::Relative(0.005),
            ),
            ("exact", Comparison::Exact),
            ("at most 14 quanta per element", Comparison::Quanta(14.0)),
            ("within 1 quantum", Comparison::Quanta(1.0)),
            (
                "root mean square of at most 0.5 quanta",
                Comparison::QuantaRms(0.5),
            ),
            (
                "at most 2 quanta root mean square",
                Comparison::QuantaRms(2.0),
            ),
            (
                "root mean square at most 0.01",
                Comparison::RelativeRms(0.01),
            ),
            (
                "root mean square of the difference at most 1 % of that of the reference",
                Comparison::RelativeRms(0.01),
            ),
            (
                "rms at most 0.01 of the largest magnitude of the reference",
                Comparison::RmsOfLargest(0.01),
            ),
            (
                "class map equal on at least 99 % of the pixels",
                Comparison::EqualShare(0.99),
            ),
            (
                "at least 99.5% of the elements equal",
                Comparison::EqualShare(0.995),
            ),
            ("keypoints within 0.02", keypoints(0.02, 0.0)),
            (
                "keypoints with a score of at least 0.3 within 0.02",
                keypoints(0.02, 0.3),
            ),
            (
                "keypoints within 0.02 where the score is at least 0.3",
                keypoints(0.02, 0.3),
            ),
        ] {
            assert_eq!(Rule::parse(text).unwrap(), Rule::Each(comparison), "{text}");
        }
        let detections = Detections {
            score: 0.5,
            overlap: 0.9,
            within: 0.05,
        };
        for text in [
            "detections with a score of at least 0.5 overlap by at least 0.9 with scores within 0.05",
            "detections: score of at least 50 %, overlap of at least 90 %, scores within 0.05",
        ] {
            let rule = Rule::parse(text).unwrap();
            assert_eq!(rule, Rule::Detections(detections.clone()), "{text}");
        }
    }

    #[test]
    fn what_asks_for_more_is_not_understood() {
        for text in [
            "",
            "null",
            "roughly",
            "-1",
            "NaN",
            "inf",
            "5 %",
            "exact to 3 digits",
            "at least 3 quanta per element",
            "at most 3 % quanta",
            "at most 3 quanta mean",
            "at most 3 quanta on 99 % of the elements",
            "at most 14 quanta per element and the same top class",
            "root mean square at least 0.1",
            "mean at most 0.1",
            "largest 0.1",
            "root mean square at most 0.1 in decibels",
            "class map equal on at most 99 % of the pixels",
            "class map equal on at least 101 % of the pixels",
            "class map equal",
            "keypoints",
            "keypoints within 3 pixels",
            "keypoints of at least 0.3",
            "keypoints within 0.1 with a score within 0.2",
            "detections",
            "detections with a score of at least 0.5 overlap by at least 0.9",
            "detections with a score of at least 0.5 overlap by at least 9 with scores within 0.05",
        ] {
            let error = Rule::parse(text).expect_err(text);
            assert_eq!(error.code(), ErrorCode::InvalidValue);
        }
    }
}

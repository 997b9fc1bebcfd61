//! When two tensors count as equal.

use kilim_core::{Datum, Error, ErrorCode, Map, Result, Tensor};

/// How an output is compared with its reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// `max |got - want| <= t * max |want|`.
    Relative(f64),
    /// `sqrt(mean (got - want)^2) <= t * max |want|`.
    RelativeRms(f64),
    /// Every element equal.
    Exact,
    /// Integer elements differ by at most so much.
    Quanta(f64),
    /// The root mean square of the differences of integer elements is at most so much.
    QuantaRms(f64),
    /// At least this share of the elements is equal.
    EqualShare(f64),
    /// `|got - want| <= atol + rtol * |want|` for every element (the ONNX suite).
    Close { rtol: f64, atol: f64 },
}

/// How far an output is from its reference.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// In the unit of the comparison.
    pub error: f64,
    pub tolerance: f64,
    pub passed: bool,
}

impl Comparison {
    /// Reads a tolerance as manifests write it: a number, `exact`, `at most 2 quanta per element`,
    /// `class map equal on at least 99 % of the pixels`, or one of these on the root mean square.
    pub fn parse(text: &str) -> Result<Comparison> {
        if let Ok(t) = text.parse() {
            return Ok(Comparison::Relative(t));
        }
        if text == "exact" {
            return Ok(Comparison::Exact);
        }
        let unknown =
            || Error::new(ErrorCode::Input, "the tolerance is not understood").with_got(text);
        let number = text
            .split_whitespace()
            .find_map(|w| w.parse::<f64>().ok())
            .ok_or_else(unknown)?;
        let rms = text.contains("root mean square") || text.contains("rms");
        match (text.contains("quanta"), rms) {
            (true, true) => Ok(Comparison::QuantaRms(number)),
            (true, false) => Ok(Comparison::Quanta(number)),
            (false, true) => Ok(Comparison::RelativeRms(number)),
            (false, false) if text.contains("equal on at least") && text.contains('%') => {
                Ok(Comparison::EqualShare(number / 100.0))
            }
            _ => Err(unknown()),
        }
    }

    /// Compares `got` with `want`, which must be made alike; the verdict is that of the worst tensor.
    pub fn data_verdict(&self, got: &Datum, want: &Datum, dtype: Option<&str>) -> Result<Verdict> {
        let unlike = |what: &str, got: String, want: String| {
            Error::new(
                ErrorCode::Shape,
                format!("the output is not like its reference: {what}"),
            )
            .with_expected(want)
            .with_got(got)
        };
        let pairs: Vec<(&Tensor, &Tensor)> = match (got, want) {
            (Datum::Tensor(got), Datum::Tensor(want)) => return self.verdict(got, want, dtype),
            (Datum::Sequence(got), Datum::Sequence(want)) if got.len() == want.len() => {
                got.iter().zip(want).collect()
            }
            (Datum::Map(got), Datum::Map(want)) => pairs_of(got, want).to_vec(),
            (Datum::MapSequence(got), Datum::MapSequence(want)) if got.len() == want.len() => got
                .iter()
                .zip(want)
                .flat_map(|(g, w)| pairs_of(g, w))
                .collect(),
            (Datum::Absent, Datum::Absent) => Vec::new(),
            _ => return Err(unlike("form or length", shown(got), shown(want))),
        };
        let mut worst = Verdict {
            error: 0.0,
            tolerance: 0.0,
            passed: true,
        };
        for (got, want) in pairs {
            let verdict = self.verdict(got, want, dtype)?;
            let passed = worst.passed && verdict.passed;
            if verdict.error >= worst.error {
                worst = verdict;
            }
            worst.passed = passed;
        }
        Ok(worst)
    }

    /// Compares `got` with `want`; strings must be equal. Shapes and element types must be the same; `dtype` is the
    /// output's own where the reference was stored in a narrower one.
    pub fn verdict(&self, got: &Tensor, want: &Tensor, dtype: Option<&str>) -> Result<Verdict> {
        let expected = dtype.unwrap_or(want.dtype().name());
        if got.shape() != want.shape() || got.dtype().name() != expected {
            return Err(
                Error::new(ErrorCode::Shape, "the output is not like its reference")
                    .with_expected(format!("{expected}{:?}", want.shape()))
                    .with_got(format!("{}{:?}", got.dtype(), got.shape())),
            );
        }
        let (got, want) = match (got.texts(), want.texts()) {
            (Ok(got), Ok(want)) => {
                let unequal = got.iter().zip(want).filter(|(a, b)| a != b).count();
                return Ok(Verdict {
                    error: unequal as f64,
                    tolerance: 0.0,
                    passed: unequal == 0,
                });
            }
            _ => (got.to_f64s()?, want.to_f64s()?),
        };
        let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan());
        let difference = |a: f64, b: f64| {
            if same(a, b) {
                0.0
            } else if (a - b).is_finite() {
                (a - b).abs()
            } else {
                f64::INFINITY
            }
        };
        let pairs = || got.iter().copied().zip(want.iter().copied());
        let largest = pairs().map(|(a, b)| difference(a, b)).fold(0.0, f64::max);
        let finite = want.iter().filter(|v| v.is_finite());
        let scale = finite.fold(0.0f64, |m, v| m.max(v.abs()));
        let squares: f64 = pairs().map(|(a, b)| difference(a, b).powi(2)).sum();
        let rms = (squares / want.len().max(1) as f64).sqrt();
        let relative = |d: f64| if d == 0.0 { 0.0 } else { d / scale };
        let (error, tolerance) = match *self {
            Comparison::Relative(t) => (relative(largest), t),
            Comparison::RelativeRms(t) => (relative(rms), t),
            Comparison::Exact => (largest, 0.0),
            Comparison::Quanta(t) => (largest, t),
            Comparison::QuantaRms(t) => (rms, t),
            Comparison::EqualShare(share) => {
                let equal = pairs().filter(|&(a, b)| same(a, b)).count();
                let unequal = 1.0 - equal as f64 / want.len().max(1) as f64;
                (unequal, 1.0 - share)
            }
            Comparison::Close { rtol, atol } => {
                let excess = |(a, b): (f64, f64)| match difference(a, b) {
                    0.0 => 0.0,
                    // What is allowed of a reference that is infinite or no number is no number.
                    d if d.is_infinite() => d,
                    d => d / (atol + rtol * b.abs()),
                };
                (pairs().map(excess).fold(0.0, f64::max), 1.0)
            }
        };
        Ok(Verdict {
            error,
            tolerance,
            passed: error <= tolerance,
        })
    }
}

fn pairs_of<'a>(got: &'a Map, want: &'a Map) -> [(&'a Tensor, &'a Tensor); 2] {
    [(&got.keys, &want.keys), (&got.values, &want.values)]
}

fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Sequence(list) => format!("a sequence of {}", list.len()),
        Datum::MapSequence(list) => format!("a sequence of {} maps", list.len()),
        other => other
            .form()
            .map_or("nothing", |_| "another form")
            .to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Tensor {
        Tensor::from_slice(&[values.len()], values).unwrap()
    }

    #[test]
    fn sentences_of_manifests_are_read() {
        let parse = |text| Comparison::parse(text).unwrap();
        assert_eq!(parse("0.001"), Comparison::Relative(0.001));
        assert_eq!(parse("exact"), Comparison::Exact);
        let quanta = parse("at most 14 quanta per element");
        assert_eq!(quanta, Comparison::Quanta(14.0));
        let share = parse("class map equal on at least 99 % of the pixels");
        assert_eq!(share, Comparison::EqualShare(0.99));
        assert!(Comparison::parse("roughly").is_err());
    }

    #[test]
    fn strings_are_equal_or_not() {
        let texts = |a: &str| Tensor::from_texts(&[2], vec!["x".into(), a.into()]).unwrap();
        let by = Comparison::Relative(0.5);
        assert!(by.verdict(&texts("y"), &texts("y"), None).unwrap().passed);
        let wrong = by.verdict(&texts("y"), &texts("z"), None).unwrap();
        assert!(!wrong.passed && wrong.error == 1.0);
    }

    #[test]
    fn zeros_and_nans_do_not_pass() {
        let want = f32s(&[1.0, -2.0]);
        let by = Comparison::Relative(0.001);
        assert!(by.verdict(&want, &want, None).unwrap().passed);
        assert!(!by.verdict(&f32s(&[0.0, 0.0]), &want, None).unwrap().passed);
        assert!(
            !by.verdict(&f32s(&[f32::NAN, -2.0]), &want, None)
                .unwrap()
                .passed
        );
        assert!(by.verdict(&f32s(&[1.0]), &want, None).is_err());
        let nothing = f32s(&[0.0, 0.0]);
        assert!(!by.verdict(&want, &nothing, None).unwrap().passed);
    }

    #[test]
    fn references_that_are_infinite_or_no_number_are_met_by_the_same_alone() {
        let close = Comparison::Close {
            rtol: 1e-3,
            atol: 1e-7,
        };
        for by in [close, Comparison::Relative(1e-3), Comparison::Exact] {
            for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
                let want = f32s(&[1.0, odd]);
                let passes = |got: f32| by.verdict(&f32s(&[1.0, got]), &want, None).unwrap().passed;
                assert!(passes(odd), "{by:?} {odd}");
                for other in [0.0, 3e38, -odd, f32::INFINITY, f32::NAN] {
                    let same = other == odd || (other.is_nan() && odd.is_nan());
                    assert!(same || !passes(other), "{by:?} {odd} {other}");
                }
            }
        }
    }
}

//! When outputs count as equal to their references.

mod detections;
mod keypoints;
mod numbers;
mod words;

use kilim_core::{Datum, Error, ErrorCode, Map, Result, Tensor};

pub use detections::Detections;
use numbers::Numbers;

/// How the outputs of a model are compared with references, as manifests of models write it; see
/// [`Rule::parse`].
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Every output by itself.
    Each(Comparison),
    /// All outputs together are detections.
    Detections(Detections),
}

/// How an output is compared with its reference.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparison {
    /// `max |got - want| <= t * max |want|`.
    Relative(f64),
    /// `sqrt(mean (got - want)^2) <= t * sqrt(mean want^2)`.
    RelativeRms(f64),
    /// `sqrt(mean (got - want)^2) <= t * max |want|`.
    RmsOfLargest(f64),
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
    /// The last dimension holds two coordinates, or two and a score. Points of the reference whose score is
    /// at least `score` lie within `distance`, in the unit of the coordinates; no score differs by more than
    /// `distance`.
    Keypoints { distance: f64, score: f64 },
}

/// How far an output is from its reference.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// In the unit of the comparison.
    pub error: f64,
    pub tolerance: f64,
    pub passed: bool,
}

impl Verdict {
    /// Passed where the error is within the tolerance.
    fn of(error: f64, tolerance: f64) -> Verdict {
        Verdict {
            error,
            tolerance,
            passed: error <= tolerance,
        }
    }
}

impl Comparison {
    /// Compares `got` with `want`, which must be made alike; the verdict is that of the worst tensor.
    ///
    /// # Errors
    /// `Shape` where the two are not made alike; `InvalidValue` where they cannot be compared so.
    pub fn data_verdict(&self, got: &Datum, want: &Datum, dtype: Option<&str>) -> Result<Verdict> {
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
            _ => return Err(unlike(shown(got), shown(want))),
        };
        let mut worst = Verdict::of(0.0, 0.0);
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

    /// Compares `got` with `want`; strings must be equal. `dtype` is the output's own element type where the
    /// reference was stored in a narrower one.
    ///
    /// # Errors
    /// `Shape` where shapes or element types are not the same; `InvalidValue` where tensors cannot be compared
    /// so: quanta of numbers that are no integers, keypoints of other shapes.
    pub fn verdict(&self, got: &Tensor, want: &Tensor, dtype: Option<&str>) -> Result<Verdict> {
        check_alike(got, want, dtype)?;
        if let (Ok(got), Ok(want)) = (got.texts(), want.texts()) {
            let unequal = got.iter().zip(want).filter(|(a, b)| a != b).count();
            return Ok(Verdict::of(unequal as f64, 0.0));
        }
        let numbers = Numbers::of(got, want)?;
        Ok(match *self {
            Comparison::Relative(t) => Verdict::of(numbers.share(numbers.largest()), t),
            Comparison::RelativeRms(t) => Verdict::of(numbers.share_of_rms(numbers.rms()), t),
            Comparison::RmsOfLargest(t) => Verdict::of(numbers.share(numbers.rms()), t),
            Comparison::Exact => {
                // Large integers are the same number in floating point without being equal.
                let unequal = got.dtype().is_integer() && got.read()? != want.read()?;
                Verdict::of(numbers.largest().max(f64::from(u8::from(unequal))), 0.0)
            }
            Comparison::Quanta(t) => Verdict::of(numbers.quanta(got)?.largest(), t),
            Comparison::QuantaRms(t) => Verdict::of(numbers.quanta(got)?.rms(), t),
            Comparison::EqualShare(share) => Verdict::of(numbers.unequal(), 1.0 - share),
            Comparison::Close { rtol, atol } => Verdict::of(numbers.excess(rtol, atol), 1.0),
            Comparison::Keypoints { distance, score } => {
                let apart = keypoints::apart(&numbers, want.shape(), score)?;
                Verdict::of(apart, distance)
            }
        })
    }
}

fn unlike(got: String, want: String) -> Error {
    Error::new(ErrorCode::Shape, "the output is not like its reference")
        .with_expected(want)
        .with_got(got)
}

/// # Errors
/// `Shape` where shapes or element types are not the same; `dtype` is that of the output where the reference
/// was stored in another.
fn check_alike(got: &Tensor, want: &Tensor, dtype: Option<&str>) -> Result<()> {
    let expected = dtype.unwrap_or(want.dtype().name());
    if got.shape() == want.shape() && got.dtype().name() == expected {
        return Ok(());
    }
    Err(unlike(
        format!("{}{:?}", got.dtype(), got.shape()),
        format!("{expected}{:?}", want.shape()),
    ))
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

    fn passes(by: &Comparison, got: &Tensor, want: &Tensor) -> bool {
        by.verdict(got, want, None).unwrap().passed
    }

    #[test]
    fn a_root_mean_square_is_measured_by_that_of_the_reference() {
        // One large element among small ones: of root mean square 1, and ten times that at most.
        let mut values = [0.0f32; 100];
        values[0] = 10.0;
        let want = f32s(&values);
        let off = f32s(&values.map(|v| v + 0.05));
        assert!(passes(&Comparison::RelativeRms(0.051), &off, &want));
        assert!(!passes(&Comparison::RelativeRms(0.049), &off, &want));
        assert!(passes(&Comparison::RmsOfLargest(0.0051), &off, &want));
        assert!(!passes(&Comparison::RmsOfLargest(0.0049), &off, &want));
        let zeros = f32s(&[0.0; 100]);
        for by in [Comparison::RelativeRms(0.9), Comparison::RmsOfLargest(0.09)] {
            assert!(!passes(&by, &zeros, &want), "{by:?}");
            assert!(!passes(&by, &want, &zeros), "{by:?}");
            assert!(passes(&by, &zeros, &zeros), "{by:?}");
            assert!(!passes(&by, &f32s(&[f32::NAN; 100]), &want), "{by:?}");
        }
    }

    #[test]
    fn quanta_are_of_integers() {
        let bytes = |values: &[u8]| Tensor::from_slice(&[values.len()], values).unwrap();
        let want = bytes(&[10, 20, 30, 40]);
        let off = bytes(&[12, 20, 30, 40]);
        assert!(passes(&Comparison::Quanta(2.0), &off, &want));
        assert!(!passes(&Comparison::Quanta(1.0), &off, &want));
        assert!(passes(&Comparison::QuantaRms(1.0), &off, &want));
        assert!(!passes(&Comparison::QuantaRms(0.9), &off, &want));
        let floats = f32s(&[1.0]);
        for by in [Comparison::Quanta(1.0), Comparison::QuantaRms(1.0)] {
            let error = by.verdict(&floats, &floats, None).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue, "{error}");
        }
    }

    #[test]
    fn large_integers_are_equal_or_not() {
        let of = |n: i64| Tensor::from_slice(&[1], &[n]).unwrap();
        let (one, other) = (of(i64::MAX), of(i64::MAX - 1));
        assert!(passes(&Comparison::Exact, &one, &one));
        assert!(!passes(&Comparison::Exact, &one, &other));
    }

    #[test]
    fn a_share_of_the_elements_may_differ() {
        let by = Comparison::EqualShare(0.75);
        let want = f32s(&[1.0, 2.0, 3.0, 4.0]);
        assert!(passes(&by, &f32s(&[1.0, 2.0, 3.0, 0.0]), &want));
        assert!(!passes(&by, &f32s(&[1.0, 2.0, 0.0, 0.0]), &want));
    }
}

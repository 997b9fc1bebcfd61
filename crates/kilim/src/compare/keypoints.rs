//! Points of a pose, with how sure the model is of each.

use kilim_core::Result;
use kilim_core::error::value_error;

use super::numbers::Numbers;

/// How far points are apart at most, or the scores of one point; points whose reference is less sure than
/// `least` may lie anywhere.
///
/// # Errors
/// `InvalidValue` where the last dimension holds no points, and where the reference is sure of none, so that
/// there is nothing to compare.
pub fn apart(numbers: &Numbers, shape: &[usize], least: f64) -> Result<f64> {
    let size = match shape.last() {
        Some(&size @ (2 | 3)) => size,
        _ => {
            return Err(value_error("the last dimension holds no keypoints")
                .with_expected("2 coordinates, or 2 and a score")
                .with_got(format!("{shape:?}")));
        }
    };
    let points =
        |of: &[f64]| -> Vec<Vec<f64>> { of.chunks_exact(size).map(<[f64]>::to_vec).collect() };
    let (mut worst, mut sure) = (0.0f64, 0);
    for (got, want) in points(&numbers.got).iter().zip(&points(&numbers.want)) {
        let scores = got.get(2).zip(want.get(2));
        if scores.is_none_or(|(_, want)| *want >= least) {
            sure += 1;
            worst = worst.max(finite((got[0] - want[0]).hypot(got[1] - want[1])));
        }
        if let Some((got, want)) = scores {
            worst = worst.max(finite((got - want).abs()));
        }
    }
    match sure {
        0 => Err(value_error("the reference has no keypoint to compare")
            .with_expected(format!("a score of at least {least}"))),
        _ => Ok(worst),
    }
}

/// A distance; what is no number is infinitely far.
fn finite(distance: f64) -> f64 {
    if distance.is_nan() {
        f64::INFINITY
    } else {
        distance
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::{ErrorCode, Tensor};

    use super::super::{Comparison, Verdict};
    use super::*;

    fn verdict(shape: &[usize], got: &[f32], want: &[f32], score: f64) -> Result<Verdict> {
        let of = |values| Tensor::from_slice(shape, values).unwrap();
        let by = Comparison::Keypoints {
            distance: 0.02,
            score,
        };
        by.verdict(&of(got), &of(want), None)
    }

    #[test]
    fn points_that_the_reference_is_sure_of_lie_close() {
        let want = [0.5, 0.5, 0.9, 0.1, 0.1, 0.2];
        let passed = |got: &[f32]| verdict(&[1, 2, 3], got, &want, 0.3).unwrap().passed;
        assert!(passed(&want));
        assert!(passed(&[0.51, 0.49, 0.91, 0.1, 0.1, 0.2]));
        // Each coordinate within the distance, but not the point.
        assert!(!passed(&[0.519, 0.519, 0.9, 0.1, 0.1, 0.2]));
        assert!(!passed(&[0.5, 0.5, 0.8, 0.1, 0.1, 0.2]));
        assert!(!passed(&[0.5, 0.5, f32::NAN, 0.1, 0.1, 0.2]));
        assert!(!passed(&[f32::NAN, 0.5, 0.9, 0.1, 0.1, 0.2]));
        assert!(!passed(&[0.0; 6]));
        // The other one may lie anywhere, as long as nobody is sure of it.
        assert!(passed(&[0.5, 0.5, 0.9, 0.7, 0.9, 0.21]));
        assert!(!passed(&[0.5, 0.5, 0.9, 0.1, 0.1, 0.6]));
    }

    #[test]
    fn points_without_scores_are_all_compared() {
        let want = [0.5, 0.5, 0.1, 0.1];
        let passed = |got: &[f32]| verdict(&[2, 2], got, &want, 0.0).unwrap().passed;
        assert!(passed(&[0.5, 0.51, 0.1, 0.11]));
        assert!(!passed(&[0.5, 0.5, 0.1, 0.13]));
    }

    #[test]
    fn what_holds_no_points_is_an_error() {
        for (shape, score) in [(&[4][..], 0.0), (&[], 0.0), (&[1, 3], 0.3)] {
            let zeros = vec![0.0; shape.iter().product()];
            let error = verdict(shape, &zeros, &zeros, score).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue, "{shape:?}");
        }
    }
}

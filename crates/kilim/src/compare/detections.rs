//! Boxes with classes and scores, in whatever order.

use kilim_core::error::value_error;
use kilim_core::{Result, Tensor};

use super::{Verdict, unlike};

/// How detections are compared: each of the reference whose score is at least `score` has one of the same
/// class, whose box overlaps its own by at least `overlap` (intersection over union) and whose score is
/// within `within`; and the other way round.
#[derive(Clone, Debug, PartialEq)]
pub struct Detections {
    pub score: f64,
    pub overlap: f64,
    pub within: f64,
}

/// One detection.
#[derive(Clone, Copy)]
struct Detection {
    /// Two opposite corners.
    corners: [f64; 4],
    class: f64,
    score: f64,
}

impl Detections {
    /// Compares the outputs of a model, got and wanted, each in the order of TFLite's detection
    /// post-processing: boxes `[1, n, 4]`, classes `[1, n]`, scores `[1, n]`, and how many of the `n` count,
    /// `[1]`. The error is how many detections have no counterpart.
    ///
    /// # Errors
    /// `Shape` where outputs are of other shapes; `InvalidValue` where the reference has no detection to
    /// compare.
    pub fn verdict(&self, got: &[Tensor], want: &[Tensor]) -> Result<Verdict> {
        let (got, want) = (read(got)?, read(want)?);
        let sure = |of: &[Detection], least: f64| -> Vec<Detection> {
            of.iter().copied().filter(|d| d.score >= least).collect()
        };
        let wanted = sure(&want, self.score);
        if wanted.is_empty() {
            return Err(value_error("the reference has no detection to compare")
                .with_expected(format!("a score of at least {}", self.score)));
        }
        // A score close to the limit may be on its other side on either side.
        let lost = self.alone(&wanted, &got);
        let new = self.alone(&sure(&got, self.score + self.within), &want);
        Ok(Verdict::of((lost + new) as f64, 0.0))
    }

    /// How many of `these` have no counterpart of their own among `those`.
    fn alone(&self, these: &[Detection], those: &[Detection]) -> usize {
        let mut taken = vec![false; those.len()];
        let mut alone = 0;
        for one in these {
            let fits = |other: &Detection| {
                one.class == other.class
                    && (one.score - other.score).abs() <= self.within
                    && overlap(&one.corners, &other.corners) >= self.overlap
            };
            match (0..those.len()).find(|&i| !taken[i] && fits(&those[i])) {
                Some(i) => taken[i] = true,
                None => alone += 1,
            }
        }
        alone
    }
}

fn read(outputs: &[Tensor]) -> Result<Vec<Detection>> {
    let shapes: Vec<&[usize]> = outputs.iter().map(Tensor::shape).collect();
    let [boxes, classes, scores, count] = outputs else {
        return Err(unlike(
            format!("{} outputs", outputs.len()),
            FORM.to_string(),
        ));
    };
    let n = classes.len();
    let fits = boxes.shape() == [1, n, 4]
        && [classes.shape(), scores.shape()] == [[1, n]; 2]
        && count.len() == 1;
    if !fits {
        return Err(unlike(format!("{shapes:?}"), FORM.to_string()));
    }
    let (boxes, classes, scores) = (boxes.to_f64s()?, classes.to_f64s()?, scores.to_f64s()?);
    let count = count.to_f64s()?.first().copied().unwrap_or_default();
    if !(count >= 0.0 && count <= n as f64) {
        let message = "the number of detections is none";
        return Err(value_error(message)
            .with_got(count)
            .with_expected(format!("at most {n}")));
    }
    let (corners, _) = boxes.as_chunks();
    let each = corners.iter().zip(&classes).zip(&scores);
    let each = each.map(|((corners, class), score)| Detection {
        corners: *corners,
        class: *class,
        score: *score,
    });
    Ok(each.take(count as usize).collect())
}

const FORM: &str = "boxes [1, n, 4], classes [1, n], scores [1, n] and their number [1]";

/// Intersection over union of two boxes of opposite corners, in whatever order of the axes.
fn overlap(a: &[f64; 4], b: &[f64; 4]) -> f64 {
    let side = |of: &[f64; 4], axis: usize| {
        let (from, to) = (of[axis], of[axis + 2]);
        (from.min(to), from.max(to))
    };
    let area = |of: &[f64; 4]| {
        let length = |axis| side(of, axis).1 - side(of, axis).0;
        length(0) * length(1)
    };
    let common = |axis| {
        let ((a0, a1), (b0, b1)) = (side(a, axis), side(b, axis));
        (a1.min(b1) - a0.max(b0)).max(0.0)
    };
    let both = common(0) * common(1);
    let union = area(a) + area(b) - both;
    if union > 0.0 {
        both / union
    } else {
        f64::from(u8::from(a == b))
    }
}

#[cfg(test)]
mod tests {
    use kilim_core::ErrorCode;

    use super::*;

    const RULE: Detections = Detections {
        score: 0.5,
        overlap: 0.9,
        within: 0.05,
    };

    /// Detections `(corners, class, score)`, and two more that do not count.
    fn outputs(of: &[([f32; 4], f32, f32)]) -> Vec<Tensor> {
        let n = of.len() + 2;
        let mut boxes: Vec<f32> = of.iter().flat_map(|d| d.0).collect();
        let mut classes: Vec<f32> = of.iter().map(|d| d.1).collect();
        let mut scores: Vec<f32> = of.iter().map(|d| d.2).collect();
        boxes.resize(4 * n, 7.0);
        classes.resize(n, 7.0);
        scores.resize(n, 1.0);
        vec![
            Tensor::from_slice(&[1, n, 4], &boxes).unwrap(),
            Tensor::from_slice(&[1, n], &classes).unwrap(),
            Tensor::from_slice(&[1, n], &scores).unwrap(),
            Tensor::from_slice(&[1], &[of.len() as f32]).unwrap(),
        ]
    }

    const A: ([f32; 4], f32, f32) = ([0.0, 0.0, 0.5, 0.5], 1.0, 0.9);
    const B: ([f32; 4], f32, f32) = ([0.5, 0.5, 1.0, 1.0], 2.0, 0.7);
    const FAINT: ([f32; 4], f32, f32) = ([0.2, 0.2, 0.3, 0.3], 3.0, 0.3);

    fn missing(got: &[([f32; 4], f32, f32)]) -> f64 {
        let verdict = RULE
            .verdict(&outputs(got), &outputs(&[A, B, FAINT]))
            .unwrap();
        assert_eq!(verdict.passed, verdict.error == 0.0);
        verdict.error
    }

    #[test]
    fn every_detection_has_a_counterpart() {
        assert_eq!(missing(&[A, B, FAINT]), 0.0);
        // In another order, moved a little, without what nobody is sure of.
        let moved = ([0.0, 0.0, 0.49, 0.5], 1.0, 0.88);
        assert_eq!(missing(&[B, moved]), 0.0);
        // Far from its place, of another class, less sure.
        assert_eq!(missing(&[([0.0, 0.0, 0.4, 0.5], 1.0, 0.9), B]), 2.0);
        assert_eq!(missing(&[([0.0, 0.0, 0.5, 0.5], 2.0, 0.9), B]), 2.0);
        assert_eq!(missing(&[([0.0, 0.0, 0.5, 0.5], 1.0, 0.8), B]), 2.0);
        assert_eq!(missing(&[A]), 1.0);
        assert_eq!(missing(&[]), 2.0);
        // One more, and one twice.
        assert_eq!(missing(&[A, B, ([0.0, 0.5, 0.5, 1.0], 1.0, 0.9)]), 1.0);
        assert_eq!(missing(&[A, A, B]), 1.0);
        assert_eq!(missing(&[A, B, ([0.2, 0.2, 0.3, 0.3], 3.0, 0.6)]), 1.0);
        assert_eq!(missing(&[([f32::NAN; 4], 1.0, 0.9), B]), 2.0);
    }

    #[test]
    fn a_score_at_the_limit_may_be_on_either_side() {
        let at = |score| ([0.0, 0.0, 0.5, 0.5], 1.0, score);
        let error = |got: f32, want: f32| {
            let verdict = RULE.verdict(&outputs(&[at(got), B]), &outputs(&[at(want), B]));
            verdict.unwrap().error
        };
        assert_eq!(error(0.48, 0.51), 0.0);
        assert_eq!(error(0.51, 0.48), 0.0);
        assert_eq!(error(0.44, 0.51), 1.0);
    }

    #[test]
    fn outputs_that_are_no_detections_are_errors() {
        let good = outputs(&[A]);
        let code = |got: &[Tensor]| RULE.verdict(got, &good).err().map(|e| e.code());
        assert_eq!(code(&good), None);
        assert_eq!(code(&good[..3]), Some(ErrorCode::Shape));
        let mut swapped = good.clone();
        swapped.swap(0, 1);
        assert_eq!(code(&swapped), Some(ErrorCode::Shape));
        for count in [-1.0, 9.0, f32::NAN] {
            let mut wrong = good.clone();
            wrong[3] = Tensor::from_slice(&[1], &[count]).unwrap();
            assert_eq!(code(&wrong), Some(ErrorCode::InvalidValue), "{count}");
        }
        let faint = RULE.verdict(&good, &outputs(&[FAINT])).unwrap_err();
        assert_eq!(faint.code(), ErrorCode::InvalidValue);
    }
}

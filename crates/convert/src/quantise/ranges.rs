//! The ranges that data was seen to have.

use std::collections::BTreeMap;

use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::graph::{Graph, Node, ValueId};
use kilim_core::ops::{Conv, Gemm, MatMul};
use kilim_core::{DType, Tensor};

use super::FEWEST;

/// The smallest and the largest number of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    pub low: f32,
    pub high: f32,
}

/// How the numbers of a range are written as `uint8`: the real number of `x` is `(x - zero) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantisation {
    pub scale: f32,
    pub zero: u8,
}

impl Range {
    /// Zero is exact, so that it is in the range whatever was seen.
    pub fn quantisation(self) -> Quantisation {
        let (low, high) = (self.low.min(0.0), self.high.max(0.0));
        let scale = (high - low) / 255.0;
        if scale <= 0.0 || !scale.is_normal() {
            return Quantisation {
                scale: 1.0,
                zero: 0,
            };
        }
        Quantisation {
            scale,
            zero: (-low / scale).round_ties_even().clamp(0.0, 255.0) as u8,
        }
    }
}

/// Ranges by the names of values.
#[derive(Clone, Debug, Default)]
pub struct Ranges(BTreeMap<String, Range>);

impl Ranges {
    /// Widens the range of a value by what was seen of it.
    ///
    /// # Errors
    /// `InvalidValue` where a number is not finite; `DType` where they are no `float32`.
    pub fn see(&mut self, name: &str, seen: &Tensor) -> Result<()> {
        for &x in seen.as_slice::<f32>()? {
            if !x.is_finite() {
                let message = format!("`{name}` has a number that is not finite");
                return Err(Error::new(ErrorCode::InvalidValue, message).with_got(x));
            }
            let range = self.0.entry(name.to_string());
            let range = range.or_insert(Range { low: x, high: x });
            range.low = range.low.min(x);
            range.high = range.high.max(x);
        }
        Ok(())
    }

    /// The range of a value, if it was seen.
    pub fn of(&self, name: &str) -> Option<Range> {
        self.0.get(name).copied()
    }
}

/// The values of a graph whose ranges [`Scheme::Static8`](super::Scheme::Static8) needs: a graph that gives them, under their names, as its
/// outputs.
pub fn measured(graph: &Graph) -> Graph {
    let mut measured = graph.clone();
    let data = data(graph);
    let wanted = (0..graph.values.len()).filter(|&v| data[v]).map(ValueId);
    measured.outputs = wanted.collect();
    measured.variables.clear();
    measured
}

/// Which values are the data of products and convolutions with large constant weights.
pub fn data(graph: &Graph) -> Vec<bool> {
    let mut data = vec![false; graph.values.len()];
    for node in &graph.nodes {
        if let Some(x) = data_of(graph, node) {
            data[x.0] = true;
        }
    }
    data
}

fn data_of(graph: &Graph, node: &Node) -> Option<ValueId> {
    let has_weights = node.op.is::<MatMul>() || node.op.is::<Gemm>() || node.op.is::<Conv>();
    let weights = graph.value(node.input(1)?).constant.as_ref()?;
    let large = weights.dtype() == DType::F32 && weights.len() >= FEWEST;
    let x = node.input(0)?;
    let value = graph.value(x);
    let real = value.fact.dtype == Some(DType::F32) && value.constant.is_none();
    (has_weights && large && real).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_exact() {
        let range = |low, high| Range { low, high }.quantisation();
        assert_eq!(
            range(0.0, 2.55),
            Quantisation {
                scale: 2.55 / 255.0,
                zero: 0
            }
        );
        assert_eq!(range(1.0, 2.55).zero, 0);
        assert_eq!(range(-1.0, 0.0).zero, 255);
        assert_eq!(
            range(0.0, 0.0),
            Quantisation {
                scale: 1.0,
                zero: 0
            }
        );
    }

    #[test]
    fn numbers_that_are_not_finite_have_no_range() {
        let mut ranges = Ranges::default();
        let seen = Tensor::from_slice(&[3], &[1f32, -2.0, 0.5]).expect("a tensor");
        ranges.see("x", &seen).expect("finite numbers");
        assert_eq!(
            ranges.of("x"),
            Some(Range {
                low: -2.0,
                high: 1.0
            })
        );
        let seen = Tensor::from_slice(&[1], &[f32::NAN]).expect("a tensor");
        assert!(ranges.see("x", &seen).is_err());
    }
}

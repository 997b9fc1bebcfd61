//! Graphs that an operator runs, and what they are given.

use std::ops::Range;
use std::sync::Arc;

use super::Graph;
use crate::dtype::DType;
use crate::fact::Fact;

/// The graphs that an operator runs. All of them take the same inputs: the number of the iteration and whether to go on,
/// if they are counted, then the inputs of the node behind those that steer it. Of these, values that go round come first,
/// then those that are cut up, then captures.
#[derive(Clone, Debug)]
pub struct Bodies<'a> {
    pub graphs: Vec<&'a Arc<Graph>>,
    /// The bodies begin with an `int64` and a `bool` scalar, and give another `bool` before all else.
    pub counted: bool,
    /// The first inputs of the node, whose contents say which body runs, or how often.
    pub steering: usize,
    /// Values that go round: what an iteration makes of them, the next one is given.
    pub carried: usize,
    /// Inputs that are cut up: each iteration is given one place along an axis.
    pub cut: usize,
    /// The axes of these, 0 where there are fewer. Negative ones count from the last.
    pub axes: &'a [i64],
}

impl<'a> Bodies<'a> {
    /// Bodies that take whatever a node is given behind its first `steering` inputs.
    pub fn new(graphs: Vec<&'a Arc<Graph>>, steering: usize) -> Bodies<'a> {
        Bodies {
            graphs,
            counted: false,
            steering,
            carried: 0,
            cut: 0,
            axes: &[],
        }
    }

    /// The first input of the node that is a capture.
    pub fn captures(&self) -> usize {
        self.cuts().end
    }

    /// The input of the bodies that takes input `i` of the node.
    pub fn place(&self, i: usize) -> usize {
        let turn = if self.counted { 2 } else { 0 };
        i.saturating_sub(self.steering).saturating_add(turn)
    }

    /// The inputs of the node that are cut up.
    fn cuts(&self) -> Range<usize> {
        let first = self.steering.saturating_add(self.carried);
        first..first.saturating_add(self.cut)
    }

    /// Which of the first `inputs` inputs of the node are needed on the host for their contents: those that steer it, and
    /// those that it cuts up.
    pub fn on_host(&self, inputs: usize) -> impl Iterator<Item = usize> + use<> {
        let (steering, cuts) = (self.steering, self.cuts());
        (0..inputs).filter(move |i| *i < steering || cuts.contains(i))
    }

    /// What is known of the inputs of each body in the first iteration, by what is known of those of the node.
    pub fn facts(&self, inputs: &[Fact]) -> Vec<Fact> {
        let turn = [Fact::fixed(DType::I64, &[]), Fact::fixed(DType::Bool, &[])];
        let cuts = self.cuts();
        let given = inputs.iter().enumerate().skip(self.steering);
        let given = given.map(|(i, fact)| match cuts.contains(&i) {
            true => self.slice(i - cuts.start, fact),
            false => fact.clone(),
        });
        turn.into_iter()
            .filter(|_| self.counted)
            .chain(given)
            .collect()
    }

    /// One place of the input that is cut up as number `k`.
    fn slice(&self, k: usize, fact: &Fact) -> Fact {
        let axis = self.axes.get(k).copied().unwrap_or(0);
        let mut slice = fact.clone();
        slice.shape = slice.shape.and_then(|mut shape| {
            let rank = shape.rank();
            let from_last = usize::try_from(axis.unsigned_abs()).ok()?;
            let axis = match axis < 0 {
                true => rank.checked_sub(from_last)?,
                false => from_last,
            };
            (axis < rank).then(|| drop(shape.0.remove(axis)))?;
            Some(shape)
        });
        slice
    }
}

//! Inputs that grow in the same way from run to run, as a cache does by a word. Shapes are then sums: each dimension grows by a
//! number of its own with every step. They were inferred at two lengths beside each other and at one far behind them, and lie
//! on a line there. What an operator's inference compares and gives are sums, smallest or largest ones of them, or
//! parts of them that are rounded down, so that between these lengths they lie on the line, too. Where contents decide about a
//! shape, which the model computes as it likes, it is inferred at every length.

use super::StageInput;
use super::adapt::{Adaptation, Frame};
use super::changed::{Changed, inferred};
use crate::error::Result;
use crate::fact::TensorSpec;
use crate::graph::ValueId;
use crate::session::Run;

/// A course of fewer steps than these is no course: three lengths must differ.
const SHORTEST: usize = 2;

/// A course is looked for over as many steps as the longest input has places, and over so many where that is shorter.
const LONG: usize = 32;

/// How values grow together.
pub(super) struct Course {
    /// How much each dimension of each changed value grows with a step.
    growth: Vec<Vec<usize>>,
    /// For so many more steps.
    left: usize,
}

/// When a course is looked for: rarely where there was none.
#[derive(Default)]
pub(super) struct Search {
    /// Changes to come without a search.
    wait: usize,
    /// How many those were after the latest search.
    pause: usize,
}

impl Search {
    /// Whether it is time.
    pub fn due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        due
    }

    /// Says whether there is a course.
    pub fn found(&mut self, found: bool) {
        if found {
            *self = Search::default();
        } else if self.wait == 0 {
            self.pause = 2 * self.pause + 1;
            self.wait = self.pause;
        }
    }
}

impl Course {
    /// How the changed values go on if the inputs grow as they did, by one place. `None` where they did otherwise, or
    /// where that is not told by their shapes.
    pub fn of(
        frame: &Frame,
        changed: &Changed<'_>,
        input: &StageInput,
        run: &Run<'_>,
    ) -> Option<Course> {
        let grown = |(v, spec): &(ValueId, TensorSpec)| {
            let old = &frame.specs.get(v)?.shape;
            let pairs = (spec.shape.len() == old.len()).then(|| spec.shape.iter().zip(old))?;
            pairs.map(|(new, old)| new.checked_sub(*old)).collect()
        };
        let growth: Vec<Vec<usize>> = changed.values.iter().map(grown).collect::<Option<_>>()?;
        let feeds = || input.feeds.iter().zip(fed(&changed.values, input.feeds));
        let mut longest = 0;
        for ((_, spec), at) in feeds() {
            let Some(at) = at else { continue };
            let grows = growth[at]
                .iter()
                .zip(&spec.shape)
                .filter(|(by, _)| **by > 0);
            longest = grows.map(|(_, n)| *n).fold(longest, usize::max);
            if spec.value.is_some() || growth[at].iter().any(|by| *by > 1) {
                return None;
            }
        }
        if longest == 0 {
            return None;
        }
        let mut left = longest.max(LONG);
        while left >= SHORTEST {
            let far = feeds().map(|((v, spec), at)| {
                let mut spec = spec.clone();
                if let Some(at) = at {
                    grow(&mut spec, &growth[at], left)?;
                }
                Some((*v, spec))
            });
            let far: Option<Vec<_>> = far.collect();
            let far = far.and_then(|far| Changed::by(frame, &far, input, run).ok()?);
            if far.is_some_and(|far| lie_on_a_line(changed, &far, &growth, left)) {
                return Some(Course { growth, left });
            }
            left /= 2;
        }
        None
    }
}

/// For each feed, which of the changed values it is. These begin with the feeds among them.
fn fed<'a>(
    values: &'a [(ValueId, TensorSpec)],
    feeds: &'a [(ValueId, TensorSpec)],
) -> impl Iterator<Item = Option<usize>> + 'a {
    let mut next = 0;
    feeds.iter().map(move |(v, _)| {
        let is_next = values.get(next).is_some_and(|(of, _)| of == v);
        next += usize::from(is_next);
        is_next.then(|| next - 1)
    })
}

/// Adds some steps to a shape. `None` where it becomes too large to be counted.
fn grow(spec: &mut TensorSpec, growth: &[usize], steps: usize) -> Option<()> {
    for (dim, by) in spec.shape.iter_mut().zip(growth) {
        *dim = dim.checked_add(by.checked_mul(steps)?)?;
    }
    Some(())
}

/// Whether the same values have changed in both, and have grown by so many steps from the first to the second.
fn lie_on_a_line(near: &Changed, far: &Changed, growth: &[Vec<usize>], steps: usize) -> bool {
    near.values.len() == far.values.len()
        && near.nodes.len() == far.nodes.len()
        && near
            .values
            .iter()
            .zip(&far.values)
            .zip(growth)
            .all(|((near, far), growth)| {
                let mut grown = near.1.clone();
                near.0 == far.0
                    && grow(&mut grown, growth, steps).is_some()
                    && grown.shape == far.1.shape
            })
}

impl Adaptation {
    /// Fills the change for inputs that have grown by some more steps. False where they have not, and the change is of no use any more.
    ///
    /// # Errors
    /// Those of inferring shapes, where contents decide about them.
    pub(super) fn advance(
        &mut self,
        frame: &Frame,
        input: &StageInput,
        run: &Run<'_>,
    ) -> Result<bool> {
        let Adaptation {
            values,
            nodes,
            course: Some(course),
            ..
        } = self
        else {
            return Ok(false);
        };
        let Some(steps) = steps(frame, values, course, input) else {
            return Ok(false);
        };
        course.left -= steps;
        for (at, (_, spec)) in values.iter_mut().enumerate() {
            if grow(spec, &course.growth[at], steps).is_none() {
                return Ok(false);
            }
        }
        for node in nodes {
            for (own, at) in node.inputs.iter_mut().zip(&node.reads) {
                if let (Some(own), Some(at)) = (own, at) {
                    own.clone_from(&values[*at].1);
                }
            }
            if !node.by_contents {
                for (own, at) in node.outputs.iter_mut().zip(&node.writes) {
                    if let Some(at) = at {
                        own.clone_from(&values[*at].1);
                    }
                }
                continue;
            }
            let id = input.nodes()[node.place];
            run.interrupt.check()?;
            let outputs = inferred(input, id, &node.inputs, run)?;
            for ((own, new), at) in node.outputs.iter_mut().zip(outputs).zip(&node.writes) {
                let Some(at) = at else {
                    if *own != new {
                        return Ok(false);
                    }
                    continue;
                };
                let expected = &mut values[*at].1;
                let known = expected.value.is_some() == new.value.is_some();
                if expected.shape != new.shape || expected.dtype != new.dtype || !known {
                    return Ok(false);
                }
                expected.clone_from(&new);
                *own = new;
            }
        }
        Ok(true)
    }
}

/// How many steps of the course the inputs have gone; `None` where they did not follow it, or not so far.
fn steps(
    frame: &Frame,
    values: &[(ValueId, TensorSpec)],
    course: &Course,
    input: &StageInput,
) -> Option<usize> {
    let mut steps = None;
    for ((v, spec), at) in input.feeds.iter().zip(fed(values, input.feeds)) {
        let Some(at) = at else {
            if frame.specs.get(v) != Some(spec) {
                return None;
            }
            continue;
        };
        let old = &values[at].1;
        let is_like = old.dtype == spec.dtype && old.shape.len() == spec.shape.len();
        if !is_like || spec.value.is_some() {
            return None;
        }
        for ((new, old), by) in spec.shape.iter().zip(&old.shape).zip(&course.growth[at]) {
            let gone = new.checked_sub(*old)?;
            match by {
                0 if gone == 0 => {}
                0 => return None,
                _ if *steps.get_or_insert(gone) == gone => {}
                _ => return None,
            }
        }
    }
    steps.filter(|steps| (1..=course.left).contains(steps))
}

//! Values that are no tensors, and the operators that `builtin` runs because they take or give one: a
//! file for each kind of value.

mod map;
mod optional;
mod sequence;

use crate::error::{Result, value_error};
use crate::graph::Operator;
use crate::ops::{
    ConcatFromSequence, DictVectorizer, MapValues, OptionalAbsent, OptionalGetElement,
    OptionalHasElement, SequenceAt, SequenceConstruct, SequenceErase, SequenceInsert,
    SequenceLength, SplitToSequence, Unary, UnaryKind, ZipMap,
};
use crate::session::{Handle, Run};
use crate::tensor::Tensor;
use crate::threading::LocalFuture;

/// An operator that `builtin` runs.
trait OnValues: Operator {
    async fn run(&self, inputs: Inputs, run: &mut Run<'_>) -> Result<Handle>;
}

/// [`OnValues`] of a type that is not known.
pub(crate) trait Runs {
    fn run<'a>(&'a self, inputs: Inputs, run: &'a mut Run<'_>) -> LocalFuture<'a, Result<Handle>>;
}

impl<T: OnValues> Runs for T {
    fn run<'a>(&'a self, inputs: Inputs, run: &'a mut Run<'_>) -> LocalFuture<'a, Result<Handle>> {
        Box::pin(OnValues::run(self, inputs, run))
    }
}

/// Casts an operator to one of the families that run here, if it is one.
type Known = fn(&dyn Operator) -> Option<&dyn Runs>;

/// The operator as one that runs here, if it is one.
pub(crate) fn of(op: &dyn Operator) -> Option<&dyn Runs> {
    const KNOWN: [Known; 14] = [
        known::<SequenceConstruct>,
        known::<SequenceAt>,
        known::<SequenceInsert>,
        known::<SequenceErase>,
        known::<SequenceLength>,
        known::<SplitToSequence>,
        known::<ConcatFromSequence>,
        known::<OptionalAbsent>,
        known::<OptionalGetElement>,
        known::<OptionalHasElement>,
        known::<ZipMap>,
        known::<DictVectorizer>,
        known::<MapValues>,
        |op| match op.downcast_ref::<Unary>() {
            Some(unary) if unary.0 == UnaryKind::Identity => Some(unary),
            _ => None,
        },
    ];
    KNOWN.iter().find_map(|known| known(op))
}

fn known<T: OnValues>(op: &dyn Operator) -> Option<&dyn Runs> {
    op.downcast_ref::<T>().map(|op| op as &dyn Runs)
}

/// What a node is given.
pub(crate) struct Inputs(pub Vec<Option<Handle>>);

impl Inputs {
    /// Input `i`, which is gone then; `InvalidValue` where it is left out.
    pub fn take(&mut self, i: usize) -> Result<Handle> {
        self.optional(i)
            .ok_or_else(|| value_error(format!("input {i} is missing")))
    }

    fn optional(&mut self, i: usize) -> Option<Handle> {
        self.0.get_mut(i).and_then(Option::take)
    }

    /// Input `i` on the host; errors as of [`Inputs::take`] and of reading it.
    pub async fn tensor(&mut self, i: usize) -> Result<Tensor> {
        self.take(i)?.into_host().await
    }
}

/// Identity: kernels copy tensors, so this only sees the rest.
impl OnValues for Unary {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        inputs.take(0)
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use crate::testing::odd::Odd;
    use crate::testing::{Random, content, operators};

    /// Shape inference lets values through to those operators that run here, and to no others.
    #[test]
    fn operators_on_values_are_those_that_run_here() {
        let taste = &mut Odd(Random(11));
        for known in operators() {
            for _ in 0..100 {
                let op = (known.build)(&content(&known.schema, taste));
                let runs = of(op.as_ref()).is_some() || !op.subgraphs().is_empty();
                assert_eq!(op.on_values(), runs, "{}", known.type_name);
            }
        }
    }
}

//! Sequences: handles of their tensors are passed on, wherever these are.

use std::sync::Arc;

use super::{Inputs, OnValues};
use crate::error::{Error, ErrorCode, Result, shape_error, value_error};
use crate::fact::{Fact, InputFact, TensorSpec};
use crate::graph::{InferContext, Names, NodeSpec, Operator};
use crate::ops::{
    Concat, ConcatFromSequence, SequenceAt, SequenceConstruct, SequenceErase, SequenceInsert,
    SequenceLength, Split, SplitToSequence, normalize_axis,
};
use crate::session::{Handle, Run};
use crate::tensor::Tensor;

/// The longest sequence that one tensor is cut into.
const MAX_PARTS: usize = 1 << 20;

impl Inputs {
    fn sequence(&mut self, i: usize) -> Result<Arc<Vec<Handle>>> {
        match self.take(i)? {
            Handle::Sequence(handles) => Ok(handles),
            other => Err(
                Error::new(ErrorCode::DType, format!("input {i} is not a sequence"))
                    .with_got(other.fact().kind),
            ),
        }
    }

    /// The position in a sequence of `len` that input `i` names, up to `last`.
    async fn position(&mut self, i: usize, len: usize, last: usize) -> Result<usize> {
        let tensor = self.tensor(i).await?;
        let given = match tensor.to_i64s()?[..] {
            [given] => given,
            _ => return Err(shape_error(format!("input {i} must be a scalar"))),
        };
        let from_start = if given < 0 { given + len as i64 } else { given };
        match usize::try_from(from_start) {
            Ok(position) if position <= last => Ok(position),
            _ => Err(value_error("a position outside of a sequence")
                .with_expected(format!("-{len} to {last}"))
                .with_got(given)),
        }
    }
}

impl OnValues for SequenceConstruct {
    async fn run(&self, inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let mut handles = Vec::with_capacity(inputs.0.len());
        for handle in inputs.0 {
            handles.push(handle.ok_or_else(|| value_error("an input is missing"))?);
        }
        Ok(Handle::Sequence(Arc::new(handles)))
    }
}

impl OnValues for SequenceAt {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let handles = inputs.sequence(0)?;
        let last = handles.len().saturating_sub(1);
        let at = inputs.position(1, handles.len(), last).await?;
        let handle = handles.get(at).cloned();
        handle.ok_or_else(|| value_error("an empty sequence has no tensor to give"))
    }
}

impl OnValues for SequenceInsert {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let mut handles = inputs.sequence(0)?;
        let new = inputs.take(1)?;
        let len = handles.len();
        let at = match inputs.0.get(2) {
            Some(Some(_)) => inputs.position(2, len, len).await?,
            _ => len,
        };
        Arc::make_mut(&mut handles).insert(at, new);
        Ok(Handle::Sequence(handles))
    }
}

impl OnValues for SequenceErase {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let mut handles = inputs.sequence(0)?;
        let len = handles.len();
        let last = len.saturating_sub(1);
        let at = match inputs.0.get(1) {
            Some(Some(_)) => inputs.position(1, len, last).await?,
            _ => last,
        };
        if at >= len {
            return Err(value_error("an empty sequence has no tensor to lose"));
        }
        Arc::make_mut(&mut handles).remove(at);
        Ok(Handle::Sequence(handles))
    }
}

impl OnValues for SequenceLength {
    async fn run(&self, mut inputs: Inputs, _: &mut Run<'_>) -> Result<Handle> {
        let len = inputs.sequence(0)?.len() as i64;
        Ok(Handle::Host(Tensor::scalar(len)?))
    }
}

impl OnValues for SplitToSequence {
    async fn run(&self, mut inputs: Inputs, run: &mut Run<'_>) -> Result<Handle> {
        let tensor = inputs.tensor(0).await?;
        let axis = normalize_axis(self.axis, tensor.rank())?;
        let size = tensor.shape()[axis] as i64;
        let given = match inputs.optional(1) {
            Some(handle) => Some(handle.into_host().await?),
            None => None,
        };
        let keep = given.is_some() || self.keep_dims;
        let sizes = sizes(size, given)?;
        let parts = sizes.len();
        let sizes = Tensor::from_slice(&[parts], &sizes)?;
        let op = Split { axis: axis as i64 };
        let mut handles = Vec::with_capacity(parts);
        for part in match parts {
            0 => Vec::new(),
            _ => compute(&op, &[tensor, sizes], parts, run)?,
        } {
            let mut shape = part.shape().to_vec();
            if !keep {
                shape.remove(axis);
            }
            handles.push(Handle::Host(part.reshaped(&shape)?));
        }
        Ok(Handle::Sequence(Arc::new(handles)))
    }
}

/// The sizes of the parts that an axis of `size` is cut into.
fn sizes(size: i64, given: Option<Tensor>) -> Result<Vec<i64>> {
    let chunk = match given {
        None => 1,
        Some(sizes) if sizes.rank() > 0 => return sizes.to_i64s(),
        Some(size) => match size.to_i64s()?[..] {
            [chunk] if chunk > 0 => chunk,
            _ => return Err(value_error("the size of the parts must be positive")),
        },
    };
    let parts = usize::try_from(size / chunk + i64::from(size % chunk != 0)).unwrap_or(usize::MAX);
    if parts > MAX_PARTS {
        return Err(
            Error::new(ErrorCode::Limit, "a tensor is cut into too many parts")
                .with_expected(format!("at most {MAX_PARTS}"))
                .with_got(parts),
        );
    }
    let mut sizes = vec![chunk; parts];
    if let Some(last) = sizes.last_mut()
        && size % chunk != 0
    {
        *last = size % chunk;
    }
    Ok(sizes)
}

impl OnValues for ConcatFromSequence {
    async fn run(&self, mut inputs: Inputs, run: &mut Run<'_>) -> Result<Handle> {
        let handles = inputs.sequence(0)?;
        let mut parts = Vec::with_capacity(handles.len());
        for handle in handles.iter() {
            let mut part = handle.clone().into_host().await?;
            if self.new_axis {
                let mut shape = part.shape().to_vec();
                let axis = normalize_axis(self.axis, shape.len() + 1)?;
                shape.insert(axis, 1);
                part = part.reshaped(&shape)?;
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Err(value_error("an empty sequence cannot be joined"));
        }
        let mut whole = compute(&Concat { axis: self.axis }, &parts, 1, run)?;
        let whole = whole.pop();
        whole
            .map(Handle::Host)
            .ok_or_else(|| shape_error("nothing was joined"))
    }
}

/// Runs an ordinary operator at once on host tensors, as the planner does for shapes.
fn compute(
    op: &dyn Operator,
    inputs: &[Tensor],
    outputs: usize,
    run: &Run<'_>,
) -> Result<Vec<Tensor>> {
    let specs: Vec<_> = inputs.iter().map(|t| Some(TensorSpec::of(t))).collect();
    let facts: Vec<_> = inputs
        .iter()
        .map(|t| {
            Some(InputFact {
                fact: Fact::of(t),
                value: Some(t.clone()),
            })
        })
        .collect();
    let facts = op.infer(&InferContext {
        inputs: &facts,
        outputs,
        interrupt: &run.interrupt,
        names: Names::default(),
    })?;
    let unknown = || shape_error("the shape of an output cannot be found");
    let made = facts.iter().take(outputs).map(|f| {
        let (dtype, shape) = f.dtype.zip(f.concrete()).ok_or_else(unknown)?;
        run.shared.check_bytes(dtype, &shape)?;
        Ok(TensorSpec::new(dtype, &shape))
    });
    let made = made.collect::<Result<Vec<_>>>()?;
    let node = NodeSpec {
        name: "",
        op,
        inputs: &specs,
        outputs: &made,
    };
    let done = run.evaluate(&node);
    done.unwrap_or_else(|| {
        Err(Error::new(
            ErrorCode::NoBackend,
            format!("nothing runs {} on the host", op.name()),
        ))
    })
}

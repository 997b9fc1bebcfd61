//! If, Loop and Scan.

use crate::dtype::DType;
use crate::error::{Error, ErrorCode, Result, shape_error, value_error};
use crate::fact::Fact;
use crate::graph::Node;
use crate::limits::Limits;
use crate::ops::{If, Loop, Scan, normalize_axis};
use crate::session::{Handle, Run, Runner};
use crate::tensor::Tensor;
use crate::threading::LocalFuture;

/// Runs a control-flow node. `host[i]` says that output `i` will be looked at on the host.
pub(crate) fn run<'a>(
    node: &'a Node,
    bodies: &'a mut [Runner],
    inputs: Vec<Option<Handle>>,
    host: &'a [bool],
    run: &'a mut Run<'_>,
) -> LocalFuture<'a, Result<Vec<Handle>>> {
    Box::pin(async move {
        let op = node.op.as_ref();
        if op.is::<If>() {
            run_if(bodies, inputs, host, run).await
        } else if let Some(op) = op.downcast_ref::<Loop>() {
            run_loop(op, bodies, inputs, host, run).await
        } else if let Some(op) = op.downcast_ref::<Scan>() {
            run_scan(op, bodies, inputs, host, run).await
        } else {
            Err(Error::new(
                ErrorCode::NoBackend,
                "builtin does not know this control-flow operator",
            ))
        }
    })
}

fn no_body() -> Error {
    Error::new(ErrorCode::InvalidGraph, "a control-flow node has no body")
}

async fn scalar(handle: Option<Handle>) -> Result<Option<i64>> {
    let Some(handle) = handle else {
        return Ok(None);
    };
    let tensor = handle.into_host().await?;
    match tensor.to_i64s()?.as_slice() {
        [v] => Ok(Some(*v)),
        other => Err(
            shape_error("a condition or trip count must have one element")
                .with_got(format!("{} elements", other.len())),
        ),
    }
}

async fn run_if(
    bodies: &mut [Runner],
    mut inputs: Vec<Option<Handle>>,
    host: &[bool],
    run: &mut Run<'_>,
) -> Result<Vec<Handle>> {
    let captured = inputs.split_off(1.min(inputs.len()));
    let condition = scalar(inputs.pop().flatten()).await?;
    let which = match condition {
        Some(0) => 1,
        Some(_) => 0,
        None => return Err(value_error("the condition of If is missing")),
    };
    let body = bodies.get_mut(which).ok_or_else(no_body)?;
    let given = present(captured)?;
    body.run(run, given, host).await
}

fn present(handles: Vec<Option<Handle>>) -> Result<Vec<Handle>> {
    handles
        .into_iter()
        .map(|h| h.ok_or_else(|| value_error("an input of a body is missing")))
        .collect()
}

async fn run_loop(
    op: &Loop,
    bodies: &mut [Runner],
    inputs: Vec<Option<Handle>>,
    host: &[bool],
    run: &mut Run<'_>,
) -> Result<Vec<Handle>> {
    let body = bodies.first_mut().ok_or_else(no_body)?;
    let mut inputs = inputs.into_iter();
    let trips = scalar(inputs.next().flatten()).await?;
    let first = scalar(inputs.next().flatten()).await?;
    let mut rest = present(inputs.collect())?;
    let captured = rest.split_off(op.carried.min(rest.len()));
    let mut carried = rest;
    let mut going = first.is_none_or(|c| c != 0);
    let mut scanned: Vec<Vec<Handle>> = Vec::new();
    let mut wanted = vec![true];
    wanted.extend(host.iter().enumerate().map(|(i, &h)| h && i >= op.carried));
    let outputs_of_body = host.len() + 1;
    scanned.resize_with(host.len().saturating_sub(op.carried), Vec::new);
    let mut i = 0i64;
    while going && trips.is_none_or(|t| i < t) {
        let most = run.shared.options.limits.iterations;
        if i as u64 >= most {
            let what = "a Loop runs too often";
            let most = format!("{most} iterations");
            return Err(Limits::exceeded("iterations", what, most, "more"));
        }
        run.interrupt.check()?;
        let mut given = vec![
            Handle::Host(Tensor::scalar(i)?),
            Handle::Host(Tensor::from_bools(&[], &[true])?),
        ];
        given.append(&mut carried);
        given.extend(captured.iter().cloned());
        let results = body.run(run, given, &wanted).await?;
        if results.len() != outputs_of_body {
            return Err(Error::new(
                ErrorCode::InvalidGraph,
                "the body of a Loop has the wrong number of outputs",
            )
            .with_expected(outputs_of_body)
            .with_got(results.len()));
        }
        let mut results = results.into_iter();
        going = scalar(results.next()).await?.is_none_or(|c| c != 0);
        carried = results.by_ref().take(op.carried).collect();
        for (list, handle) in scanned.iter_mut().zip(results) {
            list.push(handle);
        }
        i += 1;
    }
    let mut facts = Vec::new();
    if i == 0 && !scanned.is_empty() {
        let mut given = vec![Fact::fixed(DType::I64, &[]), Fact::fixed(DType::Bool, &[])];
        given.extend(carried.iter().chain(&captured).map(Handle::fact));
        facts = body.output_facts(&given).split_off(1 + op.carried);
    }
    let mut outputs = carried;
    for (k, list) in scanned.into_iter().enumerate() {
        let stacked = stack(list, 0, false, facts.get(k)).await?;
        outputs.push(Handle::Host(stacked));
    }
    Ok(outputs)
}

async fn run_scan(
    op: &Scan,
    bodies: &mut [Runner],
    inputs: Vec<Option<Handle>>,
    host: &[bool],
    run: &mut Run<'_>,
) -> Result<Vec<Handle>> {
    let body = bodies.first_mut().ok_or_else(no_body)?;
    let mut states = present(inputs)?;
    let captured = states.split_off((op.states + op.scan_inputs).min(states.len()));
    let scanned = states.split_off(op.states.min(states.len()));
    let mut slices = Vec::with_capacity(scanned.len());
    let mut length = None;
    for (k, handle) in scanned.into_iter().enumerate() {
        let tensor = handle.into_host().await?;
        let axis = normalize_axis(op.input_axes.get(k).copied().unwrap_or(0), tensor.rank())?;
        let n = tensor.shape()[axis];
        if *length.get_or_insert(n) != n {
            return Err(shape_error("the scanned inputs of Scan differ in length"));
        }
        slices.push((
            tensor,
            axis,
            op.input_reverse.get(k).copied().unwrap_or(false),
        ));
    }
    let length = length.ok_or_else(|| shape_error("Scan needs something to scan"))?;
    let count = host.len().saturating_sub(op.states);
    let mut collected: Vec<Vec<Handle>> = Vec::new();
    collected.resize_with(count, Vec::new);
    let facts = if length == 0 {
        let mut given: Vec<Fact> = states.iter().map(Handle::fact).collect();
        for (t, axis, _) in &slices {
            let mut shape = t.shape().to_vec();
            shape.remove(*axis);
            given.push(Fact::fixed(t.dtype(), &shape));
        }
        given.extend(captured.iter().map(Handle::fact));
        body.output_facts(&given).split_off(op.states)
    } else {
        Vec::new()
    };
    for i in 0..length {
        run.interrupt.check()?;
        let mut given = std::mem::take(&mut states);
        for (tensor, axis, reverse) in &slices {
            let at = if *reverse { length - 1 - i } else { i };
            given.push(Handle::Host(select(tensor, *axis, at)?));
        }
        given.extend(captured.iter().cloned());
        let mut results = body.run(run, given, host).await?.into_iter();
        states = results.by_ref().take(op.states).collect();
        for (list, handle) in collected.iter_mut().zip(results) {
            list.push(handle);
        }
    }
    let mut outputs = states;
    for (k, list) in collected.into_iter().enumerate() {
        let axis = op.output_axes.get(k).copied().unwrap_or(0);
        let reverse = op.output_reverse.get(k).copied().unwrap_or(false);
        let stacked = stack(list, axis, reverse, facts.get(k)).await?;
        outputs.push(Handle::Host(stacked));
    }
    Ok(outputs)
}

/// Element `at` of `axis`, without the axis.
fn select(tensor: &Tensor, axis: usize, at: usize) -> Result<Tensor> {
    let shape = tensor.shape();
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let mut rest = shape.to_vec();
    rest.remove(axis);
    let runs = (0..outer).map(|o| (o * shape[axis] + at) * inner);
    Tensor::from_runs(
        tensor.dtype(),
        &rest,
        runs.map(|start| (tensor, start..start + inner)),
    )
}

/// Puts tensors of one shape beside each other along a new `axis`. Without any, `fact` says what
/// one would have been.
async fn stack(list: Vec<Handle>, axis: i64, reverse: bool, fact: Option<&Fact>) -> Result<Tensor> {
    let mut tensors = Vec::with_capacity(list.len());
    for handle in list {
        tensors.push(handle.into_host().await?);
    }
    if reverse {
        tensors.reverse();
    }
    let Some(first) = tensors.first() else {
        let unknown = || shape_error("a scan output that was never written has no known shape");
        let fact = fact.ok_or_else(unknown)?;
        let dtype = fact.dtype.ok_or_else(unknown)?;
        let mut shape: Vec<usize> = match &fact.shape {
            Some(s) => s.0.iter().map(|d| d.known().unwrap_or(0)).collect(),
            None => Vec::new(),
        };
        let axis = normalize_axis(axis, shape.len() + 1)?;
        shape.insert(axis, 0);
        return Tensor::zeros(dtype, &shape);
    };
    let (dtype, one) = (first.dtype(), first.shape().to_vec());
    if tensors
        .iter()
        .any(|t| t.shape() != one || t.dtype() != dtype)
    {
        return Err(shape_error("the slices of a scan output differ in shape"));
    }
    let axis = normalize_axis(axis, one.len() + 1)?;
    let inner: usize = one[axis..].iter().product();
    let outer: usize = one[..axis].iter().product();
    let mut shape = one;
    shape.insert(axis, tensors.len());
    let runs =
        (0..outer).flat_map(|o| tensors.iter().map(move |t| (t, o * inner..(o + 1) * inner)));
    Tensor::from_runs(dtype, &shape, runs)
}

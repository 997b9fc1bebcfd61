//! Operators that a library brings.

use std::sync::Arc;

use kilim_core::error::unsupported;
use kilim_core::ops::{Attributes, CustomOperator, Fact, InferContext};
use kilim_core::{DType, Dim, Result, Shape};
use kilim_plugin_abi as abi;

use crate::encode::{Arena, TensorView, dtype};
use crate::library::{Library, Message, check, owned};

/// The operators that the library brings; those without a name or `infer` are left out.
pub fn operators(library: &Arc<Library>) -> Vec<Arc<CustomOperator>> {
    let table = &library.table;
    if table.operators.is_null() {
        return Vec::new();
    }
    // SAFETY: the backend gives as many operators as it says, which live as long as it.
    let list = unsafe { std::slice::from_raw_parts(table.operators, table.operator_count) };
    let operator = |index: usize| {
        let told = &list[index];
        // SAFETY: strings of the interface end with a zero.
        let (domain, name) = unsafe { (owned(told.domain), owned(told.name)?) };
        told.infer?;
        let (domain, library) = (domain.unwrap_or_default(), library.clone());
        let (d, n) = (domain.clone(), name.clone());
        Some(Arc::new(CustomOperator::new(
            domain,
            name,
            move |attributes, ctx| infer(&library, index, (&d, &n), attributes, ctx),
        )))
    };
    (0..list.len()).filter_map(operator).collect()
}

fn infer(
    library: &Library,
    index: usize,
    (domain, name): (&str, &str),
    attributes: &Attributes,
    ctx: &InferContext,
) -> Result<Vec<Fact>> {
    // Nothing can be said of outputs while an input's element type is unknown.
    if ctx.inputs.iter().flatten().any(|i| i.fact.dtype.is_none()) {
        return Ok(vec![Fact::default(); ctx.outputs]);
    }
    let size = |d: &Dim| d.known().map_or(-1, |n| n as i64);
    let view = |name, dtype: DType, shape: Option<&Shape>| TensorView {
        name,
        dtype,
        shape: shape.map(|s| s.0.iter().map(size).collect()),
        value: None,
        bytes: 0,
    };
    let inputs: Vec<_> = ctx
        .inputs
        .iter()
        .enumerate()
        .map(|(i, input)| {
            let input = input.as_ref()?;
            let name = ctx.names.input(i);
            let mut view = view(name, input.fact.dtype?, input.fact.shape.as_ref());
            view.value = input.value.as_ref();
            view.bytes = input.value.as_ref().map_or(0, |v| v.byte_len());
            Some(view)
        })
        .collect();
    let outputs: Vec<_> = (0..ctx.outputs)
        .map(|i| Some(view(ctx.names.output(i), DType::F32, None)))
        .collect();
    let mut arena = Arena::default();
    let node = arena
        .custom_node(
            ctx.names.node(),
            domain,
            name,
            &attributes.0,
            &inputs,
            &outputs,
        )
        .map_err(|r| unsupported(r.reason))?;
    let empty = abi::Output {
        dtype: 0,
        rank: -1,
        shape: [0; abi::MAX_RANK],
    };
    let mut told = vec![empty; ctx.outputs];
    let mut message = Message::new();
    // SAFETY: `operators` saw that the operator is there and has `infer`; the node points into the
    // arena, which lives; there is an entry for each output.
    let status = unsafe {
        let operator = &*library.table.operators.add(index);
        match operator.infer {
            Some(infer) => infer(
                operator.this,
                &raw const node,
                told.as_mut_ptr(),
                message.raw(),
            ),
            None => abi::UNSUPPORTED,
        }
    };
    check(status, &message, &format!("the shapes of {domain}::{name}"))?;
    let fact = |o: &abi::Output| {
        let rank = usize::try_from(o.rank).ok().filter(|&r| r <= abi::MAX_RANK);
        let dim = |&d: &i64| usize::try_from(d).map_or(Dim::Unknown, Dim::Known);
        Fact {
            dtype: dtype(o.dtype),
            shape: rank.map(|r| Shape(o.shape[..r].iter().map(dim).collect())),
            ..Fact::default()
        }
    };
    Ok(told.iter().map(fact).collect())
}

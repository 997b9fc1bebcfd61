//! What a file says of its inputs and outputs.

use kilim_core::dim::Dim;
use kilim_core::error::{Result, unsupported};
use kilim_core::{DType, Fact, Form};

use super::tensor::number;
use crate::proto::Message;

/// A `ValueInfoProto`; without a type where nothing is known of it.
///
/// # Errors
/// `Unsupported` for types that ONNX does not have, and for maps, whose keys the graph does not tell.
pub fn info(name: &str, fact: &Fact) -> Result<Message> {
    let mut message = Message::default();
    message.text(1, name);
    if let Some(dtype) = fact.dtype {
        message.message(2, kind(fact, dtype)?);
    }
    Ok(message)
}

fn kind(fact: &Fact, dtype: DType) -> Result<Message> {
    let tensor = tensor(fact, dtype)?;
    let held = match fact.kind.form {
        Form::Tensor => tensor,
        Form::Sequence => holder(4, tensor),
        Form::Map | Form::MapSequence => return Err(unsupported("a map as input or output")),
    };
    Ok(match fact.kind.optional {
        true => holder(9, held),
        false => held,
    })
}

/// A type that holds values of another one: the field of the holder, whose first field they are.
fn holder(field: u32, element: Message) -> Message {
    let mut inner = Message::default();
    inner.message(1, element);
    let mut outer = Message::default();
    outer.message(field, inner);
    outer
}

fn tensor(fact: &Fact, dtype: DType) -> Result<Message> {
    let mut tensor = Message::default();
    tensor.int(1, number(dtype)?);
    if let Some(dims) = &fact.shape {
        let mut shape = Message::default();
        for dim in &dims.0 {
            let mut message = Message::default();
            match dim {
                Dim::Known(n) => message.int(1, *n as i64),
                Dim::Unknown => {}
                named => message.text(2, &named.to_string()),
            }
            shape.message(1, message);
        }
        tensor.message(2, shape);
    }
    let mut kind = Message::default();
    kind.message(1, tensor);
    Ok(kind)
}

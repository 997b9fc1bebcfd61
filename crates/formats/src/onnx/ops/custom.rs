//! Operators that the session brings.

use std::sync::Arc;

use kilim_core::error::{Result, unsupported};
use kilim_core::ops::{Attribute, Attributes, Custom, CustomOperator};

use super::super::builder::NodeBuilder;
use super::super::proto::AttributeProto;

/// Brings a node of a user's operator into the graph, with the attributes as they are stored.
pub fn map(operator: &Arc<CustomOperator>, b: &mut NodeBuilder) -> Result<()> {
    let mut attributes = Attributes::default();
    for (name, proto) in b.stored_attributes() {
        if let Some(value) = attribute(b, name, proto)? {
            attributes.set(name, value);
        }
    }
    b.emit_same(Custom::new(operator.clone(), attributes))
}

/// `None` for an empty list, whose type the file need not say.
fn attribute(b: &NodeBuilder, name: &str, proto: &AttributeProto) -> Result<Option<Attribute>> {
    if proto.g.is_some() || proto.sparse_tensor.is_some() {
        return Err(unsupported(format!(
            "the attribute `{name}`, a graph or sparse tensor, of a custom operator"
        )));
    }
    if let Some(tensor) = &proto.t {
        return b.read_tensor(tensor).map(|t| Some(Attribute::Tensor(t)));
    }
    // A draft gives a list of one as a single value, too.
    let ints = proto.ints.ints()?;
    if !ints.is_empty() {
        return Ok(Some(Attribute::Ints(ints)));
    }
    let floats = proto.floats.floats()?;
    if !floats.is_empty() {
        let floats = floats.into_iter().map(f64::from).collect();
        return Ok(Some(Attribute::Floats(floats)));
    }
    let texts = b.texts(name)?.unwrap_or_default();
    if !texts.is_empty() {
        return Ok(Some(Attribute::Texts(texts)));
    }
    if let Some(n) = proto.i {
        return Ok(Some(Attribute::Int(n)));
    }
    if let Some(x) = proto.f {
        return Ok(Some(Attribute::Float(x.into())));
    }
    let Some(bytes) = proto.s else {
        return Ok(None);
    };
    let value = String::from_utf8(bytes.to_vec());
    Ok(Some(value.map_or_else(
        |e| Attribute::Bytes(e.into_bytes()),
        Attribute::Text,
    )))
}

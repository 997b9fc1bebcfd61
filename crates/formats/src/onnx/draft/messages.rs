//! A draft as the messages of an ONNX file.

use kilim_core::dim::{Dim, Shape};
use kilim_core::dtype::DType;
use kilim_core::error::Result;
use kilim_core::ops::Attribute;
use kilim_core::tensor::Tensor;

use super::super::builder::NEWEST;
use super::super::ops::ML_DOMAIN;
use super::super::proto::{
    AttributeProto, DimensionProto, Field, GraphProto, ModelProto, NodeProto, Numbers,
    OperatorSetId, ShapeProto, TensorProto, TensorType, TypeProto, ValueInfo, invalid,
};
use super::super::tensor::type_number;
use super::{Draft, DraftNode};

/// A whole model.
///
/// # Errors
/// `InvalidModel` where an input has a dimension that is too large, or an element type that ONNX does not have.
pub fn model(draft: &Draft) -> Result<ModelProto<'_>> {
    Ok(ModelProto {
        // The first in which initialisers are no inputs.
        ir_version: 4,
        graph: Some(graph(draft)?),
        // Others have one version.
        opset_import: ["", ML_DOMAIN].map(newest).into(),
        functions: Vec::new(),
        metadata: draft.metadata.as_ref().clone(),
    })
}

fn graph(draft: &Draft) -> Result<GraphProto<'_>> {
    let constants = draft.constants.iter();
    let constants = constants.map(|(name, tensor)| made(name, tensor));
    let inputs = draft.inputs.iter().map(|(name, told)| {
        let kind = told.as_ref().map(|(dtype, shape)| kind(*dtype, shape));
        let kind = kind.transpose();
        Ok(ValueInfo {
            name,
            kind: kind.map_err(|e| draft.own(e.with_input(name)))?,
        })
    });
    let outputs = draft.outputs.iter();
    let outputs = outputs.map(|name| ValueInfo { name, kind: None });
    Ok(GraphProto {
        name: &draft.importer,
        nodes: draft.nodes.iter().map(node).collect::<Result<_>>()?,
        initializers: constants.collect(),
        inputs: inputs.collect::<Result<_>>()?,
        outputs: outputs.collect(),
        ..GraphProto::default()
    })
}

fn node(node: &DraftNode) -> Result<NodeProto<'_>> {
    let bodies = node.bodies.iter().map(|(name, body)| {
        Ok(AttributeProto {
            name,
            g: Some(graph(body)?),
            ..AttributeProto::default()
        })
    });
    let values = node.attributes.0.iter().map(|a| Ok(attribute(a)));
    Ok(NodeProto {
        inputs: node.inputs.iter().map(String::as_str).collect(),
        outputs: node.outputs.iter().map(String::as_str).collect(),
        name: &node.name,
        op_type: &node.op,
        domain: &node.domain,
        overload: "",
        attributes: values.chain(bodies).collect::<Result<_>>()?,
    })
}

fn newest(domain: &str) -> OperatorSetId<'_> {
    OperatorSetId {
        domain,
        version: NEWEST,
    }
}

fn made<'a>(name: &'a str, tensor: &Tensor) -> TensorProto<'a> {
    TensorProto {
        name,
        made: Some(tensor.clone()),
        ..TensorProto::default()
    }
}

fn kind(dtype: DType, shape: &Shape) -> Result<TypeProto<'_>> {
    let dims = shape.0.iter().map(|dim| {
        let value = dim.known().map(i64::try_from).transpose();
        Ok(DimensionProto {
            value: value.map_err(|_| invalid("a dimension is too large"))?,
            param: match dim {
                Dim::Symbol(name) => name,
                _ => "",
            },
        })
    });
    let shape = ShapeProto {
        dims: dims.collect::<Result<_>>()?,
    };
    let number = type_number(dtype);
    Ok(TypeProto {
        tensor: Some(TensorType {
            elem_type: number.ok_or_else(|| invalid("an element type that ONNX has not"))?,
            shape: Some(shape),
        }),
        ..TypeProto::default()
    })
}

/// An attribute in all forms in which an operator may ask for it.
fn attribute<'a>((name, value): (&'a String, &'a Attribute)) -> AttributeProto<'a> {
    let int = |n: &i64| Field::Varint(*n as u64);
    let float = |x: f64| Field::Fixed32((x as f32).to_bits());
    let mut proto = AttributeProto {
        name,
        ..AttributeProto::default()
    };
    match value {
        Attribute::Int(n) => {
            proto.i = Some(*n);
            proto.f = Some(*n as f32);
        }
        Attribute::Float(x) => proto.f = Some(*x as f32),
        Attribute::Text(text) => proto.s = Some(text.as_bytes()),
        Attribute::Bytes(bytes) => proto.s = Some(bytes),
        Attribute::Ints(list) => {
            if let [n] = list[..] {
                proto.i = Some(n);
                proto.f = Some(n as f32);
            }
            proto.ints = Numbers::of(list.iter().map(int));
            proto.floats = Numbers::of(list.iter().map(|&n| float(n as f64)));
        }
        Attribute::Floats(list) => {
            if let [x] = list[..] {
                proto.f = Some(x as f32);
            }
            proto.floats = Numbers::of(list.iter().map(|&x| float(x)));
        }
        Attribute::Texts(list) => {
            if let [text] = &list[..] {
                proto.s = Some(text.as_bytes());
            }
            proto.strings = list.iter().map(String::as_bytes).collect();
        }
        Attribute::Tensor(tensor) => proto.t = Some(made("", tensor)),
    }
    proto
}

//! What plug-ins see of an operator's attributes: all that the operator has, or nothing.

use kilim_core::Operator;
use kilim_core::backend::Refusal;
use kilim_core::ops::{Attribute, Attributes};

/// The attributes of an operator by the names that `docs/attributes.md` lists, those of a custom operator
/// as the file has them.
///
/// # Errors
/// An operator with an attribute that has no form in the interface: a graph, or a text with a zero byte, which
/// would end it there.
pub fn attributes(op: &dyn Operator) -> Result<Attributes, Refusal> {
    let without_form = |why: &str| {
        let name = op.name();
        Refusal::new(format!(
            "an attribute of {name} has no form in the plug-in interface: {why}"
        ))
    };
    let found = op.attributes().map_err(|e| without_form(e.message()))?;
    match found.0.iter().find(|(_, value)| has_zero(value)) {
        Some((name, _)) => Err(without_form(&format!("`{name}` holds a zero byte"))),
        None => Ok(found),
    }
}

fn has_zero(value: &Attribute) -> bool {
    match value {
        Attribute::Text(text) => text.contains('\0'),
        Attribute::Texts(texts) => texts.iter().any(|t| t.contains('\0')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use kilim_core::ops::{
        Activation, ConstantOfShape, Conv, Custom, CustomOperator, If, Padding, StringSplit, Unary,
        UnaryKind,
    };
    use kilim_core::{Graph, Tensor};
    use kilim_plugin_abi as abi;

    use crate::encode::Arena;

    #[test]
    fn every_field_of_an_operator_is_told() {
        let conv = Conv {
            strides: vec![2, 1],
            dilations: vec![1, 1],
            padding: Padding::Explicit(vec![0, 1, 0, 1]),
            groups: 3,
            channels_last: true,
            activation: Activation::Clip {
                min: -0.5,
                max: 6.0,
            },
        };
        let told = attributes(&conv).unwrap();
        let get = |name: &str| told.get(name).cloned();
        assert_eq!(get("strides"), Some(Attribute::Ints(vec![2, 1])));
        assert_eq!(get("padding"), Some(Attribute::Text("Explicit".into())));
        assert_eq!(
            get("padding.value"),
            Some(Attribute::Ints(vec![0, 1, 0, 1]))
        );
        assert_eq!(get("groups"), Some(Attribute::Int(3)));
        assert_eq!(get("channels_last"), Some(Attribute::Int(1)));
        assert_eq!(get("activation"), Some(Attribute::Text("Clip".into())));
        assert_eq!(get("activation.min"), Some(Attribute::Float(-0.5)));
        assert_eq!(get("activation.max"), Some(Attribute::Float(6.0)));
        assert_eq!(told.0.len(), 9);
    }

    #[test]
    fn nothing_is_told_where_nothing_is_fused() {
        let product = kilim_core::ops::MatMul::default();
        let told = attributes(&product).unwrap();
        let names: Vec<&String> = told.0.keys().collect();
        assert_eq!(names, ["transpose_b"]);
    }

    #[test]
    fn an_operator_that_is_a_kind_tells_the_kind() {
        let leaky = Unary(UnaryKind::LeakyRelu { alpha: 0.25 });
        let told = attributes(&leaky).unwrap();
        assert_eq!(told.text("value"), Some("LeakyRelu"));
        assert_eq!(told.get("value.alpha"), Some(&Attribute::Float(0.25)));
    }

    #[test]
    fn a_tensor_is_told_with_its_elements() {
        let value = Tensor::scalar((1i64 << 53) + 1).unwrap();
        let fill = ConstantOfShape {
            value: value.clone(),
        };
        let told = attributes(&fill).unwrap();
        assert_eq!(told.get("value"), Some(&Attribute::Tensor(value)));
    }

    #[test]
    fn a_tensor_reaches_the_library() {
        let fill = ConstantOfShape {
            value: Tensor::from_slice(&[1], &[(1i64 << 53) + 1]).unwrap(),
        };
        let mut arena = Arena::default();
        let node = arena.node("fill", &fill, &[], &[]).unwrap();
        assert_eq!(node.attribute_count, 1);
        // SAFETY: the node has one attribute, which points into the arena.
        let attribute = unsafe { &*node.attributes };
        assert_eq!((attribute.kind, attribute.count), (abi::TENSORS, 1));
        // SAFETY: an attribute of this kind points to as many tensors as it counts, in the arena.
        let tensor = unsafe { &*attribute.values.cast::<abi::Tensor>() };
        assert_eq!((tensor.dtype, tensor.rank, tensor.bytes), (7, 1, 8));
        // SAFETY: a tensor of rank 1 has one size, and this one eight bytes, both kept by the arena.
        let (size, element) = unsafe { (*tensor.shape, *tensor.data.cast::<[u8; 8]>()) };
        assert_eq!(size, 1);
        assert_eq!(i64::from_le_bytes(element), (1 << 53) + 1);
    }

    #[test]
    fn attributes_of_a_custom_operator_are_as_the_file_has_them() {
        let definition = CustomOperator::new("com.example", "Same", |_, _| Ok(Vec::new()));
        let mut own = Attributes::default();
        own.set("scale", Attribute::Floats(Vec::new()));
        let told = attributes(&Custom::new(Arc::new(definition), own.clone())).unwrap();
        assert_eq!(told, own);
    }

    #[test]
    fn what_has_no_form_is_refused() {
        let body = Arc::new(Graph::new("body"));
        let choice = If {
            then_body: body.clone(),
            else_body: body,
        };
        let split = StringSplit {
            delimiter: "a\0b".to_string(),
            most: None,
        };
        let whole: [(&dyn Operator, &str); 2] = [(&choice, "then_body"), (&split, "delimiter")];
        for (operator, field) in whole {
            let reason = attributes(operator).unwrap_err().reason;
            assert!(reason.contains(operator.name()), "{reason}");
            assert!(reason.contains(field), "{reason}");
        }
    }
}

//! Tensors and nodes in the form of the C interface, with what its pointers point to.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};

use kilim_core::backend::{NodeSpec, Refusal, TensorSpec};
use kilim_core::ops::{Attribute, Custom};
use kilim_core::{DType, Operator, Tensor};
use kilim_plugin_abi as abi;

use crate::attributes::attributes;

/// Element types by their numbers in the interface.
const DTYPES: [(DType, i32); 13] = [
    (DType::F32, 1),
    (DType::U8, 2),
    (DType::I8, 3),
    (DType::U16, 4),
    (DType::I16, 5),
    (DType::I32, 6),
    (DType::I64, 7),
    (DType::Bool, 9),
    (DType::F16, 10),
    (DType::F64, 11),
    (DType::U32, 12),
    (DType::U64, 13),
    (DType::BF16, 16),
];

/// The element type that ONNX gives this number.
pub fn dtype(number: i32) -> Option<DType> {
    DTYPES.iter().find(|(_, n)| *n == number).map(|(d, _)| *d)
}

/// # Errors
/// A type that the interface does not have.
pub fn number(dtype: DType) -> Result<i32, Refusal> {
    let found = DTYPES.iter().find(|(d, _)| *d == dtype);
    found
        .map(|(_, n)| *n)
        .ok_or_else(|| Refusal::new(format!("plug-ins do not know the element type {dtype}")))
}

/// A C string; zeros inside, which names may have, become spaces.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// What is told of a tensor: sizes may be unknown.
pub struct TensorView<'a> {
    pub name: &'a str,
    pub dtype: DType,
    /// `None` where the rank is unknown, -1 for an unknown size.
    pub shape: Option<Vec<i64>>,
    pub value: Option<&'a Tensor>,
    pub bytes: usize,
}

impl<'a> TensorView<'a> {
    /// What the library is told of a tensor.
    pub fn of(spec: &'a TensorSpec) -> TensorView<'a> {
        TensorView {
            name: &spec.name,
            dtype: spec.dtype,
            shape: Some(spec.shape.iter().map(|&d| d as i64).collect()),
            value: spec.value.as_ref(),
            bytes: spec.bytes(),
        }
    }

    /// What is told of the tensor, under another name.
    pub fn named(self, name: &'a str) -> TensorView<'a> {
        TensorView { name, ..self }
    }
}

/// Memory that pointers of the interface lead to. Boxes do not move when the lists grow.
#[derive(Default)]
pub struct Arena {
    texts: Vec<CString>,
    shapes: Vec<Box<[i64]>>,
    ints: Vec<Box<[i64]>>,
    floats: Vec<Box<[f64]>>,
    bytes: Vec<Box<[u8]>>,
    pointers: Vec<Box<[*const c_char]>>,
    #[expect(clippy::vec_box, reason = "they are pointed to")]
    tensors: Vec<Box<abi::Tensor>>,
    tensor_lists: Vec<Box<[*const abi::Tensor]>>,
    attributes: Vec<Box<[abi::Attribute]>>,
    /// Tensors of attributes, whose bytes are pointed to.
    values: Vec<Tensor>,
}

impl Arena {
    fn text(&mut self, text: &str) -> *const c_char {
        self.texts.push(c_text(text));
        self.texts.last().map_or(std::ptr::null(), |t| t.as_ptr())
    }

    /// A tensor whose pointers live as long as the arena; refused where its type has no number.
    pub fn tensor(&mut self, view: &TensorView) -> Result<abi::Tensor, Refusal> {
        let shape: Box<[i64]> = view.shape.clone().unwrap_or_default().into();
        let tensor = abi::Tensor {
            name: self.text(view.name),
            dtype: number(view.dtype)?,
            rank: view.shape.as_ref().map_or(-1, |s| s.len() as i32),
            shape: shape.as_ptr(),
            data: match view.value.map(Tensor::read) {
                None => std::ptr::null(),
                Some(Ok(bytes)) => bytes.as_ptr().cast(),
                Some(Err(e)) => return Err(Refusal::new(e.message())),
            },
            bytes: view.bytes,
        };
        self.shapes.push(shape);
        Ok(tensor)
    }

    fn tensors(
        &mut self,
        views: &[Option<TensorView>],
    ) -> Result<*const *const abi::Tensor, Refusal> {
        let mut list = Vec::with_capacity(views.len());
        for view in views {
            list.push(match view {
                Some(view) => {
                    let tensor = Box::new(self.tensor(view)?);
                    let pointer: *const abi::Tensor = &raw const *tensor;
                    self.tensors.push(tensor);
                    pointer
                }
                None => std::ptr::null(),
            });
        }
        let list: Box<[_]> = list.into();
        let pointer = list.as_ptr();
        self.tensor_lists.push(list);
        Ok(pointer)
    }

    fn attribute(&mut self, name: &str, value: &Attribute) -> Result<abi::Attribute, Refusal> {
        let (kind, count, values) = match value {
            Attribute::Int(n) => self.int_list(&[*n]),
            Attribute::Ints(list) => self.int_list(list),
            Attribute::Float(x) => self.float_list(&[*x]),
            Attribute::Floats(list) => self.float_list(list),
            Attribute::Text(text) => self.text_list(std::slice::from_ref(text)),
            Attribute::Texts(list) => self.text_list(list),
            Attribute::Bytes(list) => {
                let list: Box<[u8]> = list.as_slice().into();
                let pointer = list.as_ptr();
                self.bytes.push(list);
                (
                    abi::BYTES,
                    self.bytes.last().map_or(0, |b| b.len()),
                    pointer.cast(),
                )
            }
            Attribute::Tensor(value) => {
                let spec = TensorSpec::of(value);
                let tensor = Box::new(self.tensor(&TensorView::of(&spec).named(name))?);
                let pointer: *const abi::Tensor = &raw const *tensor;
                self.tensors.push(tensor);
                self.values.push(value.clone());
                (abi::TENSORS, 1, pointer.cast())
            }
        };
        Ok(abi::Attribute {
            name: self.text(name),
            kind,
            count,
            values,
        })
    }

    fn int_list(&mut self, list: &[i64]) -> (i32, usize, *const std::ffi::c_void) {
        let list: Box<[i64]> = list.into();
        let found = (abi::INTS, list.len(), list.as_ptr().cast());
        self.ints.push(list);
        found
    }

    fn float_list(&mut self, list: &[f64]) -> (i32, usize, *const std::ffi::c_void) {
        let list: Box<[f64]> = list.into();
        let found = (abi::FLOATS, list.len(), list.as_ptr().cast());
        self.floats.push(list);
        found
    }

    fn text_list(&mut self, list: &[String]) -> (i32, usize, *const std::ffi::c_void) {
        let list: Box<[_]> = list.iter().map(|t| self.text(t)).collect();
        let found = (abi::TEXTS, list.len(), list.as_ptr().cast());
        self.pointers.push(list);
        found
    }

    /// A node as backends are asked about it; it points into this arena.
    ///
    /// # Errors
    /// An element type that the interface does not have.
    pub fn asked(&mut self, node: &NodeSpec) -> Result<abi::Node, Refusal> {
        let inputs = node.inputs.iter().map(|s| s.as_ref().map(TensorView::of));
        let inputs: Vec<_> = inputs.collect();
        let outputs = node.outputs.iter().map(|s| Some(TensorView::of(s)));
        let outputs: Vec<_> = outputs.collect();
        self.node(node.name, node.op, &inputs, &outputs)
    }

    /// A node; it points into this arena.
    ///
    /// # Errors
    /// An element type that the interface does not have.
    pub fn node(
        &mut self,
        name: &str,
        op: &dyn Operator,
        inputs: &[Option<TensorView>],
        outputs: &[Option<TensorView>],
    ) -> Result<abi::Node, Refusal> {
        let domain = match op.downcast_ref::<Custom>() {
            Some(custom) => custom.operator().domain().to_string(),
            None => String::new(),
        };
        self.custom_node(
            name,
            &domain,
            op.name(),
            &attributes(op)?.0,
            inputs,
            outputs,
        )
    }

    /// A node by domain, name and attributes of its operator, also for operators that core does not have; it
    /// points into this arena.
    ///
    /// # Errors
    /// An element type that the interface does not have.
    pub fn custom_node(
        &mut self,
        name: &str,
        domain: &str,
        op: &str,
        attributes: &BTreeMap<String, Attribute>,
        inputs: &[Option<TensorView>],
        outputs: &[Option<TensorView>],
    ) -> Result<abi::Node, Refusal> {
        let list = attributes
            .iter()
            .map(|(name, value)| self.attribute(name, value));
        let list: Box<[abi::Attribute]> = list.collect::<Result<Vec<_>, _>>()?.into();
        let node = abi::Node {
            name: self.text(name),
            domain: self.text(domain),
            op: self.text(op),
            attribute_count: list.len(),
            attributes: list.as_ptr(),
            input_count: inputs.len(),
            inputs: self.tensors(inputs)?,
            output_count: outputs.len(),
            outputs: self.tensors(outputs)?,
        };
        self.attributes.push(list);
        Ok(node)
    }
}

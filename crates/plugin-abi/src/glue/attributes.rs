//! Attributes of new nodes in the form of the interface.

use std::ffi::{CString, c_char, c_void};

use super::c_text;
use crate as abi;
use crate::guest::NewValues;

/// Attributes that point into the values that they were made of, and into what stands beside them here.
pub struct Encoded {
    pub list: Vec<abi::Attribute>,
    _names: Vec<CString>,
    _texts: Vec<Vec<CString>>,
    _starts: Vec<Vec<*const c_char>>,
    _tensors: Vec<Option<abi::Tensor>>,
}

impl Encoded {
    /// `attributes` have to outlive what is made of them.
    pub fn new(attributes: &[(String, NewValues)]) -> Encoded {
        let names: Vec<CString> = attributes.iter().map(|(name, _)| c_text(name)).collect();
        let texts = attributes.iter().map(|(_, values)| match values {
            NewValues::Texts(texts) => texts.iter().map(|t| c_text(t)).collect(),
            _ => Vec::new(),
        });
        let texts: Vec<Vec<CString>> = texts.collect();
        let starts = texts
            .iter()
            .map(|list| list.iter().map(|t| t.as_ptr()).collect());
        let starts: Vec<Vec<*const c_char>> = starts.collect();
        let tensors = attributes.iter().map(|(_, values)| match values {
            NewValues::Tensor(tensor) => Some(abi::Tensor {
                name: std::ptr::null(),
                dtype: tensor.dtype,
                rank: i32::try_from(tensor.shape.len()).unwrap_or(i32::MAX),
                shape: tensor.shape.as_ptr(),
                data: tensor.data.as_ptr().cast(),
                bytes: tensor.data.len(),
            }),
            _ => None,
        });
        let tensors: Vec<Option<abi::Tensor>> = tensors.collect();
        let list = attributes.iter().enumerate().map(|(i, (_, values))| {
            let (kind, count, values): (i32, usize, *const c_void) = match values {
                NewValues::Ints(list) => (abi::INTS, list.len(), list.as_ptr().cast()),
                NewValues::Floats(list) => (abi::FLOATS, list.len(), list.as_ptr().cast()),
                NewValues::Bytes(list) => (abi::BYTES, list.len(), list.as_ptr().cast()),
                NewValues::Texts(list) => (abi::TEXTS, list.len(), starts[i].as_ptr().cast()),
                NewValues::Tensor(_) => {
                    let tensor = tensors[i]
                        .as_ref()
                        .map_or(std::ptr::null(), std::ptr::from_ref);
                    (abi::TENSORS, 1, tensor.cast())
                }
            };
            abi::Attribute {
                name: names[i].as_ptr(),
                kind,
                count,
                values,
            }
        });
        Encoded {
            list: list.collect(),
            _names: names,
            _texts: texts,
            _starts: starts,
            _tensors: tensors,
        }
    }
}

//! Tensors of a file.

use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};
use kilim_core::tensor::Tensor;
use kilim_formats::onnx::type_number;

use crate::proto::Message;

/// Where the elements of a tensor are in the file beside the model.
pub struct Place<'a> {
    pub file: &'a str,
    pub offset: u64,
    pub bytes: u64,
}

/// The number that ONNX has for an element type.
pub fn number(dtype: DType) -> Result<i64> {
    type_number(dtype).ok_or_else(|| unsupported(format!("tensors of {dtype} in ONNX")))
}

/// The operator set that a file with tensors of this type needs (the versions of ONNX's operator Constant).
pub fn needed(dtype: DType) -> i64 {
    match dtype {
        DType::F8E4M3FN | DType::F8E4M3FNUZ | DType::F8E5M2 | DType::F8E5M2FNUZ => 19,
        DType::I4 | DType::U4 => 21,
        DType::F4E2M1 => 23,
        DType::F8E8M0 => 24,
        DType::I2 | DType::U2 => 25,
        _ => 0,
    }
}

/// A `TensorProto`.
///
/// # Errors
/// `Unsupported` for element types that ONNX does not have.
pub fn message(name: &str, tensor: &Tensor, place: Option<Place>) -> Result<Message> {
    let mut message = Message::default();
    for &dim in tensor.shape() {
        message.int(1, dim as i64);
    }
    message.int(2, number(tensor.dtype())?);
    message.text(8, name);
    if let Ok(texts) = tensor.texts() {
        for text in texts {
            message.bytes(6, text.as_bytes());
        }
        return Ok(message);
    }
    let Some(place) = place else {
        message.elements(9, tensor)?;
        return Ok(message);
    };
    let entries = [
        ("location", place.file.to_string()),
        ("offset", place.offset.to_string()),
        ("length", place.bytes.to_string()),
    ];
    for (key, value) in entries {
        let mut entry = Message::default();
        entry.text(1, key);
        entry.text(2, &value);
        message.message(13, entry);
    }
    message.int(14, 1);
    Ok(message)
}

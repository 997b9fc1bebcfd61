//! What the file says of a tensor.

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::ops::check_rank;

use super::Dialect;
use crate::flatbuffer::Table;

pub struct TensorInfo {
    pub name: String,
    /// The number of the element type in the schema.
    pub kind: i8,
    /// The shape for which the file was converted, often with a batch of one.
    pub shape: Vec<usize>,
    /// True for each dimension that may change.
    pub dynamic: Vec<bool>,
    pub buffer: usize,
    pub variable: bool,
    pub sparse: bool,
    /// True where the buffer holds Huffman's code of the elements.
    pub compressed: bool,
    pub quantization: Option<Quantization>,
}

/// `real = scale * (stored - zero_point)`, per tensor or per slice of `axis`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    pub scale: Vec<f32>,
    pub zero_point: Vec<i64>,
    pub axis: usize,
}

impl TensorInfo {
    pub(super) fn read(dialect: Dialect, table: &Table) -> Result<TensorInfo> {
        let name = table.string(3)?;
        let given = table.i32s(0)?;
        check_rank(given.len()).map_err(|e| e.with_input(&name))?;
        let signature = table.i32s(7)?;
        let dynamic = if signature.len() == given.len() {
            signature.iter().map(|&d| d < 0).collect()
        } else {
            given.iter().map(|&d| d < 0).collect()
        };
        // A negative number marks a dimension that is not known; one stands for it here.
        let shape = given
            .iter()
            .map(|&d| usize::try_from(d).unwrap_or(1))
            .collect();
        let quantization = match table.table(4)? {
            Some(q) => Some(Quantization {
                scale: q.f32s(2)?,
                zero_point: q.i64s(3)?,
                axis: usize::try_from(q.i32(6)?).unwrap_or(usize::MAX),
            })
            .filter(|q| !q.scale.is_empty()),
            None => None,
        };
        Ok(TensorInfo {
            kind: table.i8(1)?,
            buffer: table.u32(2)? as usize,
            variable: table.bool(5)?,
            sparse: table.table(6)?.is_some(),
            compressed: dialect == Dialect::Circle && table.i8(10)? != 0,
            name,
            shape,
            dynamic,
            quantization,
        })
    }

    /// The element type; `Unsupported` for strings, complex numbers, resources, 4-bit integers and Circle's blocks of packed numbers.
    pub fn dtype(&self) -> Result<DType> {
        const NAMES: [(i8, &str); 13] = [
            (-7, "MXINT8"),
            (-6, "MXFP4"),
            (-5, "GGML_Q8_1"),
            (-4, "GGML_Q8_0"),
            (-3, "GGML_Q4_1"),
            (-2, "GGML_Q4_0"),
            (-1, "uint4"),
            (5, "string"),
            (8, "complex64"),
            (11, "complex128"),
            (13, "resource"),
            (14, "variant"),
            (17, "int4"),
        ];
        Ok(match self.kind {
            0 => DType::F32,
            1 => DType::F16,
            2 => DType::I32,
            3 => DType::U8,
            4 => DType::I64,
            6 => DType::Bool,
            7 => DType::I16,
            9 => DType::I8,
            10 => DType::F64,
            12 => DType::U64,
            15 => DType::U32,
            16 => DType::U16,
            18 => DType::BF16,
            kind => {
                let name = NAMES.iter().find(|(k, _)| *k == kind);
                let code = if name.is_some() {
                    ErrorCode::Unsupported
                } else {
                    ErrorCode::InvalidModel
                };
                let name = name.map_or_else(|| format!("number {kind}"), |(_, n)| n.to_string());
                return Err(Error::new(code, format!("element type {name}")).with_input(&self.name));
            }
        })
    }

    /// True for complex numbers of two `float32`.
    pub fn is_complex(&self) -> bool {
        self.kind == 8
    }

    /// True where the elements stand for other numbers than they say.
    pub fn is_quantized(&self) -> bool {
        // int8, uint8, int16, int4, and the int32 of quantised biases.
        self.quantization.is_some() && matches!(self.kind, 2 | 3 | 7 | 9 | 17)
    }
}

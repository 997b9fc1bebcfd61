//! The tables of the TFLite schema that an importer needs, by slot number
//! (`schema.fbs` of TensorFlow, version 3c).

use std::cell::Cell;

use kilim_core::dtype::DType;
use kilim_core::error::{Error, ErrorCode, Result};
use kilim_core::ops::check_rank;
use kilim_core::tensor::Tensor;

use crate::flatbuffer::{FlatBuffer, Table};
use kilim_core::{Interrupt, Limits};

use crate::ModelFile;
use crate::source::NODES_PER_CHECK;

/// A model file, read but for the data of its buffers.
pub struct Model<'a> {
    source: &'a ModelFile<'a>,
    codes: Vec<OperatorCode>,
    buffers: Vec<Buffer>,
    pub subgraphs: Vec<Subgraph<'a>>,
    /// How many more bodies may be imported.
    bodies: Cell<usize>,
    /// Nodes that were imported.
    nodes: Cell<usize>,
    limits: &'a Limits,
    pub interrupt: &'a Interrupt,
}

/// Bodies at most, counted each time they are used: subgraphs may name each other in circles.
const MOST_BODIES: usize = 256;

pub struct OperatorCode {
    pub builtin: i32,
    /// The name of a custom operator.
    pub custom: String,
}

/// Where a buffer lies in the file.
struct Buffer {
    position: usize,
    len: usize,
}

pub struct Subgraph<'a> {
    pub name: String,
    pub tensors: Vec<TensorInfo>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub operators: Vec<OperatorInfo<'a>>,
}

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
    pub quantization: Option<Quantization>,
}

/// `real = scale * (stored - zero_point)`, per tensor or per slice of `axis`.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    pub scale: Vec<f32>,
    pub zero_point: Vec<i64>,
    pub axis: usize,
}

pub struct OperatorInfo<'a> {
    pub code: usize,
    /// `None` where an optional input is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    /// Tensors that only say how intermediate results are quantised.
    pub intermediates: Vec<usize>,
    pub options: Option<Table<'a>>,
    /// What a custom operator is given, in a form of its own.
    pub custom_options: &'a [u8],
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidModel, message)
}

fn indices(numbers: &[i32], count: usize, what: &str) -> Result<Vec<usize>> {
    numbers
        .iter()
        .map(|&n| {
            usize::try_from(n)
                .ok()
                .filter(|&i| i < count)
                .ok_or_else(|| invalid(format!("{what} names tensor {n} of {count}")))
        })
        .collect()
}

impl<'a> Model<'a> {
    /// Reads the tables of `file`, which is that of `source`. Of `limits`, the nodes count, each time
    /// that their subgraph is used.
    pub fn read(
        file: &'a FlatBuffer<'a>,
        source: &'a ModelFile<'a>,
        limits: &'a Limits,
    ) -> Result<Model<'a>> {
        let model = file.root()?;
        let codes = model
            .tables(1)?
            .iter()
            .map(|t| {
                // Operators from 127 on stand in the wider field; older files have only the first.
                Ok(OperatorCode {
                    builtin: t.i32(3)?.max(i32::from(t.i8(0)?)),
                    custom: t.string(1)?,
                })
            })
            .collect::<Result<_>>()?;
        let buffers = model
            .tables(4)?
            .iter()
            .map(|t| {
                let (offset, size) = (t.u64(1)?, t.u64(2)?);
                if offset > 1 {
                    return Ok(Buffer {
                        position: usize::try_from(offset).unwrap_or(usize::MAX),
                        len: usize::try_from(size).unwrap_or(usize::MAX),
                    });
                }
                let data = t.vector(0, 1)?;
                Ok(Buffer {
                    position: data.position,
                    len: data.len,
                })
            })
            .collect::<Result<_>>()?;
        let subgraphs = model
            .tables(2)?
            .iter()
            .map(Subgraph::read)
            .collect::<Result<_>>()?;
        Ok(Model {
            source,
            codes,
            buffers,
            subgraphs,
            bodies: Cell::new(MOST_BODIES),
            nodes: Cell::new(0),
            limits,
            interrupt: &source.interrupt,
        })
    }

    /// Counts a node; `Limit` where there are too many.
    pub fn count_node(&self) -> Result<()> {
        let nodes = self.nodes.get() + 1;
        self.nodes.set(nodes);
        self.limits.check_nodes(nodes)?;
        match nodes.is_multiple_of(NODES_PER_CHECK) {
            true => self.interrupt.check(),
            false => Ok(()),
        }
    }

    /// Subgraph `index`, for a body of control flow.
    pub fn body(&self, index: i32) -> Result<&Subgraph<'a>> {
        let left = self.bodies.get().checked_sub(1);
        self.bodies.set(left.ok_or_else(|| {
            Error::new(ErrorCode::Limit, "too many bodies of control flow")
                .with_expected(MOST_BODIES)
        })?);
        usize::try_from(index)
            .ok()
            .filter(|&i| i > 0)
            .and_then(|i| self.subgraphs.get(i))
            .ok_or_else(|| invalid(format!("subgraph {index} is no body")))
    }

    /// The operator code of an index; `InvalidModel` where there is none.
    pub fn code(&self, index: usize) -> Result<&OperatorCode> {
        self.codes
            .get(index)
            .ok_or_else(|| invalid(format!("operator code {index} is not in the file")))
    }

    /// True where the file holds data for the tensor.
    pub fn has_data(&self, tensor: &TensorInfo) -> bool {
        self.buffers.get(tensor.buffer).is_some_and(|b| b.len > 0)
    }

    /// The data of a constant, shared with the file; `None` where the file has none.
    pub fn constant(&self, tensor: &TensorInfo) -> Result<Option<Tensor>> {
        let Some(buffer) = self.buffers.get(tensor.buffer).filter(|b| b.len > 0) else {
            return Ok(None);
        };
        let dtype = tensor.dtype()?;
        let part = self.source.part(buffer.position, buffer.len);
        let bytes = part.map_err(|e| e.with_input(&tensor.name))?;
        let data = bytes.bytes_as(dtype, &tensor.shape);
        data.map(Some)
            .map_err(|e| invalid(e.message()).with_input(&tensor.name))
    }
}

impl<'a> Subgraph<'a> {
    fn read(table: &Table<'a>) -> Result<Subgraph<'a>> {
        let tensors: Vec<TensorInfo> = table
            .tables(0)?
            .iter()
            .map(TensorInfo::read)
            .collect::<Result<_>>()?;
        let count = tensors.len();
        let operators = table
            .tables(3)?
            .iter()
            .map(|t| OperatorInfo::read(t, count))
            .collect::<Result<_>>()?;
        Ok(Subgraph {
            name: table.string(4)?,
            inputs: indices(&table.i32s(1)?, count, "the inputs")?,
            outputs: indices(&table.i32s(2)?, count, "the outputs")?,
            tensors,
            operators,
        })
    }
}

impl TensorInfo {
    fn read(table: &Table) -> Result<TensorInfo> {
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
            name,
            shape,
            dynamic,
            quantization,
        })
    }

    /// The element type; `Unsupported` for strings, complex numbers, resources and 4-bit integers.
    pub fn dtype(&self) -> Result<DType> {
        const NAMES: [(i8, &str); 6] = [
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

impl<'a> OperatorInfo<'a> {
    fn read(table: &Table<'a>, tensors: usize) -> Result<OperatorInfo<'a>> {
        let inputs = table
            .i32s(1)?
            .iter()
            .map(|&n| match n {
                -1 => Ok(None),
                n => indices(&[n], tensors, "an operator").map(|v| v.first().copied()),
            })
            .collect::<Result<_>>()?;
        // Slot 3 is the kind of the options; the operator code says the same.
        Ok(OperatorInfo {
            code: table.u32(0)? as usize,
            inputs,
            outputs: indices(&table.i32s(2)?, tensors, "an operator")?,
            intermediates: indices(&table.i32s(8)?, tensors, "an operator")?,
            options: table.table(4)?,
            custom_options: table.vector(5, 1)?.bytes()?,
        })
    }
}

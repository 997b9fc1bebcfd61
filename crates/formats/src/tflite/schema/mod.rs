//! The tables of the TFLite schema that an importer needs, by slot number
//! (`schema.fbs` of TensorFlow, version 3c), and where Circle's differ (`circle_schema.fbs` of Samsung's ONE, version 0.10).

mod metadata;
mod tensor;

use std::cell::Cell;

use kilim_core::error::{Error, ErrorCode, Result, unsupported};
use kilim_core::tensor::Tensor;

use crate::flatbuffer::{FlatBuffer, Found, Table};
use kilim_core::{Interrupt, Limits, Metadata};

use crate::ModelFile;
use crate::source::NODES_PER_CHECK;

pub use tensor::{Quantization, TensorInfo};

/// The formats of this schema. A slot that one of them added may mean something else in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    TfLite,
    Circle,
}

impl Dialect {
    /// What stands at the bytes 4 to 8 of a file.
    pub fn identifier(self) -> &'static str {
        match self {
            Dialect::TfLite => "TFL3",
            Dialect::Circle => "CIR0",
        }
    }
}

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
    pub metadata: Metadata,
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
    position: u64,
    len: usize,
}

impl Buffer {
    fn read(table: &Table) -> Result<Buffer> {
        // Behind the FlatBuffer, where all of it has more than 2 GB.
        let (offset, size) = (table.u64(1)?, table.u64(2)?);
        if offset > 1 {
            return Ok(Buffer {
                position: offset,
                len: usize::try_from(size).unwrap_or(usize::MAX),
            });
        }
        let data = table.vector(0, 1)?;
        Ok(Buffer {
            position: data.position as u64,
            len: data.len,
        })
    }
}

/// The slot of the buffers in a model.
const BUFFERS: usize = 4;

/// Finds the data of buffers, from the root table on.
///
/// # Errors
/// `InvalidModel` where the file is garbled.
pub fn find_data(model: &Table, found: &mut Found) -> Result<()> {
    model.each_table(BUFFERS, |table| {
        let buffer = Buffer::read(table)?;
        found.add(buffer.position, buffer.len as u64);
        Ok(())
    })
}

pub struct Subgraph<'a> {
    pub name: String,
    pub tensors: Vec<TensorInfo>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    pub operators: Vec<OperatorInfo<'a>>,
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
        dialect: Dialect,
        file: &'a FlatBuffer<'a>,
        source: &'a ModelFile<'a>,
        limits: &'a Limits,
    ) -> Result<Model<'a>> {
        let model = file.root()?;
        let codes = model
            .tables(1)?
            .iter()
            .map(|t| {
                // Operators from 127 on stand in the wider field; older files have only the first. Circle's own are negative.
                let (narrow, wide) = (i32::from(t.i8(0)?), t.i32(3)?);
                Ok(OperatorCode {
                    builtin: if narrow < 0 { narrow } else { wide.max(narrow) },
                    custom: t.string(1)?,
                })
            })
            .collect::<Result<_>>()?;
        let tables = model.tables(BUFFERS)?;
        let buffers = tables.iter().map(Buffer::read).collect::<Result<_>>()?;
        let subgraphs = model
            .tables(2)?
            .iter()
            .map(|t| Subgraph::read(dialect, t))
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
            metadata: metadata::read(&model, &tables)?,
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
        if tensor.compressed {
            return Err(unsupported("weights in Huffman's code").with_input(&tensor.name));
        }
        let dtype = tensor.dtype()?;
        let part = self.source.part(buffer.position, buffer.len);
        let bytes = part.map_err(|e| e.with_input(&tensor.name))?;
        let data = bytes.bytes_as(dtype, &tensor.shape);
        data.map(Some)
            .map_err(|e| invalid(e.message()).with_input(&tensor.name))
    }
}

impl<'a> Subgraph<'a> {
    fn read(dialect: Dialect, table: &Table<'a>) -> Result<Subgraph<'a>> {
        // `DataFormat` of files before version 0.7 of the schema; 0 is channels last.
        if dialect == Dialect::Circle && table.i8(5)? != 0 {
            return Err(unsupported("a Circle graph whose channels stand first"));
        }
        let tensors: Vec<TensorInfo> = table
            .tables(0)?
            .iter()
            .map(|t| TensorInfo::read(dialect, t))
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

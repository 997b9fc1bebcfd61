//! A network as a file describes it (`serializer/tmfile/tm2_format.h`): a header, the model, its first graph, and the nodes, tensors and
//! buffers of that.
//!
//! Structures of version 1 are read as those of version 2.

use kilim_core::Limits;
use kilim_core::dtype::DType;
use kilim_core::error::{Result, unsupported};

use super::file::{File, Table, Word};
use super::{first, invalid, ops};

/// Bytes of the header: three versions, and where the model lies.
const HEADER: usize = 12;

/// The number of the type of constants (`TENSOR_TYPE_CONST` in `api/c_api.h`).
const CONSTANT: i64 = 2;

/// The versions that can be read.
#[derive(Clone, Copy, PartialEq)]
pub enum Version {
    /// Numbered 0.1 (`TM_FILE_VER_MAIN` and `TM_FILE_VER_SUB` in `tm1_format.h`).
    First,
    /// Numbered 2.0 (`TM2_FILE_VER_MAIN` in `tm2_format.h`).
    Second,
}

impl Version {
    /// The version by the main and the lesser number in a header.
    pub fn of(main: u16, sub: u16) -> Option<Version> {
        match (main, sub) {
            (0, 1) => Some(Version::First),
            (2, 0) => Some(Version::Second),
            _ => None,
        }
    }

    /// A structure that stands in another order in the first version.
    fn table<'a>(self, file: File<'a>, at: u32, first: &'static [Word]) -> Table<'a> {
        match self {
            Version::First => file.table(at).read_as(first),
            Version::Second => file.table(at),
        }
    }
}

/// A tensor.
pub struct TensorInfo {
    pub name: String,
    /// Empty where the program that runs the network gives them.
    pub dims: Vec<i64>,
    /// The number of the element type.
    pub element: i64,
    /// Where the bytes of a constant lie, and how many there are. None are there of a network that is only a structure.
    pub data: Option<(usize, usize)>,
    pub is_constant: bool,
    pub is_quantised: bool,
}

/// A node. Tensors are numbered.
pub struct NodeInfo<'a> {
    pub name: String,
    pub operator: u32,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
    /// The operator's parameters; `None` where it has none.
    pub params: Option<Table<'a>>,
}

/// A whole network.
pub struct Network<'a> {
    pub tensors: Vec<TensorInfo>,
    pub nodes: Vec<NodeInfo<'a>>,
    /// The numbers of the nodes whose outputs are those of the network.
    pub outputs: Vec<usize>,
}

/// The element type of a tensor.
///
/// # Errors
/// `Unsupported` where the number stands for none.
pub fn element_type(number: i64) -> Result<DType> {
    Ok(match number {
        0 => DType::F32,
        1 => DType::F16,
        2 => DType::I8,
        3 => DType::U8,
        4 => DType::I32,
        5 => DType::I16,
        other => return Err(unsupported(format!("element type number {other}"))),
    })
}

/// The version that a file says it has: the main and the lesser number.
pub fn version(bytes: &[u8]) -> Option<(u16, u16)> {
    let &[a, b, c, d] = bytes.first_chunk()?;
    Some((u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
}

/// Whether a file begins like a network: its version, and where the model lies. Files have no other mark, so that one of another version is
/// known by its name alone.
pub fn probe(bytes: &[u8], name: &str) -> bool {
    let Some(&[a, b, c, d, e, f, _, _, g, h, i, j]) = bytes.first_chunk::<HEADER>() else {
        return false;
    };
    let [main, sub, build] = [[a, b], [c, d], [e, f]].map(u16::from_le_bytes);
    let root = u32::from_le_bytes([g, h, i, j]) as usize;
    let path = name.split(['?', '#']).next().unwrap_or_default();
    let is_named = path.to_ascii_lowercase().ends_with(".tmfile");
    match Version::of(main, sub) {
        Some(version) if build == 0 => {
            root >= HEADER
                && root.is_multiple_of(4)
                && (is_named || has_model(bytes, version, root))
        }
        _ => is_named && (main, sub) != (0, 0),
    }
}

/// Whether a model with one graph, whose tensors lie in the file, stands at `root`. Larger files are only seen in part, and are
/// believed where the header can be no other.
fn has_model(bytes: &[u8], version: Version, root: usize) -> bool {
    let file = File(bytes);
    if root >= bytes.len() {
        return version == Version::Second && bytes.len() >= 1 << 16 && root < 1 << 31;
    }
    let graph = || -> Result<bool> {
        let model = version.table(file, root as u32, &first::MODEL);
        let graphs = file.list(model.word(2)?)?;
        let Some(&graph) = graphs.first() else {
            return Ok(false);
        };
        let graph = version.table(file, graph, &first::GRAPH);
        Ok(matches!((graph.word(1)?, graph.word(2)?), (0 | 1, 0 | 1))
            && !file.list(graph.word(5)?)?.is_empty())
    };
    graph().unwrap_or(false)
}

/// Reads a network.
///
/// # Errors
/// `InvalidModel` where the file is garbled, `Unsupported` for several graphs and for channels that lie last, `Limit` where it has too
/// many nodes.
pub fn read<'a>(bytes: &'a [u8], version: Version, limits: &Limits) -> Result<Network<'a>> {
    let file = File(bytes);
    let model = version.table(file, file.table(0).word(2)?, &first::MODEL);
    let graphs = file.list(model.word(2)?)?;
    let &[graph] = &graphs[..] else {
        return Err(match graphs.len() {
            0 => invalid("the model has no graph"),
            count => unsupported(format!("a model of {count} graphs")),
        });
    };
    let graph = version.table(file, graph, &first::GRAPH);
    if (graph.int(1)?, graph.int(2)?) != (0, 0) {
        return Err(unsupported("a network whose channels lie last")
            .with_hint("convert the original model from ONNX or Caffe"));
    }
    let nodes = file.list(graph.word(5)?)?;
    let (tensors, buffers) = (file.list(graph.word(6)?)?, file.list(graph.word(7)?)?);
    limits.check_nodes(nodes.len().max(tensors.len()))?;
    let tensors = tensors.iter().map(|&at| {
        let table = version.table(file, at, &first::TENSOR);
        tensor(file, table, &buffers)
    });
    let tensors: Vec<TensorInfo> = tensors.collect::<Result<_>>()?;
    let nodes = nodes
        .iter()
        .map(|&at| node(file, version, at, tensors.len()));
    let nodes: Vec<NodeInfo> = nodes.collect::<Result<_>>()?;
    let outputs = numbers(file, graph.word(4)?, nodes.len())?;
    if outputs.is_empty() {
        return Err(invalid("the network has no outputs"));
    }
    Ok(Network {
        tensors,
        nodes,
        outputs,
    })
}

/// A list of numbers below `count`.
fn numbers(file: File, at: u32, count: usize) -> Result<Vec<usize>> {
    let numbers = file.list(at)?.into_iter().map(|n| n as usize);
    let numbers = numbers.map(|n| match n < count {
        true => Ok(n),
        false => Err(invalid("a number is none of a node or tensor").with_got(n)),
    });
    numbers.collect()
}

fn tensor(file: File, table: Table, buffers: &[u32]) -> Result<TensorInfo> {
    let is_constant = table.int(6)? == CONSTANT;
    let mut data = None;
    if is_constant {
        let number = table.word(1)?;
        let buffer = buffers.get(number as usize);
        let buffer = *buffer.ok_or_else(|| invalid("a constant has no buffer").with_got(number))?;
        let buffer = file.table(buffer);
        let (size, offset) = (buffer.word(0)? as usize, buffer.word(1)? as usize);
        data = (offset != 0).then_some((offset, size));
    }
    Ok(TensorInfo {
        name: file.text(table.word(3)?)?,
        dims: file.ints(table.word(2)?)?,
        element: table.int(7)?,
        data,
        is_constant,
        is_quantised: !file.list(table.word(4)?)?.is_empty(),
    })
}

fn node(file: File<'_>, version: Version, at: u32, tensors: usize) -> Result<NodeInfo<'_>> {
    let table = file.table(at);
    let operator = version.table(file, table.word(3)?, &first::OPERATOR);
    let (number, params) = (operator.word(1)?, operator.word(2)?);
    let has_params = params != 0 || (version, number) == (Version::First, ops::SPLIT);
    let params = match first::params(number) {
        Some(order) => version.table(file, params, order),
        None => file.table(params),
    };
    Ok(NodeInfo {
        name: file.text(table.word(4)?)?,
        operator: number,
        inputs: numbers(file, table.word(1)?, tensors)?,
        outputs: numbers(file, table.word(2)?, tensors)?,
        params: has_params.then_some(params),
    })
}

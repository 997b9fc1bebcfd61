//! What a file holds, as far as the importer reads it. Constants are the slots of fields in their tables (`schema/default/*.fbs` of MNN).

use kilim_core::error::{Error, Result, unsupported};
use kilim_core::{Limits, Metadata};

use super::invalid;
use super::layout::Layout;
use crate::flatbuffer::{FlatBuffer, Table};

/// Fields of `Net`.
pub mod net {
    pub const BIZ_CODE: usize = 0;
    pub const DESCRIBED: usize = 1;
    pub const EXTRA: usize = 2;
    pub const OPS: usize = 3;
    pub const OUTPUTS: usize = 4;
    pub const FORWARD_TYPE: usize = 5;
    pub const SOURCE_TYPE: usize = 6;
    pub const TENSOR_NAMES: usize = 7;
    pub const USAGE: usize = 9;
    pub const SUBGRAPHS: usize = 10;
    pub const UUID: usize = 11;
}

/// The field of `SubGraphProto` with its operators.
pub const BODY_OPS: usize = 4;

/// The fields of `Net` in this schema.
pub const NET_FIELDS: usize = 12;

/// Fields of `Op`.
pub mod op {
    pub const INPUTS: usize = 0;
    pub const MAIN_TYPE: usize = 1;
    pub const MAIN: usize = 2;
    pub const NAME: usize = 3;
    pub const OUTPUTS: usize = 4;
    pub const TYPE: usize = 5;
    pub const LAYOUT: usize = 6;
}

/// The field of `TensorDescribe` that says how data is quantised.
const QUANTIZED: usize = 4;

/// Types of operators are below this.
pub const OP_TYPES: usize = 1024;

/// An operator as the file describes it.
pub struct OpInfo<'a> {
    pub kind: i32,
    pub name: &'a str,
    /// Tensors by number; `None` where an input is left out.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
    /// The parameters, with the number of their table.
    pub main: Option<(u8, Table<'a>)>,
    /// The layout that the operator was made for.
    pub layout: Layout,
}

/// A whole network.
pub struct Net<'a> {
    /// The version of MNN whose converter made the file; empty where it does not say.
    pub version: &'a str,
    pub ops: Vec<OpInfo<'a>>,
    /// The names of tensors.
    pub tensors: Vec<&'a str>,
    /// The outputs that the file names; none where it leaves that open.
    pub outputs: Vec<&'a str>,
    /// The bodies of control flow.
    pub bodies: Vec<Body<'a>>,
    pub metadata: Metadata,
}

/// The body of a loop or a branch.
pub struct Body<'a> {
    pub name: &'a str,
    pub ops: Vec<OpInfo<'a>>,
    pub tensors: Vec<&'a str>,
    pub inputs: Vec<usize>,
    pub outputs: Vec<usize>,
}

impl<'a> Net<'a> {
    /// Reads the operators and the names of tensors, and checks their numbers.
    ///
    /// # Errors
    /// `InvalidModel` where the file is garbled, `Limit` where it has too many operators, `Unsupported` where its data is quantised.
    pub fn read(file: &'a FlatBuffer<'a>, limits: &Limits) -> Result<Net<'a>> {
        let root = file.root()?;
        for described in root.tables(net::DESCRIBED)? {
            if described.table(QUANTIZED)?.is_some() {
                return Err(unsupported("a model whose data has 8 bits"));
            }
        }
        let extra = root.table(net::EXTRA)?;
        let mut nodes = 0;
        let mut count = |ops: usize| {
            nodes += ops;
            limits.check_nodes(nodes)
        };
        let tensors = root.texts(net::TENSOR_NAMES)?;
        let tables = root.tables(net::OPS)?;
        count(tables.len())?;
        let ops = ops(tables, tensors.len())?;
        let mut bodies = Vec::new();
        for body in root.tables(net::SUBGRAPHS)? {
            let tensors = body.texts(3)?;
            let tables = body.tables(BODY_OPS)?;
            count(tables.len())?;
            let ports = |slot| numbers(body.i32s(slot)?, tensors.len());
            bodies.push(Body {
                name: body.text(0)?,
                ops: self::ops(tables, tensors.len())?,
                inputs: ports(1)?,
                outputs: ports(2)?,
                tensors,
            });
        }
        Ok(Net {
            version: extra.as_ref().map_or(Ok(""), |extra| extra.text(2))?,
            ops,
            tensors,
            outputs: root.texts(net::OUTPUTS)?,
            bodies,
            metadata: metadata(&root, extra.as_ref())?,
        })
    }
}

/// What the file says of itself: its converter, and the texts of `Net` and `ExtraInfo` under the names of the schema.
fn metadata(root: &Table, extra: Option<&Table>) -> Result<Metadata> {
    let text = |of: Option<&Table>, slot: usize| of.map_or(Ok(String::new()), |t| t.string(slot));
    let producer_version = text(extra, 2)?;
    let mut metadata = Metadata {
        producer: match producer_version.is_empty() {
            true => String::new(),
            false => "MNN".to_string(),
        },
        producer_version,
        ..Metadata::default()
    };
    for (key, said) in [
        ("bizCode", text(Some(root), net::BIZ_CODE)?),
        ("mnn_uuid", text(Some(root), net::UUID)?),
        ("extraInfo.name", text(extra, 1)?),
    ] {
        if !said.is_empty() {
            metadata.add(key, said)?;
        }
    }
    Ok(metadata)
}

/// The numbers of tensors.
fn numbers(found: Vec<i32>, tensors: usize) -> Result<Vec<usize>> {
    let numbers = found.into_iter().map(|number| {
        let known = usize::try_from(number).ok().filter(|&n| n < tensors);
        known.ok_or_else(|| {
            invalid("an operator names a tensor that is not there")
                .with_expected(format!("a number below {tensors}"))
                .with_got(number)
        })
    });
    numbers.collect()
}

fn ops<'a>(tables: Vec<Table<'a>>, tensors: usize) -> Result<Vec<OpInfo<'a>>> {
    let ops = tables.into_iter().map(|table| {
        let inputs = table
            .i32s(op::INPUTS)?
            .into_iter()
            .map(|number| match number {
                ..0 => Ok(None),
                _ => Ok(numbers(vec![number], tensors)?.pop()),
            });
        let main = table.table(op::MAIN)?;
        Ok(OpInfo {
            kind: table.i32(op::TYPE)?,
            name: table.text(op::NAME)?,
            inputs: inputs.collect::<Result<_>>()?,
            outputs: numbers(table.i32s(op::OUTPUTS)?, tensors)?,
            main: main
                .map(|main| Ok::<_, Error>((table.u8(op::MAIN_TYPE)?, main)))
                .transpose()?,
            layout: Layout::of(table.i8_or(op::LAYOUT, 1)?)?,
        })
    });
    ops.collect()
}

impl OpInfo<'_> {
    /// What errors call the operator: by its own name, or by the first tensor that it writes.
    pub fn called<'b>(&'b self, tensors: &[&'b str]) -> &'b str {
        match (self.name, self.outputs.first()) {
            ("", Some(&output)) => tensors[output],
            (name, _) => name,
        }
    }
}

//! What the split must know of a binary: which functions call which, and which the table holds.

use anyhow::{Context, Result, bail, ensure};
use std::collections::HashMap;
use std::ops::Range;
use wasmparser::{
    CompositeInnerType, ConstExpr, DataKind, ElementItems, ElementKind, ExternalKind, KnownCustom,
    Name, Operator, Parser, Payload, TypeRef,
};

/// A binary as the optimiser leaves it, with the names of its functions. Functions are counted as WebAssembly does: those that are
/// imported come first.
pub struct Binary {
    pub bytes: Vec<u8>,
    /// Functions that are imported.
    pub imported: u32,
    /// The type of every function.
    pub types: Vec<u32>,
    /// The number of parameters of every type.
    pub parameters: Vec<u32>,
    pub names: Vec<String>,
    /// Bytes of the body of every function; none of those that are imported.
    pub sizes: Vec<usize>,
    /// The functions that each calls by name.
    pub calls: Vec<Vec<u32>>,
    /// The places in the table where a function stands.
    pub slots: HashMap<u32, Vec<u32>>,
    /// The length of the table that functions are called through.
    pub table: u32,
    /// Functions that cannot leave the binary: what is exported, starts it or speaks of its data.
    pub rooted: Vec<bool>,
    /// Data that belongs to parts.
    pub data: Vec<Data>,
}

/// Data that a source file has marked as a part's: see [`MARK`].
pub struct Data {
    pub part: String,
    /// Where it lies in the memory.
    pub address: u32,
    /// Where it lies in the file of the binary.
    pub bytes: Range<usize>,
}

/// What data of a part begins with. The part's name follows, filled up with blanks to [`NAME`] bytes, and the number of bytes after
/// it, in four, the lowest first (`crates/wgpu-backend/build/pack.rs`).
const MARK: &[u8] = b"\0data of Kilim's part ";
const NAME: usize = 8;

impl Binary {
    /// # Errors
    /// Where it is no binary of the form that rustc, wasm-bindgen and wasm-opt make together.
    pub fn read(bytes: Vec<u8>) -> Result<Self> {
        let mut binary = Self {
            bytes: Vec::new(),
            imported: 0,
            types: Vec::new(),
            parameters: Vec::new(),
            names: Vec::new(),
            sizes: Vec::new(),
            calls: Vec::new(),
            slots: HashMap::new(),
            table: 0,
            rooted: Vec::new(),
            data: Vec::new(),
        };
        let mut roots = Vec::new();
        let mut named = HashMap::new();
        for payload in Parser::new(0).parse_all(&bytes) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section {
                        for of in group?.types() {
                            binary.parameters.push(match &of.composite_type.inner {
                                CompositeInnerType::Func(of) => of.params().len() as u32,
                                _ => bail!("a type of the binary is not that of a function"),
                            });
                        }
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        if let TypeRef::Func(of) = import?.ty {
                            binary.types.push(of);
                            binary.imported += 1;
                        }
                    }
                }
                Payload::FunctionSection(section) => {
                    for of in section {
                        binary.types.push(of?);
                    }
                }
                Payload::TableSection(section) => {
                    let first = section.into_iter().next();
                    let first = first.context("the binary has no table")??;
                    ensure!(
                        first.ty.element_type.is_func_ref(),
                        "the binary's first table is not that of its functions"
                    );
                    binary.table = u32::try_from(first.ty.initial)?;
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            roots.push(export.index);
                        }
                    }
                }
                Payload::StartSection { func, .. } => roots.push(func),
                Payload::ElementSection(section) => {
                    for element in section {
                        binary.element(element?)?;
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let function = binary.imported + binary.calls.len() as u32;
                    let mut called = Vec::new();
                    for operator in body.get_operators_reader()? {
                        match operator? {
                            Operator::Call { function_index } => called.push(function_index),
                            Operator::MemoryInit { .. } | Operator::DataDrop { .. } => {
                                roots.push(function);
                            }
                            Operator::ReturnCall { .. } | Operator::RefFunc { .. } => {
                                bail!("the binary refers to functions in a way that is not known");
                            }
                            _ => {}
                        }
                    }
                    called.sort_unstable();
                    called.dedup();
                    binary.calls.push(called);
                    let range = body.range();
                    binary.sizes.push((range.end - range.start) as usize);
                }
                Payload::DataSection(section) => {
                    for data in section {
                        binary.marked(&data?)?;
                    }
                }
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        for part in names {
                            let Name::Function(functions) = part? else {
                                continue;
                            };
                            for function in functions {
                                let function = function?;
                                named.insert(function.index, function.name.to_owned());
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        ensure!(!named.is_empty(), "the binary's functions have no names");
        let imported = binary.imported as usize;
        let count = binary.types.len();
        binary.calls.splice(0..0, vec![Vec::new(); imported]);
        binary.sizes.splice(0..0, vec![0; imported]);
        ensure!(
            binary.calls.len() == count,
            "the binary has functions without bodies"
        );
        binary.rooted = vec![false; count];
        for root in roots {
            binary.rooted[root as usize] = true;
        }
        binary.names = (0..count as u32)
            .map(|function| named.remove(&function).unwrap_or_default())
            .collect();
        binary.bytes = bytes;
        Ok(binary)
    }

    fn element(&mut self, element: wasmparser::Element<'_>) -> Result<()> {
        let ElementKind::Active {
            table_index: None | Some(0),
            offset_expr,
        } = element.kind
        else {
            // Declared functions are those that `ref.func` names, which is refused where it is met.
            return Ok(());
        };
        let first = constant(&offset_expr).context("where do functions stand in the table?")?;
        let ElementItems::Functions(functions) = element.items else {
            bail!("the binary's table is not filled with functions");
        };
        for (slot, function) in (first..).zip(functions) {
            self.slots.entry(function?).or_default().push(slot);
        }
        Ok(())
    }

    /// Finds marked data. Where threads share the memory, data is put there by code, and stays with the core.
    fn marked(&mut self, data: &wasmparser::Data<'_>) -> Result<()> {
        let DataKind::Active { offset_expr, .. } = &data.kind else {
            return Ok(());
        };
        let first = constant(offset_expr).context("where does data lie in the memory?")?;
        let found = data.data.windows(MARK.len()).enumerate();
        let found = found.filter(|(_, bytes)| *bytes == MARK);
        for (at, _) in found {
            let name = at + MARK.len();
            let length = name + NAME;
            let [name, length] = [name..length, length..length + 4].map(|r| data.data.get(r));
            let (name, length) = name.zip(length).context("marked data is cut off")?;
            let length = u32::from_le_bytes(length.try_into()?) as usize;
            let whole = at..at + MARK.len() + NAME + 4 + length;
            ensure!(whole.end <= data.data.len(), "marked data is cut off");
            let file = data.range.end as usize - data.data.len();
            self.data.push(Data {
                part: std::str::from_utf8(name)?.trim_end().to_owned(),
                address: first + u32::try_from(at)?,
                bytes: file + whole.start..file + whole.end,
            });
        }
        Ok(())
    }

    pub fn functions(&self) -> Range<u32> {
        0..self.types.len() as u32
    }
}

fn constant(expression: &ConstExpr<'_>) -> Option<u32> {
    match expression.get_operators_reader().read().ok()? {
        Operator::I32Const { value } => u32::try_from(value).ok(),
        _ => None,
    }
}

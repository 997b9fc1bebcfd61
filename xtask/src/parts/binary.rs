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
    /// Whether instances in several threads share its memory. Each has a table of its own.
    pub shared: bool,
    /// Where data lies.
    pub segments: Segments,
}

/// A segment of data.
pub struct Segment {
    /// Where it lies in the memory, where that is told.
    pub address: Option<u32>,
    /// Where it lies in the file of the binary.
    pub bytes: Range<usize>,
}

/// Collects the segments of a file, whose code says of those that threads share where they lie.
#[derive(Default)]
pub struct Segments {
    pub list: Vec<Segment>,
    /// The memory address of each segment that is put into place later, by the segment's number.
    put: HashMap<u32, u32>,
}

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
            shared: false,
            segments: Segments::default(),
        };
        let mut segments = Segments::default();
        let mut roots = Vec::new();
        let mut named = HashMap::new();
        for payload in Parser::new(0).parse_all(&bytes) {
            let payload = payload?;
            segments.meet(&payload)?;
            match payload {
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
                        match import?.ty {
                            TypeRef::Func(of) => {
                                binary.types.push(of);
                                binary.imported += 1;
                            }
                            TypeRef::Memory(of) => binary.shared |= of.shared,
                            _ => {}
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
                Payload::MemorySection(section) => {
                    for memory in section {
                        binary.shared |= memory?.shared;
                    }
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
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        for part in names {
                            let Name::Function(functions) = part? else {
                                continue;
                            };
                            for function in functions {
                                let function = function?;
                                named.insert(function.index, plain(function.name));
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
        binary.segments = segments;
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

    /// The functions that call each by name.
    pub fn callers(&self) -> Vec<Vec<u32>> {
        let mut callers = vec![Vec::new(); self.types.len()];
        for caller in self.functions() {
            for called in &self.calls[caller as usize] {
                callers[*called as usize].push(caller);
            }
        }
        callers
    }

    pub fn functions(&self) -> Range<u32> {
        0..self.types.len() as u32
    }
}

impl Segments {
    /// # Errors
    /// Where the file is damaged.
    pub fn meet(&mut self, payload: &Payload<'_>) -> Result<()> {
        match payload {
            Payload::CodeSectionEntry(body) => {
                let mut numbers = [None; 3];
                for operator in body.get_operators_reader()? {
                    let operator = operator?;
                    let number = match operator {
                        Operator::I32Const { value } => u32::try_from(value).ok(),
                        _ => None,
                    };
                    if let (Operator::MemoryInit { data_index, .. }, [Some(to), Some(0), Some(_)]) =
                        (operator, numbers)
                    {
                        let other = self.put.insert(data_index, to);
                        ensure!(other.is_none(), "data is put into two places");
                    }
                    numbers = [numbers[1], numbers[2], number];
                }
            }
            Payload::DataSection(section) => {
                for (number, data) in (0..).zip(section.clone()) {
                    let data = data?;
                    let end = usize::try_from(data.range.end)?;
                    self.list.push(Segment {
                        address: match &data.kind {
                            DataKind::Active { offset_expr, .. } => constant(offset_expr),
                            DataKind::Passive => self.put.get(&number).copied(),
                        },
                        bytes: end - data.data.len()..end,
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The bytes of the memory at a place, before anything has run.
    pub fn data_at(&self, file: &[u8], place: &Range<u32>) -> Vec<u8> {
        let mut bytes = vec![0; place.len()];
        for segment in &self.list {
            let Some(first) = segment.address else {
                continue;
            };
            let held = &file[segment.bytes.clone()];
            let from = place.start.max(first);
            let to = place.end.min(first + held.len() as u32);
            if from < to {
                let held = &held[(from - first) as usize..(to - first) as usize];
                bytes[(from - place.start) as usize..(to - place.start) as usize]
                    .copy_from_slice(held);
            }
        }
        bytes
    }
}

pub fn constant(expression: &ConstExpr<'_>) -> Option<u32> {
    match expression.get_operators_reader().read().ok()? {
        Operator::I32Const { value } => u32::try_from(value).ok(),
        _ => None,
    }
}

/// Digits of the number that a compiler writes behind the name of a crate, `core[c5930c85a12de822]::fmt`, where it mangles names by its newer scheme.
const CRATE_DIGITS: usize = 16;

/// A function's name without the numbers of crates, so that builds whose names are mangled in one way or the other have the same.
fn plain(name: &str) -> String {
    let mut rest = name;
    let mut plain = String::with_capacity(name.len());
    while let Some(at) = rest.find('[') {
        let (before, behind) = rest.split_at(at);
        plain.push_str(before);
        let number = behind.get(1..=CRATE_DIGITS).is_some_and(|digits| {
            digits.bytes().all(|digit| digit.is_ascii_hexdigit())
                && behind[1 + CRATE_DIGITS..].starts_with(']')
        });
        let length = if number { CRATE_DIGITS + 2 } else { 1 };
        plain.push_str(&behind[if number { length } else { 0 }..length]);
        rest = &behind[length..];
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_have_no_numbers_of_crates() {
        let name = "<core[c5930c85a12de822]::Cell<[u8; 4]> as alloc[0123456789abcdef]::A>::f";
        assert_eq!(plain(name), "<core::Cell<[u8; 4]> as alloc::A>::f");
        assert_eq!(plain("a::b[2]"), "a::b[2]");
    }
}

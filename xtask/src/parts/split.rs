//! Writes a binary whose functions are owned by several parts as a core and a module for each part. Parts share the core's memory,
//! globals and table. Functions of a part are called from elsewhere through the table, where a stand-in waits that has the host load
//! the part; loading it puts the functions themselves there.

use super::binary::Binary;
use super::data::{Moved, joined};
use super::types::without_unused_types;
use crate::names::short;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, CustomSection, DataSection, ElementSection, Elements, EntityType,
    ExportKind, ExportSection, Function, FunctionSection, ImportSection, Instruction, Module,
    Section, TableSection, TypeSection, ValType,
};
use wasmparser::{DataKind, FunctionBody, Operator, Parser, Payload};

/// The module that a core imports the loaders of its parts from, each by the part's name.
const LOADERS: &str = "kilim";
/// The module that a part imports from: the core's exports.
const CORE: &str = "core";
/// How names of exports for parts begin; no other export's does.
const SHARED: char = '$';

/// A binary, and which part each function belongs to: none where it belongs to the core.
pub struct Split<'a> {
    binary: &'a Binary,
    parts: &'a [&'static str],
    owners: &'a [Option<usize>],
    /// Where a part's function is called through, for those that are called from elsewhere.
    slots: HashMap<u32, u32>,
    /// Functions of parts that the table did not hold, and that parts call.
    added: Vec<u32>,
    /// The number of functions of parts that the core alone calls, which has the part loaded before.
    awaited: u32,
    /// The core's functions that parts call, with the names that they are exported by.
    shared: BTreeMap<u32, String>,
    /// The data that each part brings and the core has not, in the order of its addresses.
    brought: Vec<Vec<Range<u32>>>,
    /// Told in the name of the core's memory, so that parts of another build do not fit.
    mark: u64,
}

impl<'a> Split<'a> {
    /// `moved` is the data that leaves the core.
    pub fn new(
        binary: &'a Binary,
        parts: &'a [&'static str],
        owners: &'a [Option<usize>],
        moved: &[Moved],
    ) -> Self {
        let mut slots: HashMap<u32, u32> = HashMap::new();
        let mut shared = BTreeSet::new();
        for (&function, places) in &binary.slots {
            if owners[function as usize].is_some() {
                slots.insert(function, places[0]);
            }
        }
        // Whether a part calls it, by the function of another part that the table does not hold.
        let mut called: BTreeMap<u32, bool> = BTreeMap::new();
        for caller in binary.functions() {
            let from = owners[caller as usize];
            for &function in &binary.calls[caller as usize] {
                match owners[function as usize] {
                    None if from.is_some() => {
                        shared.insert(function);
                    }
                    to if to.is_some() && to != from && !slots.contains_key(&function) => {
                        *called.entry(function).or_default() |= from.is_some();
                    }
                    _ => {}
                }
            }
        }
        let of = |by_part| {
            called
                .iter()
                .filter(move |(_, by)| **by == by_part)
                .map(|(f, _)| *f)
        };
        let (added, mut awaited): (Vec<u32>, Vec<u32>) = (of(true).collect(), of(false).collect());
        awaited.sort_by_key(|f| owners[*f as usize]);
        slots.extend(added.iter().copied().zip(binary.table..));
        let first = binary.table + (added.len() + parts.len()) as u32;
        slots.extend(awaited.iter().copied().zip(first..));
        let brought = (0..parts.len()).map(|part| {
            let moved = moved.iter().filter(|moved| moved.parts.contains(&part));
            joined(moved.map(|moved| moved.place.clone()))
        });
        let brought: Vec<Vec<Range<u32>>> = brought.collect();
        Self {
            mark: mark(&binary.bytes, owners, &brought),
            brought,
            binary,
            parts,
            owners,
            slots,
            added,
            awaited: awaited.len() as u32,
            shared: shared
                .into_iter()
                .zip((0..).map(|number| format!("{SHARED}{}", short(number))))
                .collect(),
        }
    }

    fn owned_by(&self, owner: Option<usize>) -> impl Iterator<Item = u32> {
        let defined = self.binary.imported..self.binary.types.len() as u32;
        defined.filter(move |f| self.owners[*f as usize] == owner)
    }

    /// The functions of parts that have a stand-in, in a fixed order.
    fn stand_ins(&self) -> Vec<u32> {
        let slots = self.slots.keys().filter(|f| !self.is_awaited(**f));
        let mut functions: Vec<u32> = slots.copied().collect();
        functions.sort_unstable_by_key(|f| {
            (
                self.owners[*f as usize],
                self.binary.types[*f as usize],
                self.slots[f],
            )
        });
        functions
    }

    /// # Errors
    /// Where the binary holds what is not known here.
    pub fn core(&self) -> Result<Vec<u8>> {
        let imported = self.binary.imported;
        let loaders = self.parts.len() as u32;
        let mut index: HashMap<u32, u32> = (0..imported).map(|f| (f, f)).collect();
        let own = self.owned_by(None).chain(self.stand_ins());
        index.extend(own.zip(imported + loaders..));
        let waits = loaders + index.len() as u32;
        let mut module = Module::new();
        let mut writer = Writer {
            split: self,
            owner: None,
            index,
            bodies: 0,
            no_parameters: 0,
            waits,
        };
        let parser = Parser::new(0);
        utils::parse_core_module(&mut writer, &mut module, parser, &self.binary.bytes)?;
        Ok(module.finish())
    }

    /// # Errors
    /// Where the binary holds what is not known here.
    pub fn part(&self, part: usize) -> Result<Vec<u8>> {
        let own: Vec<u32> = self.owned_by(Some(part)).collect();
        let called = own.iter().flat_map(|f| &self.binary.calls[*f as usize]);
        let called: BTreeSet<u32> = called
            .copied()
            .filter(|f| self.owners[*f as usize].is_none())
            .collect();
        let index = called.iter().chain(&own).copied().zip(0..).collect();
        let mut writer = Writer {
            split: self,
            owner: Some(part),
            index,
            bodies: 0,
            no_parameters: 0,
            waits: 0,
        };
        let mut types = TypeSection::new();
        let mut imports = ImportSection::new();
        let mut code = CodeSection::new();
        let (mut tables, mut memories, mut globals) = (0, 0, 0);
        let share = |imports: &mut ImportSection, kind: char, number: &mut u32, of| {
            imports.import(CORE, &self.place(kind, *number), of);
            *number += 1;
        };
        for payload in Parser::new(0).parse_all(&self.binary.bytes) {
            match payload? {
                Payload::TypeSection(section) => {
                    writer.parse_type_section(&mut types, section)?;
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        match writer.entity_type(import?.ty)? {
                            of @ EntityType::Memory(_) => {
                                share(&mut imports, 'm', &mut memories, of)
                            }
                            of @ EntityType::Global(_) => {
                                share(&mut imports, 'g', &mut globals, of)
                            }
                            _ => {}
                        }
                    }
                }
                Payload::TableSection(section) => {
                    for table in section {
                        let mut of = writer.table_type(table?.ty)?;
                        if tables == 0 {
                            self.lengthen(&mut of);
                        }
                        share(&mut imports, 't', &mut tables, of.into());
                    }
                }
                Payload::MemorySection(section) => {
                    for memory in section {
                        let of = writer.memory_type(memory?)?;
                        share(&mut imports, 'm', &mut memories, of.into());
                    }
                }
                Payload::GlobalSection(section) => {
                    for global in section {
                        let of = writer.global_type(global?.ty)?;
                        share(&mut imports, 'g', &mut globals, of.into());
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    writer.parse_function_body(&mut code, body)?;
                }
                _ => {}
            }
        }
        let mut functions = FunctionSection::new();
        for function in &called {
            let of = self.binary.types[*function as usize];
            imports.import(CORE, &self.shared[function], EntityType::Function(of));
        }
        for function in &own {
            functions.function(self.binary.types[*function as usize]);
        }
        // What the core calls to wait for the part does nothing once it is there.
        functions.function(writer.no_parameters);
        let mut nothing = Function::new([]);
        nothing.instruction(&Instruction::End);
        code.function(&nothing);
        let there = (called.len() + own.len()) as u32;
        let mut elements = ElementSection::new();
        for (first, run) in runs(self.places(&own)) {
            let indices: Vec<u32> = run.iter().map(|f| writer.index[f]).collect();
            let offset = ConstExpr::i32_const(first as i32);
            elements.active(None, &offset, Elements::Functions(indices.into()));
        }
        let offset = ConstExpr::i32_const(self.wait(part) as i32);
        elements.active(None, &offset, Elements::Functions(vec![there].into()));
        let mut data = DataSection::new();
        for place in &self.brought[part] {
            let offset = ConstExpr::i32_const(place.start as i32);
            let held = &self.binary.segments;
            data.active(0, &offset, held.data_at(&self.binary.bytes, place));
        }
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions);
        module.section(&elements).section(&code).section(&data);
        without_unused_types(&module.finish())
    }

    /// Every place in the table where one of the functions belongs.
    fn places(&self, functions: &[u32]) -> BTreeMap<u32, u32> {
        let mut places = BTreeMap::new();
        for function in functions {
            let held = self.binary.slots.get(function);
            places.extend(held.into_iter().flatten().map(|slot| (*slot, *function)));
            places.extend(self.slots.get(function).map(|slot| (*slot, *function)));
        }
        places
    }

    /// The export of the core's memory, table or global of this number.
    fn place(&self, kind: char, number: u32) -> String {
        match kind {
            'm' => format!("{SHARED}m{number}-{:016x}", self.mark),
            _ => format!("{SHARED}{kind}{number}"),
        }
    }

    fn lengthen(&self, table: &mut wasm_encoder::TableType) {
        let added = (self.added.len() + self.parts.len() + self.awaited as usize) as u64;
        table.minimum += added;
        table.maximum = table.maximum.map(|maximum| maximum + added);
    }

    /// The place in the table of what is called to wait for a part: it loads the part until that is there.
    fn wait(&self, part: usize) -> u32 {
        self.binary.table + (self.added.len() + part) as u32
    }

    /// Whether the core waits for the function's part before it calls it: it has a place after all those that the core fills.
    fn is_awaited(&self, f: u32) -> bool {
        let first = self.binary.table + (self.added.len() + self.parts.len()) as u32;
        self.slots.get(&f).is_some_and(|slot| *slot >= first)
    }

    /// Calls the function `f` through the table.
    fn call(&self, function: &mut Function, f: u32) -> Result<(), Misplaced> {
        let slot = self.slots.get(&f).ok_or(Misplaced)?;
        function.instruction(&Instruction::I32Const(*slot as i32));
        function.instruction(&Instruction::CallIndirect {
            type_index: self.binary.types[f as usize],
            table_index: 0,
        });
        Ok(())
    }

    /// What stands in for the function `f` until its part is there.
    fn stand_in(&self, f: u32) -> Result<Function, Misplaced> {
        let mut function = Function::new([]);
        let part = self.owners[f as usize].ok_or(Misplaced)?;
        function.instruction(&Instruction::Call(self.binary.imported + part as u32));
        let of = self.binary.types[f as usize];
        for parameter in 0..self.binary.parameters[of as usize] {
            function.instruction(&Instruction::LocalGet(parameter));
        }
        self.call(&mut function, f)?;
        function.instruction(&Instruction::End);
        Ok(function)
    }
}

/// Adds a part's module to the file of its core, for pages that want one file.
pub fn embed(core: &mut Vec<u8>, part: &str, module: &[u8]) {
    let section = CustomSection {
        name: format!("kilim.{part}").into(),
        data: module.into(),
    };
    section.append_to(core);
}

/// A number that another binary, or another split of this one, would not have.
fn mark(bytes: &[u8], owners: &[Option<usize>], brought: &[Vec<Range<u32>>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (bytes, owners, brought).hash(&mut hasher);
    hasher.finish()
}

/// Joins neighbouring places to runs, each with the first.
fn runs(places: BTreeMap<u32, u32>) -> Vec<(u32, Vec<u32>)> {
    let mut runs: Vec<(u32, Vec<u32>)> = Vec::new();
    for (slot, function) in places {
        match runs.last_mut() {
            Some((first, run)) if *first + run.len() as u32 == slot => run.push(function),
            _ => runs.push((slot, vec![function])),
        }
    }
    runs
}

/// Writes the functions of one owner, with all else of the binary where that is the core.
struct Writer<'a> {
    split: &'a Split<'a>,
    owner: Option<usize>,
    /// The numbers that functions have in what is written. In the core those of parts have the numbers of their stand-ins.
    index: HashMap<u32, u32>,
    /// Bodies met so far.
    bodies: u32,
    /// The type of a function that takes and gives nothing.
    no_parameters: u32,
    /// The core's functions that wait for parts begin with this number.
    waits: u32,
}

/// A function is spoken of where it cannot be.
#[derive(Debug)]
pub struct Misplaced;

impl fmt::Display for Misplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a function of the binary is spoken of where it cannot be")
    }
}

impl std::error::Error for Misplaced {}

impl Reencode for Writer<'_> {
    type Error = Misplaced;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<Self::Error>> {
        let index = self.index.get(&function).copied();
        index.ok_or(Error::UserError(Misplaced))
    }

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_type_section(self, types, section)?;
        self.no_parameters = types.len();
        types.ty().function([], Vec::<ValType>::new());
        Ok(())
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_import_section(self, imports, section)?;
        for part in self.split.parts {
            imports.import(LOADERS, part, EntityType::Function(self.no_parameters));
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        _section: wasmparser::FunctionSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        let own = self.split.owned_by(None).chain(self.split.stand_ins());
        for function in own {
            functions.function(self.split.binary.types[function as usize]);
        }
        for _ in self.split.parts {
            functions.function(self.no_parameters);
        }
        Ok(())
    }

    fn parse_table_section(
        &mut self,
        tables: &mut TableSection,
        section: wasmparser::TableSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        for (number, table) in section.into_iter().enumerate() {
            let mut of = self.table_type(table?.ty)?;
            if number == 0 {
                self.split.lengthen(&mut of);
            }
            tables.table(of);
        }
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_export_section(self, exports, section)?;
        for (function, name) in &self.split.shared {
            exports.export(name, ExportKind::Func, self.index[function]);
        }
        let counts = counts(&self.split.binary.bytes)?;
        let kinds = [
            ('m', ExportKind::Memory),
            ('t', ExportKind::Table),
            ('g', ExportKind::Global),
        ];
        for ((letter, kind), count) in kinds.into_iter().zip(counts) {
            for number in 0..count {
                exports.export(&self.split.place(letter, number), kind, number);
            }
        }
        Ok(())
    }

    fn parse_element_section(
        &mut self,
        elements: &mut ElementSection,
        section: wasmparser::ElementSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_element_section(self, elements, section)?;
        let loaders =
            (0..self.split.parts.len() as u32).map(|part| self.split.binary.imported + part);
        let added = self.split.added.iter().map(|f| self.index[f]);
        let added = added.chain(loaders).collect();
        let offset = ConstExpr::i32_const(self.split.binary.table as i32);
        elements.active(None, &offset, Elements::Functions(added));
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        utils::parse_code_section(self, code, section)?;
        for function in self.split.stand_ins() {
            code.function(&self.split.stand_in(function).map_err(Error::UserError)?);
        }
        for part in 0..self.split.parts.len() {
            let mut function = Function::new([]);
            function.instruction(&Instruction::I32Const(self.split.wait(part) as i32));
            function.instruction(&Instruction::CallIndirect {
                type_index: self.no_parameters,
                table_index: 0,
            });
            function.instruction(&Instruction::End);
            code.function(&function);
        }
        Ok(())
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), Error<Self::Error>> {
        let number = self.split.binary.imported + self.bodies;
        self.bodies += 1;
        if self.split.owners[number as usize] != self.owner {
            return Ok(());
        }
        let mut function = self.new_function_with_parsed_locals(&body)?;
        for operator in body.get_operators_reader()? {
            let operator = operator?;
            match operator {
                Operator::Call { function_index: f } if self.elsewhere(f) => {
                    if let (None, Some(part), true) = (
                        self.owner,
                        self.split.owners[f as usize],
                        self.split.is_awaited(f),
                    ) {
                        function.instruction(&Instruction::Call(self.waits + part as u32));
                    }
                    self.split
                        .call(&mut function, f)
                        .map_err(Error::UserError)?;
                }
                _ => {
                    function.instruction(&self.instruction(operator)?);
                }
            }
        }
        code.function(&function);
        Ok(())
    }

    /// Data that parts bring is left out: zeros stand in its place, which cost next to nothing to fetch.
    fn parse_data(
        &mut self,
        section: &mut DataSection,
        data: wasmparser::Data<'_>,
    ) -> Result<(), Error<Misplaced>> {
        let mut bytes = data.data.to_vec();
        let first = data.range.end as usize - bytes.len();
        let segments = &self.split.binary.segments.list;
        let segment = segments.iter().find(|of| of.bytes.start == first);
        if let Some(address) = segment.and_then(|segment| segment.address) {
            let last = address + bytes.len() as u32;
            for place in self.split.brought.iter().flatten() {
                let (from, to) = (place.start.max(address), place.end.min(last));
                if from < to {
                    bytes[(from - address) as usize..(to - address) as usize].fill(0);
                }
            }
        }
        match data.kind {
            DataKind::Active {
                memory_index,
                offset_expr,
            } => section.active(memory_index, &self.const_expr(offset_expr)?, bytes),
            DataKind::Passive => section.passive(bytes),
        };
        Ok(())
    }

    /// Names would be of functions that have moved.
    fn parse_custom_section(
        &mut self,
        _module: &mut Module,
        _section: wasmparser::CustomSectionReader<'_>,
    ) -> Result<(), Error<Self::Error>> {
        Ok(())
    }
}

impl Writer<'_> {
    /// Whether the function belongs to a part that is not being written.
    fn elsewhere(&self, function: u32) -> bool {
        let owner = self.split.owners[function as usize];
        owner.is_some() && owner != self.owner
    }
}

/// How many memories, tables and globals there are.
fn counts(bytes: &[u8]) -> Result<[u32; 3], Error<Misplaced>> {
    let mut counts = [0; 3];
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    match import?.ty {
                        wasmparser::TypeRef::Memory(_) => counts[0] += 1,
                        wasmparser::TypeRef::Table(_) => counts[1] += 1,
                        wasmparser::TypeRef::Global(_) => counts[2] += 1,
                        _ => {}
                    }
                }
            }
            Payload::MemorySection(section) => counts[0] += section.count(),
            Payload::TableSection(section) => counts[1] += section.count(),
            Payload::GlobalSection(section) => counts[2] += section.count(),
            _ => {}
        }
    }
    Ok(counts)
}

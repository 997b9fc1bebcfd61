//! Writes the functions of one owner with the numbers, calls and places in the table that they have there.

use super::{LOADERS, Split};
use std::collections::HashMap;
use std::fmt;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType, ExportKind,
    ExportSection, Function, FunctionSection, ImportSection, Instruction, Module, TableSection,
    TypeSection, ValType,
};
use wasmparser::{DataKind, FunctionBody, Operator, Parser, Payload};

/// Writes the functions of one owner, with all else of the binary where that is the core.
pub struct Writer<'a> {
    pub split: &'a Split<'a>,
    pub owner: Option<usize>,
    /// The numbers that functions have in what is written. In the core those of parts have the numbers of their stand-ins.
    pub index: HashMap<u32, u32>,
    /// Bodies met so far.
    pub bodies: u32,
    /// The type of a function that takes and gives nothing.
    pub no_parameters: u32,
    /// The core's functions that wait for parts begin with this number.
    pub waits: u32,
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
        // What stands for hidden functions.
        functions.function(self.no_parameters);
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
        let mut never = Function::new([]);
        never.instruction(&Instruction::Unreachable);
        never.instruction(&Instruction::End);
        code.function(&never);
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

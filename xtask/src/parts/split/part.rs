//! The module of a part: its functions, the data that it brings, and what it puts into the core's table.

use super::write::Writer;
use super::{CORE, Split};
use crate::parts::types::without_unused_types;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType, Function,
    FunctionSection, ImportSection, Instruction, Module, TypeSection,
};
use wasmparser::{Parser, Payload};

impl Split<'_> {
    /// The module of the part of this number.
    ///
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

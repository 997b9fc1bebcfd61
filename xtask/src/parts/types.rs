//! Takes unused types out of a part, which is written with all types of its binary.

use anyhow::Result;
use std::collections::BTreeSet;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{Module, TypeSection};
use wasmparser::{Parser, TypeSectionReader};

/// The module with those types alone that it uses, in the order that they had.
///
/// # Errors
/// Where the module holds what is not known here.
pub fn without_unused_types(module: &[u8]) -> Result<Vec<u8>> {
    let mut used = Used::default();
    utils::parse_core_module(&mut used, &mut Module::new(), Parser::new(0), module)?;
    let mut kept = Kept {
        types: used.0.into_iter().collect(),
    };
    let mut made = Module::new();
    utils::parse_core_module(&mut kept, &mut made, Parser::new(0), module)?;
    Ok(made.finish())
}

/// The types that are spoken of.
#[derive(Default)]
struct Used(BTreeSet<u32>);

impl Reencode for Used {
    type Error = Infallible;

    fn type_index(&mut self, of: u32) -> Result<u32, Error<Infallible>> {
        self.0.insert(of);
        Ok(of)
    }
}

struct Kept {
    /// In order.
    types: Vec<u32>,
}

impl Reencode for Kept {
    type Error = Infallible;

    fn type_index(&mut self, of: u32) -> Result<u32, Error<Infallible>> {
        Ok(self.types.partition_point(|kept| *kept < of) as u32)
    }

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: TypeSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        for (number, of) in (0..).zip(section.into_iter_err_on_gc_types()) {
            let of = self.func_type(of?)?;
            if self.types.binary_search(&number).is_ok() {
                types.ty().func_type(&of);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::without_unused_types;
    use crate::parts::tests::node;
    use wasm_encoder::{
        BlockType, CodeSection, ExportKind, ExportSection, Function, FunctionSection, Instruction,
        Module, NameMap, NameSection, TypeSection, ValType,
    };

    #[test]
    fn types_that_are_used_stay() {
        use Instruction::{Block, End, I32Add, I32Const, LocalGet};
        let int = ValType::I32;
        let mut types = TypeSection::new();
        types.ty().function([ValType::F64], []);
        types.ty().function([int], [int]);
        types.ty().function([], [ValType::F32]);
        types.ty().function([], [int, int]);
        let mut functions = FunctionSection::new();
        functions.function(1);
        let mut exports = ExportSection::new();
        exports.export("f", ExportKind::Func, 0);
        let mut function = Function::new([]);
        let pair = Block(BlockType::FunctionType(3));
        for instruction in [pair, LocalGet(0), I32Const(2), End, I32Add, End] {
            function.instruction(&instruction);
        }
        let mut code = CodeSection::new();
        code.function(&function);
        let mut names = NameMap::new();
        names.append(0, "f");
        let mut section = NameSection::new();
        section.functions(&names);
        let mut module = Module::new();
        module.section(&types).section(&functions);
        module.section(&exports).section(&code).section(&section);
        let made = without_unused_types(&module.finish()).unwrap();
        let script =
            "console.log(new WebAssembly.Instance(new WebAssembly.Module(m0)).exports.f(3));";
        assert_eq!(node(std::slice::from_ref(&made), script).trim(), "5");
        assert_eq!(count(&made), 2);
    }

    fn count(module: &[u8]) -> u32 {
        let payloads = wasmparser::Parser::new(0).parse_all(module);
        let types = payloads.map(|payload| match payload.unwrap() {
            wasmparser::Payload::TypeSection(section) => section.count(),
            _ => 0,
        });
        types.sum()
    }
}

//! A binary that tells which of its functions are entered.

use anyhow::Result;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, EntityType, ImportSection, Instruction, Module, TypeSection, ValType,
};
use wasmparser::{FunctionBody, Parser};

use super::binary::Binary;

/// The binary with a call of the import `kilim.enter` at the begin of each function, which is given the function's number.
///
/// # Errors
/// Where the binary holds what is not known here.
pub fn counting(binary: &Binary) -> Result<Vec<u8>> {
    let mut module = Module::new();
    let mut writer = Writer {
        imported: binary.imported,
        function: binary.imported,
        of: 0,
    };
    utils::parse_core_module(&mut writer, &mut module, Parser::new(0), &binary.bytes)?;
    Ok(module.finish())
}

struct Writer {
    imported: u32,
    /// The next function whose body is met.
    function: u32,
    /// The type of the import.
    of: u32,
}

impl Reencode for Writer {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<Infallible>> {
        Ok(match function < self.imported {
            true => function,
            false => function + 1,
        })
    }

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_type_section(self, types, section)?;
        self.of = types.len();
        types.ty().function([ValType::I32], []);
        Ok(())
    }

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_import_section(self, imports, section)?;
        imports.import("kilim", "enter", EntityType::Function(self.of));
        Ok(())
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), Error<Infallible>> {
        let mut function = self.new_function_with_parsed_locals(&body)?;
        function.instruction(&Instruction::I32Const(self.function as i32));
        function.instruction(&Instruction::Call(self.imported));
        self.function += 1;
        for operator in body.get_operators_reader()? {
            function.instruction(&self.instruction(operator?)?);
        }
        code.function(&function);
        Ok(())
    }

    fn parse_custom_section(
        &mut self,
        _module: &mut Module,
        _section: wasmparser::CustomSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        Ok(())
    }
}

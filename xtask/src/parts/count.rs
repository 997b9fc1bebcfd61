//! A binary that tells which of its points runs have passed.

use super::binary::Binary;
use super::points::Points;
use anyhow::Result;
use std::convert::Infallible;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    CodeSection, ConstExpr, ExportKind, ExportSection, GlobalSection, GlobalType, Instruction,
    Module, ValType,
};
use wasmparser::{FunctionBody, Parser, Payload};

/// How the names of the exports begin that say of a point whether it was passed; the point's number follows.
const PASSED: &str = "passed ";

/// The binary with a global for each of its points that is 1 once the point was passed.
///
/// # Errors
/// Where the binary holds what is not known here.
pub fn counting(binary: &Binary) -> Result<Vec<u8>> {
    let mut points = Points::default();
    for payload in Parser::new(0).parse_all(&binary.bytes) {
        if let Payload::CodeSectionEntry(body) = payload? {
            points.begin();
            for operator in body.get_operators_reader()? {
                points.after(&operator?);
            }
        }
    }
    let mut module = Module::new();
    let mut writer = Writer {
        points: Points::default(),
        count: points.count(),
        globals: 0,
    };
    utils::parse_core_module(&mut writer, &mut module, Parser::new(0), &binary.bytes)?;
    Ok(module.finish())
}

struct Writer {
    points: Points,
    count: u32,
    /// How many globals the binary has itself.
    globals: u32,
}

impl Writer {
    fn pass(&self, function: &mut wasm_encoder::Function, point: u32) {
        function.instruction(&Instruction::I32Const(1));
        function.instruction(&Instruction::GlobalSet(self.globals + point));
    }
}

impl Reencode for Writer {
    type Error = Infallible;

    fn parse_import_section(
        &mut self,
        imports: &mut wasm_encoder::ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        for import in section.clone().into_imports() {
            if matches!(import?.ty, wasmparser::TypeRef::Global(_)) {
                self.globals += 1;
            }
        }
        utils::parse_import_section(self, imports, section)
    }

    fn parse_global_section(
        &mut self,
        globals: &mut GlobalSection,
        section: wasmparser::GlobalSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        self.globals += section.count();
        utils::parse_global_section(self, globals, section)?;
        let of = GlobalType {
            val_type: ValType::I32,
            mutable: true,
            shared: false,
        };
        for _ in 0..self.count {
            globals.global(of, &ConstExpr::i32_const(0));
        }
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_export_section(self, exports, section)?;
        for point in 0..self.count {
            let name = format!("{PASSED}{point}");
            exports.export(&name, ExportKind::Global, self.globals + point);
        }
        Ok(())
    }

    fn parse_function_body(
        &mut self,
        code: &mut CodeSection,
        body: FunctionBody<'_>,
    ) -> Result<(), Error<Infallible>> {
        let mut function = self.new_function_with_parsed_locals(&body)?;
        let begin = self.points.begin();
        self.pass(&mut function, begin);
        for operator in body.get_operators_reader()? {
            let operator = operator?;
            let point = self.points.after(&operator);
            function.instruction(&self.instruction(operator)?);
            if let Some(point) = point {
                self.pass(&mut function, point);
            }
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

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

/// How the names of the exports begin that say of [`POINTS`] points which of them were passed; a number follows, counted from 0.
const PASSED: &str = "passed ";
/// Points of one export, a bit for each, the first in the lowest: engines allow 100,000 exports.
const POINTS: u32 = 64;

/// The binary with a bit of a global for each of its points that is 1 once the point was passed.
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
        let global = self.globals + point / POINTS;
        function.instruction(&Instruction::GlobalGet(global));
        function.instruction(&Instruction::I64Const(1 << (point % POINTS)));
        function.instruction(&Instruction::I64Or);
        function.instruction(&Instruction::GlobalSet(global));
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
            val_type: ValType::I64,
            mutable: true,
            shared: false,
        };
        for _ in 0..self.count.div_ceil(POINTS) {
            globals.global(of, &ConstExpr::i64_const(0));
        }
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        exports: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_export_section(self, exports, section)?;
        for number in 0..self.count.div_ceil(POINTS) {
            let name = format!("{PASSED}{number}");
            exports.export(&name, ExportKind::Global, self.globals + number);
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

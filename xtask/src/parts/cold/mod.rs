//! Moves out of functions what no run of the core's profile has passed, each piece into a function of its own, which may then belong to
//! a part. A piece is the rest of a block from a point that was not passed: code that can be reached through that point alone. It takes
//! what is on the stack and the locals that it reads, and gives the locals that are read after it and, where it can go on at several
//! places, the number of the place.

mod cut;
#[cfg(test)]
mod tests;
mod write;

use super::binary::Binary;
use super::live::{Live, Shape};
use super::points::Points;
use super::profile::Profile;
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::convert::Infallible;
use std::mem::take;
use wasm_encoder::reencode::{Error, Reencode, RoundtripReencoder, utils};
use wasm_encoder::{
    CodeSection, Function, FunctionSection, Instruction, Module, NameMap, NameSection, TypeSection,
    ValType,
};
use wasmparser::{FunctionBody, Operator, Parser, ValidPayload, Validator, WasmFeatures};

/// Functions that are left whole: the loader of a part may need memory, copies of bytes are everywhere, the fastest kernels are
/// for any length, and norms by channel for either layout.
const WHOLE: &[&str] = &[
    "dlmalloc",
    "compiler_builtins",
    "__externref",
    "__wbindgen",
    "kilim_simd_cpu::",
    "kilim_reference_cpu::norm::channel::",
];
/// Functions whose paths depend on lengths alone: they are left whole, and are the core's where it may call them.
pub const LENGTHS: &[&str] = &[
    "core::slice::sort",
    "core::slice::<impl [T]>::reverse",
    "<u32 as core",
    "kilim_reference_cpu::movement::strided::Plane::",
    "kilim_reference_cpu::movement::strided::StridedCopy::cut",
    "kilim_reference_cpu::movement::strided::StridedCopy::nest",
    "kilim_reference_cpu::norm::channel::line",
    "kilim_reference_cpu::norm::channel::group",
    "kilim_reference_cpu::norm::channel::Group",
];
/// Functions of kernels, whose loops are left whole.
const KERNELS: &[&str] = &[
    "kilim_simd_cpu::",
    "kilim_reference_cpu::",
    "kilim_host::",
    "kilim_core::interrupt::",
];

/// How names of pieces end.
const PIECE: &str = "::{piece}";

/// Whether a function is a piece of another, by its name.
pub fn is_piece(name: &str) -> bool {
    name.ends_with(PIECE)
}

/// The binary with its pieces as functions after those that it had, and the functions that each run entered.
///
/// # Errors
/// Where the binary holds what is not known here.
pub fn outline(binary: &Binary, passed: &Profile) -> Result<(Binary, Profile)> {
    let mut cutter = Cutter {
        binary,
        passed,
        profile: passed.of_same_runs(),
        points: Points::default(),
        types: Vec::new(),
        numbers: HashMap::new(),
        bodies: Vec::new(),
        pieces: Vec::new(),
    };
    cutter.read()?;
    let mut names = NameMap::new();
    for (function, name) in binary.functions().zip(&binary.names) {
        names.append(function, name);
    }
    for (function, piece) in (binary.types.len() as u32..).zip(&cutter.pieces) {
        names.append(function, &piece.name);
    }
    let mut section = NameSection::new();
    section.functions(&names);
    let profile = take(&mut cutter.profile);
    let mut module = Module::new();
    let mut writer = Writer { cutter };
    utils::parse_core_module(&mut writer, &mut module, Parser::new(0), &binary.bytes)?;
    module.section(&section);
    Ok((Binary::read(module.finish())?, profile))
}

/// Types of parameters and results.
type Signature = (Vec<ValType>, Vec<ValType>);

struct Piece {
    name: String,
    of: u32,
    body: Function,
}

struct Cutter<'a> {
    binary: &'a Binary,
    passed: &'a Profile,
    profile: Profile,
    points: Points,
    types: Vec<Signature>,
    numbers: HashMap<Signature, u32>,
    /// The bodies of functions, without their pieces.
    bodies: Vec<Function>,
    pieces: Vec<Piece>,
}

/// A point that the core's profile did not pass.
struct Point {
    /// The instruction after it.
    at: usize,
    number: u32,
    /// Types of what is on the stack there, above what is beneath the block.
    stack: Vec<ValType>,
}

/// A function's body as it was.
struct Body<'b> {
    function: u32,
    operators: Vec<Operator<'b>>,
    /// Where each instruction begins in the file.
    offsets: Vec<usize>,
    /// Whether each instruction can be reached, as far as types tell.
    reached: Vec<bool>,
    locals: Vec<ValType>,
    shape: Shape,
    live: Live,
}

/// Where a piece goes on: after or at the begin of a block that it stands in, or after the loop whose end it reaches.
#[derive(Clone, Copy, PartialEq)]
enum Exit {
    Label(usize),
    Through(usize),
}

/// What stands in the place of a piece.
struct Call {
    /// The instruction that the function goes on with: the end of the block.
    end: usize,
    taken: Vec<u32>,
    given: Vec<u32>,
    function: u32,
    exits: Vec<Exit>,
    /// Types of what every exit leaves on the stack.
    values: Vec<ValType>,
    within: usize,
}

impl Cutter<'_> {
    fn read(&mut self) -> Result<()> {
        let mut validator = Validator::new_with_features(WasmFeatures::all());
        let mut function = self.binary.imported;
        for payload in Parser::new(0).parse_all(&self.binary.bytes) {
            let payload = payload?;
            if let wasmparser::Payload::TypeSection(section) = &payload {
                for of in section.clone().into_iter_err_on_gc_types() {
                    let of = of?;
                    let signature = (values(of.params())?, values(of.results())?);
                    self.numbers
                        .entry(signature.clone())
                        .or_insert(self.types.len() as u32);
                    self.types.push(signature);
                }
            }
            if let ValidPayload::Func(checked, body) = validator.payload(&payload)? {
                let checked = checked.into_validator(Default::default());
                self.function(function, checked, &body)?;
                function += 1;
            }
        }
        Ok(())
    }

    fn function(
        &mut self,
        function: u32,
        mut checked: wasmparser::FuncValidator<wasmparser::ValidatorResources>,
        body: &FunctionBody<'_>,
    ) -> Result<()> {
        checked.read_locals(&mut body.get_binary_reader())?;
        let begin = self.points.begin();
        self.profile.set(function, self.passed.runs(begin));
        let passed = |point: &u32| self.passed.is_core(*point);
        let name = &self.binary.names[function as usize];
        let kept = WHOLE.iter().chain(LENGTHS).any(|of| name.contains(of));
        let whole = !passed(&begin) || kept;
        let (mut operators, mut offsets, mut reached) = (Vec::new(), Vec::new(), Vec::new());
        let mut points = Vec::new();
        // What is exported stays in the core, but all that it does may leave.
        if self.binary.rooted[function as usize] && !passed(&begin) && !kept {
            points.push(Point {
                at: 0,
                number: begin,
                stack: Vec::new(),
            });
        }
        for item in body.get_operators_reader()?.into_iter_with_offsets() {
            let (operator, offset) = item?;
            let frame = checked
                .get_control_frame(0)
                .context("a body goes on after its end")?;
            reached.push(!frame.unreachable);
            checked.op(offset, &operator)?;
            let point = self.points.after(&operator);
            operators.push(operator);
            offsets.push(usize::try_from(offset)?);
            let Some(number) = point.filter(|point| !whole && !passed(point)) else {
                continue;
            };
            let frame = checked
                .get_control_frame(0)
                .context("a body goes on after its end")?;
            let count = (checked.operand_stack_height() as usize).saturating_sub(frame.height);
            let stack = (0..count)
                .rev()
                .map(|depth| checked.get_operand_type(depth).flatten());
            if let (false, Some(stack)) = (frame.unreachable, stack.collect::<Option<Vec<_>>>()) {
                points.push(Point {
                    at: operators.len(),
                    number,
                    stack: values(&stack)?,
                });
            }
        }
        let locals = (0..checked.len_locals()).map(|local| checked.get_local_type(local));
        let locals = values(
            &locals
                .collect::<Option<Vec<_>>>()
                .context("a local has no type")?,
        )?;
        let shape = Shape::of(&operators).filter(|_| !points.is_empty() && self.plain(&operators));
        let Some(shape) = shape else {
            self.bodies.push(copy(body)?);
            return Ok(());
        };
        let live = Live::of(&operators, &shape, locals.len());
        let body = Body {
            function,
            operators,
            offsets,
            reached,
            locals,
            shape,
            live,
        };
        let mut calls = HashMap::new();
        let mut done = 0;
        for point in points {
            if point.at < done {
                continue;
            }
            if let Some(call) = self.cut(&body, &point)? {
                done = call.end;
                calls.insert(point.at, call);
            }
        }
        let rest = self.rest(&body, &calls)?;
        self.bodies.push(rest);
        Ok(())
    }
}

impl Body<'_> {
    /// Where the end of a frame leads.
    fn fall(&self, frame: usize) -> Exit {
        match self.shape.frames[frame].is_loop {
            true => Exit::Through(frame),
            false => Exit::Label(frame),
        }
    }

    /// The frames that an instruction may branch to.
    fn leaves(&self, at: usize) -> Vec<usize> {
        let target = |depth| self.shape.target(at, depth);
        match &self.operators[at] {
            Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                vec![target(*relative_depth)]
            }
            Operator::BrTable { targets } => targets
                .targets()
                .flatten()
                .chain([targets.default()])
                .map(target)
                .collect(),
            Operator::Return => vec![0],
            _ => Vec::new(),
        }
    }
}

/// Orders types, so that few signatures come of the same types.
fn rank(of: ValType) -> u8 {
    match of {
        ValType::I32 => 0,
        ValType::I64 => 1,
        ValType::F32 => 2,
        ValType::F64 => 3,
        ValType::V128 => 4,
        ValType::Ref(_) => 5,
    }
}

fn values(of: &[wasmparser::ValType]) -> Result<Vec<ValType>> {
    of.iter()
        .map(|of| Ok(RoundtripReencoder.val_type(*of)?))
        .collect()
}

fn same<'a>(operator: &Operator<'a>) -> Result<Instruction<'a>> {
    Ok(RoundtripReencoder.instruction(operator.clone())?)
}

fn copy(body: &FunctionBody<'_>) -> Result<Function> {
    let mut function = RoundtripReencoder.new_function_with_parsed_locals(body)?;
    for operator in body.get_operators_reader()? {
        function.instruction(&same(&operator?)?);
    }
    Ok(function)
}

/// Writes the binary with the bodies that are left and the pieces.
struct Writer<'a> {
    cutter: Cutter<'a>,
}

impl Reencode for Writer<'_> {
    type Error = Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_type_section(self, types, section)?;
        for (parameters, results) in &self.cutter.types[types.len() as usize..] {
            types
                .ty()
                .function(parameters.iter().copied(), results.iter().copied());
        }
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        utils::parse_function_section(self, functions, section)?;
        for piece in &self.cutter.pieces {
            functions.function(piece.of);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        _section: wasmparser::CodeSectionReader<'_>,
    ) -> Result<(), Error<Infallible>> {
        for body in self
            .cutter
            .bodies
            .iter()
            .chain(self.cutter.pieces.iter().map(|piece| &piece.body))
        {
            code.function(body);
        }
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

//! Writes the functions of pieces, and what is left of those that they were cut from.

use super::{Body, Call, Cutter, Exit, Piece, Point, Signature, same};
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;
use wasm_encoder::{BlockType, Function, Instruction, ValType};
use wasmparser::Operator;

impl Cutter<'_> {
    /// The function that a piece becomes.
    pub(super) fn piece(
        &mut self,
        body: &Body<'_>,
        point: &Point,
        call: &Call,
        name: String,
    ) -> Result<Piece> {
        let kinds = |locals: &[u32]| {
            locals
                .iter()
                .map(|l| body.locals[*l as usize])
                .collect::<Vec<_>>()
        };
        let parameters = [point.stack.clone(), kinds(&call.taken)].concat();
        let several = call.exits.len() > 1;
        let number = several.then_some(ValType::I32);
        let mut results = call.values.clone();
        results.extend(number);
        results.extend(kinds(&call.given));
        let of = self.signature((parameters, results));

        let mut locals: HashMap<u32, u32> = HashMap::new();
        for (number, local) in (point.stack.len() as u32..).zip(&call.taken) {
            locals.insert(*local, number);
        }
        let mut own = Vec::new();
        let parameters = (point.stack.len() + call.taken.len()) as u32;
        let used = body.operators[point.at..call.end]
            .iter()
            .filter_map(local_of);
        for local in used.chain(call.given.iter().copied()) {
            locals.entry(local).or_insert_with(|| {
                own.push(body.locals[local as usize]);
                parameters + own.len() as u32 - 1
            });
        }
        let mut function = Function::new_with_locals_types(own);
        let block = self.block(&call.values);
        for _ in &call.exits {
            function.instruction(&Instruction::Block(block));
        }
        for parameter in 0..point.stack.len() as u32 {
            function.instruction(&Instruction::LocalGet(parameter));
        }
        let mut depth = 0;
        let leave = |frame: usize, depth: u32| {
            let exit = call
                .exits
                .iter()
                .position(|exit| *exit == Exit::Label(frame));
            let exit = exit.context("a branch leaves a piece where it cannot")?;
            anyhow::Ok(depth + exit as u32)
        };
        for at in point.at..call.end {
            let operator = &body.operators[at];
            let branch = |relative: u32| {
                let frame = body.shape.target(at, relative);
                if body.shape.inside(frame, point.at) {
                    Ok(relative)
                } else {
                    leave(frame, depth)
                }
            };
            match operator {
                Operator::LocalGet { local_index } => {
                    function.instruction(&Instruction::LocalGet(locals[local_index]));
                }
                Operator::LocalSet { local_index } => {
                    function.instruction(&Instruction::LocalSet(locals[local_index]));
                }
                Operator::LocalTee { local_index } => {
                    function.instruction(&Instruction::LocalTee(locals[local_index]));
                }
                Operator::Br { relative_depth } => {
                    function.instruction(&Instruction::Br(branch(*relative_depth)?));
                }
                Operator::BrIf { relative_depth } => {
                    function.instruction(&Instruction::BrIf(branch(*relative_depth)?));
                }
                Operator::BrTable { targets } => {
                    let listed = targets.targets().map(|target| branch(target?));
                    let listed = listed.collect::<Result<Vec<_>>>()?;
                    let other = branch(targets.default())?;
                    function.instruction(&Instruction::BrTable(listed.into(), other));
                }
                Operator::Return => {
                    function.instruction(&Instruction::Br(leave(0, depth)?));
                }
                other => {
                    function.instruction(&same(other)?);
                }
            }
            match operator {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => depth += 1,
                Operator::End => depth -= 1,
                _ => {}
            }
        }
        if !body.reached[call.end] {
            function.instruction(&Instruction::Unreachable);
        }
        for exit in 0..call.exits.len() {
            // Falling out of a piece is its first exit where it is one.
            if exit == 0 && body.reached[call.end] {
                ensure!(
                    call.exits[0] == body.fall(call.within),
                    "a piece ends where it cannot"
                );
            }
            function.instruction(&Instruction::End);
            if several {
                function.instruction(&Instruction::I32Const(exit as i32));
            }
            for local in &call.given {
                function.instruction(&Instruction::LocalGet(locals[local]));
            }
            if exit + 1 < call.exits.len() {
                function.instruction(&Instruction::Return);
            }
        }
        function.instruction(&Instruction::End);
        Ok(Piece {
            name,
            of,
            body: function,
        })
    }

    /// A function's body with calls in the place of its pieces.
    pub(super) fn rest(
        &mut self,
        body: &Body<'_>,
        calls: &HashMap<usize, Call>,
    ) -> Result<Function> {
        let of = self.binary.types[body.function as usize];
        let parameters = self.types[of as usize].0.len();
        let mut function =
            Function::new_with_locals_types(body.locals[parameters..].iter().copied());
        let mut at = 0;
        while at < body.operators.len() {
            let Some(call) = calls.get(&at) else {
                function.instruction(&same(&body.operators[at])?);
                at += 1;
                continue;
            };
            at = call.end;
            let depth = body.shape.depth(call.within);
            let through = call
                .exits
                .iter()
                .any(|exit| matches!(exit, Exit::Through(_)));
            let wrapped = u32::from(through && call.exits.len() > 1);
            if wrapped == 1 {
                let block = self.block(&call.values);
                function.instruction(&Instruction::Block(block));
            }
            for local in &call.taken {
                function.instruction(&Instruction::LocalGet(*local));
            }
            function.instruction(&Instruction::Call(call.function));
            for local in call.given.iter().rev() {
                function.instruction(&Instruction::LocalSet(*local));
            }
            let place = |exit: &Exit| match exit {
                Exit::Label(frame) => depth - body.shape.depth(*frame) + wrapped,
                Exit::Through(_) => 0,
            };
            match call.exits.as_slice() {
                [] => {
                    function.instruction(&Instruction::Unreachable);
                }
                [Exit::Through(_)] => {}
                [one] => {
                    if *one != body.fall(call.within) {
                        function.instruction(&Instruction::Br(place(one)));
                    }
                }
                [first @ .., last] => {
                    let first: Vec<u32> = first.iter().map(place).collect();
                    function.instruction(&Instruction::BrTable(first.into(), place(last)));
                }
            }
            if wrapped == 1 {
                function.instruction(&Instruction::End);
            }
        }
        Ok(function)
    }

    fn signature(&mut self, signature: Signature) -> u32 {
        *self
            .numbers
            .entry(signature)
            .or_insert_with_key(|signature| {
                self.types.push(signature.clone());
                self.types.len() as u32 - 1
            })
    }

    fn block(&mut self, values: &[ValType]) -> BlockType {
        match values {
            [] => BlockType::Empty,
            [one] => BlockType::Result(*one),
            _ => BlockType::FunctionType(self.signature((Vec::new(), values.to_vec()))),
        }
    }
}

fn local_of(operator: &Operator<'_>) -> Option<u32> {
    match operator {
        Operator::LocalGet { local_index }
        | Operator::LocalSet { local_index }
        | Operator::LocalTee { local_index } => Some(*local_index),
        _ => None,
    }
}

//! Which code becomes a piece.

use super::{Body, Call, Cutter, Exit, KERNELS, PIECE, Point, rank, values};
use crate::parts::live::Set;
use anyhow::Result;
use wasm_encoder::ValType;
use wasmparser::Operator;

/// Bytes that moving a piece must save.
const GAIN: usize = 2;

impl Cutter<'_> {
    /// Whether no block takes what is on the stack.
    pub(super) fn plain(&self, operators: &[Operator<'_>]) -> bool {
        operators.iter().all(|operator| match operator {
            Operator::Block {
                blockty: wasmparser::BlockType::FuncType(of),
            }
            | Operator::Loop {
                blockty: wasmparser::BlockType::FuncType(of),
            }
            | Operator::If {
                blockty: wasmparser::BlockType::FuncType(of),
            } => self.types[*of as usize].0.is_empty(),
            _ => true,
        })
    }

    /// What a frame leaves on the stack.
    fn results(&self, body: &Body<'_>, frame: usize) -> Result<Vec<ValType>> {
        if frame == 0 {
            let of = self.binary.types[body.function as usize];
            return Ok(self.types[of as usize].1.clone());
        }
        Ok(match &body.operators[body.shape.frames[frame].begin] {
            Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty } => {
                match blockty {
                    wasmparser::BlockType::Empty => Vec::new(),
                    wasmparser::BlockType::Type(of) => values(&[*of])?,
                    wasmparser::BlockType::FuncType(of) => self.types[*of as usize].1.clone(),
                }
            }
            _ => Vec::new(),
        })
    }

    /// Makes a function of the piece after a point, where that saves enough.
    pub(super) fn cut(&mut self, body: &Body<'_>, point: &Point) -> Result<Option<Call>> {
        let (shape, begin) = (&body.shape, point.at);
        let within = shape.within[begin];
        let end = shape.end_of_arm(within, begin);
        let name = &self.binary.names[body.function as usize];
        let in_loop = shape.in_loop(within);
        let (mut read, mut written) = (Set::new(body.locals.len()), Set::new(body.locals.len()));
        let mut exits = Vec::new();
        let mut leave = |exit: Exit| {
            if !exits.contains(&exit) {
                exits.push(exit)
            }
        };
        if body.reached[end] {
            leave(body.fall(within));
        }
        for at in begin..end {
            let operator = &body.operators[at];
            match operator {
                Operator::LocalGet { local_index } => read.add(*local_index),
                Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                    written.add(*local_index);
                }
                Operator::MemoryInit { .. } | Operator::DataDrop { .. } => return Ok(None),
                _ => {}
            }
            for frame in body.leaves(at) {
                if !shape.inside(frame, begin) {
                    leave(Exit::Label(frame));
                }
            }
        }
        if in_loop && !exits.is_empty() && KERNELS.iter().any(|of| name.contains(of)) {
            return Ok(None);
        }
        let mut after = Set::new(body.locals.len());
        let mut types = Vec::new();
        for exit in &exits {
            let (next, left) = match *exit {
                Exit::Label(frame) if shape.frames[frame].is_loop => {
                    (shape.label(frame), Vec::new())
                }
                Exit::Label(frame) => (shape.label(frame), self.results(body, frame)?),
                Exit::Through(frame) => (
                    Some(shape.frames[frame].end + 1),
                    self.results(body, frame)?,
                ),
            };
            if let Some(next) = next {
                after.add_all(body.live.at(next));
            }
            types.push(left);
        }
        if types.windows(2).any(|pair| pair[0] != pair[1]) {
            return Ok(None);
        }
        let through = exits.iter().any(|exit| matches!(exit, Exit::Through(_)));
        if through && exits.len() > 1 && !point.stack.is_empty() {
            return Ok(None);
        }
        read.add_all(&written);
        let sorted = |set: Set| {
            let mut locals: Vec<u32> = set.iter().collect();
            locals.sort_by_key(|local| (rank(body.locals[*local as usize]), *local));
            locals
        };
        let taken = sorted(body.live.at(begin).common(&read));
        let given = sorted(written.common(&after));
        let stand = 2 * (taken.len() + given.len() + exits.len()) + 8;
        let size = body.offsets[end] - body.offsets[begin];
        if size < stand + GAIN {
            return Ok(None);
        }
        let call = Call {
            end,
            taken,
            given,
            function: self.binary.types.len() as u32 + self.pieces.len() as u32,
            exits,
            values: types.pop().unwrap_or_default(),
            within,
        };
        let piece = self.piece(body, point, &call, format!("{name}{PIECE}"))?;
        self.pieces.push(piece);
        self.profile
            .set(call.function, self.passed.runs(point.number));
        Ok(Some(call))
    }
}

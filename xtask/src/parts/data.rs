//! Which data parts bring along: what only their functions refer to, themselves or by other data.

#[cfg(test)]
mod tests;

use super::binary::{Binary, constant};
use super::layout::Layout;
use anyhow::Result;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ops::Range;
use wasm_encoder::MemArg;
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasmparser::{Operator, Parser, Payload};

/// A range of data, and the parts that bring it: constants may come with several.
#[derive(Debug, PartialEq)]
pub struct Moved {
    pub place: Range<u32>,
    pub parts: BTreeSet<usize>,
}

/// Which function a panic comes through before it is told where it was; code that may panic does but pass the address of that on.
const TELLS: &str = "::panicking::panic_with_hook";

/// The data that functions refer to, by its place among the pieces of the layout.
pub struct References {
    /// What each function refers to.
    pub functions: Vec<BTreeSet<usize>>,
    /// What stays whoever refers to it: what is copied, what may change, and what globals hold the address of.
    pub kept: BTreeSet<usize>,
}

impl References {
    /// # Errors
    /// Where the binary holds what is not known here.
    pub fn read(binary: &Binary, layout: &Layout) -> Result<Self> {
        let mut functions = vec![BTreeSet::new(); binary.types.len()];
        let pieces = layout.pieces.iter().enumerate();
        let changed = pieces
            .filter(|(_, of)| !of.constant)
            .map(|(piece, _)| piece);
        let mut kept: BTreeSet<usize> = layout.copied.iter().copied().chain(changed).collect();
        let telling = binary.names.iter().position(|name| name.contains(TELLS));
        let mut function = binary.imported as usize;
        for payload in Parser::new(0).parse_all(&binary.bytes) {
            let mut found = Addresses::default();
            match payload? {
                Payload::CodeSectionEntry(body) => {
                    for operator in body.get_operators_reader()? {
                        found.meet(operator?)?;
                    }
                    for piece in found.pieces(layout) {
                        let reader = match layout.pieces[piece].location {
                            true => telling.unwrap_or(function),
                            false => function,
                        };
                        functions[reader].insert(piece);
                    }
                    function += 1;
                }
                Payload::GlobalSection(section) => {
                    for global in section {
                        found.0.extend(constant(&global?.init_expr));
                    }
                    kept.extend(found.pieces(layout));
                }
                _ => {}
            }
        }
        Ok(Self { functions, kept })
    }
}

/// The data that leaves the core, in the order of its addresses. What anything of the core may refer to stays, and what nothing is known
/// to refer to.
pub fn moved(references: &References, layout: &Layout, owners: &[Option<usize>]) -> Vec<Moved> {
    let mut users = vec![BTreeSet::new(); layout.pieces.len()];
    let kept = references.kept.iter().map(|piece| (*piece, None));
    let mut open: Vec<_> = kept.collect();
    for (pieces, owner) in references.functions.iter().zip(owners) {
        open.extend(pieces.iter().map(|piece| (*piece, *owner)));
    }
    while let Some((piece, user)) = open.pop() {
        if users[piece].insert(user) {
            open.extend(layout.pieces[piece].refers.iter().map(|to| (*to, user)));
        }
    }
    let leaves = |users: &BTreeSet<Option<usize>>| !users.is_empty() && !users.contains(&None);
    let pieces = layout.pieces.iter().zip(users);
    pieces
        .filter(|(_, users)| leaves(users))
        .map(|(piece, users)| Moved {
            place: piece.place.clone(),
            parts: users.into_iter().flatten().collect(),
        })
        .collect()
}

/// Joins places where one begins at the end of the one before it.
pub fn joined(places: impl Iterator<Item = Range<u32>>) -> Vec<Range<u32>> {
    let mut joined: Vec<Range<u32>> = Vec::new();
    for place in places {
        match joined.last_mut() {
            Some(last) if place.start == last.end => last.end = place.end,
            _ => joined.push(place),
        }
    }
    joined
}

/// The numbers of a body that may be addresses. The optimiser may have made larger constants of those.
#[derive(Default)]
struct Addresses(BTreeSet<u32>);

impl Addresses {
    fn pieces(&self, layout: &Layout) -> impl Iterator<Item = usize> {
        let addresses = self.0.iter();
        addresses.flat_map(|address| layout.spoken_of(*address))
    }

    fn meet(&mut self, operator: Operator<'_>) -> Result<()> {
        match operator {
            Operator::I32Const { value } => {
                self.0.insert(value as u32);
            }
            Operator::I64Const { value } => self.words(&value.to_le_bytes()),
            Operator::V128Const { value } => self.words(value.bytes()),
            // Looks at where it reads or writes.
            other => {
                self.instruction(other)?;
            }
        }
        Ok(())
    }

    fn words(&mut self, bytes: &[u8]) {
        let words = bytes.chunks_exact(4);
        self.0
            .extend(words.map(|w| w.iter().rev().fold(0, |all, b| all << 8 | u32::from(*b))));
    }
}

impl Reencode for Addresses {
    type Error = Infallible;

    fn mem_arg(&mut self, arg: wasmparser::MemArg) -> Result<MemArg, Error<Infallible>> {
        self.0.extend(u32::try_from(arg.offset));
        utils::mem_arg(self, arg)
    }
}

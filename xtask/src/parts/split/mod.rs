//! Writes a binary whose functions are owned by several parts as a core and a module for each part. Parts share the core's memory,
//! globals and table. Functions of a part are called from elsewhere through the table, where a stand-in waits that has the host load
//! the part; loading it puts the functions themselves there.

mod part;
mod write;

use super::binary::Binary;
use super::data::{Moved, joined};
use crate::names::short;
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use wasm_encoder::reencode::utils;
use wasm_encoder::{CustomSection, Function, Instruction, Module, Section};
use wasmparser::Parser;
use write::{Misplaced, Writer};

/// The module that a core imports the loaders of its parts from, each by the part's name.
const LOADERS: &str = "kilim";
/// The module that a part imports from: the core's exports.
const CORE: &str = "core";
/// How names of exports for parts begin; no other export's does.
const SHARED: char = '$';

/// A binary, and which part each function belongs to: none where it belongs to the core.
pub struct Split<'a> {
    binary: &'a Binary,
    parts: &'a [&'static str],
    owners: &'a [Option<usize>],
    /// Where a part's function is called through, for those that are called from elsewhere.
    slots: HashMap<u32, u32>,
    /// Functions of parts that the table did not hold, and that parts call.
    added: Vec<u32>,
    /// The number of functions of parts that the core alone calls, which has the part loaded before.
    awaited: u32,
    /// The core's functions that parts call, with the names that they are exported by.
    shared: BTreeMap<u32, String>,
    /// The functions of parts that nobody can call before their part is there.
    hidden: HashSet<u32>,
    /// The data that each part brings and the core has not, in the order of its addresses.
    brought: Vec<Vec<Range<u32>>>,
    /// Told in the name of the core's memory, so that parts of another build do not fit.
    mark: u64,
}

impl<'a> Split<'a> {
    /// `moved` is the data that leaves the core, `hidden` what nobody can call before its part is there.
    pub fn new(
        binary: &'a Binary,
        parts: &'a [&'static str],
        owners: &'a [Option<usize>],
        moved: &[Moved],
        hidden: HashSet<u32>,
    ) -> Self {
        let mut slots: HashMap<u32, u32> = HashMap::new();
        let mut shared = BTreeSet::new();
        for (&function, places) in &binary.slots {
            if owners[function as usize].is_some() {
                slots.insert(function, places[0]);
            }
        }
        // Whether a part calls it, by the function of another part that the table does not hold.
        let mut called: BTreeMap<u32, bool> = BTreeMap::new();
        for caller in binary.functions() {
            let from = owners[caller as usize];
            for &function in &binary.calls[caller as usize] {
                match owners[function as usize] {
                    None if from.is_some() => {
                        shared.insert(function);
                    }
                    to if to.is_some() && to != from && !slots.contains_key(&function) => {
                        *called.entry(function).or_default() |= from.is_some();
                    }
                    _ => {}
                }
            }
        }
        let of = |by_part| {
            called
                .iter()
                .filter(move |(_, by)| **by == by_part)
                .map(|(f, _)| *f)
        };
        let (added, mut awaited): (Vec<u32>, Vec<u32>) = (of(true).collect(), of(false).collect());
        awaited.sort_by_key(|f| owners[*f as usize]);
        slots.extend(added.iter().copied().zip(binary.table..));
        let first = binary.table + (added.len() + parts.len()) as u32;
        slots.extend(awaited.iter().copied().zip(first..));
        let brought = (0..parts.len()).map(|part| {
            let moved = moved.iter().filter(|moved| moved.parts.contains(&part));
            joined(moved.map(|moved| moved.place.clone()))
        });
        let brought: Vec<Vec<Range<u32>>> = brought.collect();
        Self {
            mark: mark(&binary.bytes, owners, &brought),
            brought,
            hidden,
            binary,
            parts,
            owners,
            slots,
            added,
            awaited: awaited.len() as u32,
            shared: shared
                .into_iter()
                .zip((0..).map(|number| format!("{SHARED}{}", short(number))))
                .collect(),
        }
    }

    fn owned_by(&self, owner: Option<usize>) -> impl Iterator<Item = u32> {
        let defined = self.binary.imported..self.binary.types.len() as u32;
        defined.filter(move |f| self.owners[*f as usize] == owner)
    }

    /// The functions of parts that have a stand-in, in a fixed order.
    fn stand_ins(&self) -> Vec<u32> {
        let needed = |f: &&u32| !self.is_awaited(**f) && !self.hidden.contains(*f);
        let slots = self.slots.keys().filter(needed);
        let mut functions: Vec<u32> = slots.copied().collect();
        functions.sort_unstable_by_key(|f| {
            (
                self.owners[*f as usize],
                self.binary.types[*f as usize],
                self.slots[f],
            )
        });
        functions
    }

    /// The module of the core: what no part owns, with stand-ins for what parts own.
    ///
    /// # Errors
    /// Where the binary holds what is not known here.
    pub fn core(&self) -> Result<Vec<u8>> {
        let imported = self.binary.imported;
        let loaders = self.parts.len() as u32;
        let mut index: HashMap<u32, u32> = (0..imported).map(|f| (f, f)).collect();
        let own = self.owned_by(None).chain(self.stand_ins());
        index.extend(own.zip(imported + loaders..));
        let waits = loaders + index.len() as u32;
        // Nobody knows the place in the table that this stands in.
        let never = waits + loaders;
        index.extend(self.hidden.iter().map(|f| (*f, never)));
        let mut module = Module::new();
        let mut writer = Writer {
            split: self,
            owner: None,
            index,
            bodies: 0,
            no_parameters: 0,
            waits,
        };
        let parser = Parser::new(0);
        utils::parse_core_module(&mut writer, &mut module, parser, &self.binary.bytes)?;
        Ok(module.finish())
    }

    /// The export of the core's memory, table or global of this number.
    fn place(&self, kind: char, number: u32) -> String {
        match kind {
            'm' => format!("{SHARED}m{number}-{:016x}", self.mark),
            _ => format!("{SHARED}{kind}{number}"),
        }
    }

    fn lengthen(&self, table: &mut wasm_encoder::TableType) {
        let added = (self.added.len() + self.parts.len() + self.awaited as usize) as u64;
        table.minimum += added;
        table.maximum = table.maximum.map(|maximum| maximum + added);
    }

    /// The place in the table of what is called to wait for a part: it loads the part until that is there.
    fn wait(&self, part: usize) -> u32 {
        self.binary.table + (self.added.len() + part) as u32
    }

    /// Whether the core waits for the function's part before it calls it: it has a place after all those that the core fills.
    fn is_awaited(&self, f: u32) -> bool {
        let first = self.binary.table + (self.added.len() + self.parts.len()) as u32;
        self.slots.get(&f).is_some_and(|slot| *slot >= first)
    }

    /// Calls the function `f` through the table.
    fn call(&self, function: &mut Function, f: u32) -> Result<(), Misplaced> {
        let slot = self.slots.get(&f).ok_or(Misplaced)?;
        function.instruction(&Instruction::I32Const(*slot as i32));
        function.instruction(&Instruction::CallIndirect {
            type_index: self.binary.types[f as usize],
            table_index: 0,
        });
        Ok(())
    }

    /// What stands in for the function `f` until its part is there.
    fn stand_in(&self, f: u32) -> Result<Function, Misplaced> {
        let mut function = Function::new([]);
        let part = self.owners[f as usize].ok_or(Misplaced)?;
        function.instruction(&Instruction::Call(self.binary.imported + part as u32));
        let of = self.binary.types[f as usize];
        for parameter in 0..self.binary.parameters[of as usize] {
            function.instruction(&Instruction::LocalGet(parameter));
        }
        self.call(&mut function, f)?;
        function.instruction(&Instruction::End);
        Ok(function)
    }
}

/// Adds a part's module to the file of its core, for pages that want one file.
pub fn embed(core: &mut Vec<u8>, part: &str, module: &[u8]) {
    let section = CustomSection {
        name: format!("kilim.{part}").into(),
        data: module.into(),
    };
    section.append_to(core);
}

/// A number that another binary, or another split of this one, would not have.
fn mark(bytes: &[u8], owners: &[Option<usize>], brought: &[Vec<Range<u32>>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (bytes, owners, brought).hash(&mut hasher);
    hasher.finish()
}

//! Who may call each function: by its name, or by a place in the table.

use super::binary::Binary;
use super::data::Moved;
use super::layout::Layout;
use std::collections::BTreeSet;

/// The callers of a binary's functions.
pub struct Callers<'a> {
    binary: &'a Binary,
    layout: &'a Layout,
    by_name: Vec<Vec<u32>>,
}

impl<'a> Callers<'a> {
    pub fn new(binary: &'a Binary, layout: &'a Layout) -> Self {
        Self {
            binary,
            layout,
            by_name: binary.callers(),
        }
    }

    /// The parts that may call the function `f`, not counting itself, and none where the core may: `owners` are those of the functions,
    /// `moved` is the data that parts bring, in the order of its addresses. Whoever has a place in the table that `f` stands at may call it.
    pub fn of(&self, f: u32, owners: &[Option<usize>], moved: &[Moved]) -> BTreeSet<Option<usize>> {
        let mut by: BTreeSet<_> = self.named(f).map(|c| owners[c as usize]).collect();
        for piece in self.knowing(f) {
            let place = piece.map(|piece| self.layout.pieces[piece].place.start);
            let at = place.map(|start| moved.binary_search_by_key(&start, |of| of.place.start));
            match at {
                Some(Ok(at)) => by.extend(moved[at].parts.iter().copied().map(Some)),
                _ => {
                    by.insert(None);
                }
            }
        }
        by
    }

    /// The other functions that call `f` by its name.
    pub fn named(&self, f: u32) -> impl Iterator<Item = u32> {
        let callers = self.by_name[f as usize].iter().copied();
        callers.filter(move |caller| *caller != f)
    }

    /// The pieces of data that hold a place in the table that `f` stands at, and none where code may hold it.
    pub fn knowing(&self, f: u32) -> impl Iterator<Item = Option<usize>> {
        let slots = self.binary.slots.get(&f).into_iter().flatten();
        slots.flat_map(|slot| match self.layout.naming(*slot) {
            Some(pieces) => pieces.iter().copied().map(Some).collect(),
            None => vec![None],
        })
    }
}

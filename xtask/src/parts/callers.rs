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
        let others = self.by_name[f as usize]
            .iter()
            .filter(|caller| **caller != f);
        let mut by: BTreeSet<_> = others.map(|caller| owners[*caller as usize]).collect();
        for slot in self.binary.slots.get(&f).into_iter().flatten() {
            let Some(pieces) = self.layout.naming(*slot) else {
                by.insert(None);
                continue;
            };
            for piece in pieces {
                let place = &self.layout.pieces[*piece].place;
                match moved.binary_search_by_key(&place.start, |moved| moved.place.start) {
                    Ok(at) => by.extend(moved[at].parts.iter().copied().map(Some)),
                    Err(_) => {
                        by.insert(None);
                    }
                }
            }
        }
        by
    }
}

//! Small functions that no run of the core entered stay there, as a stand-in would cost as much, and so do those whose lengths decide what
//! is entered. Where one part alone can call such a function, nothing need stand for it, and it follows that part.

use super::binary::Binary;
use super::callers::Callers;
use super::data::{Moved, References, moved};
use super::layout::Layout;
use super::profile::Profile;
use anyhow::Result;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Has functions of the core follow the part that alone may call them. Gives the data that leaves the core then.
///
/// # Errors
/// Where the binary holds what is not known here.
pub fn follow(
    binary: &Binary,
    layout: &Layout,
    profile: &Profile,
    owners: &mut [Option<usize>],
) -> Result<Vec<Moved>> {
    let free = binary.functions().filter(|f| {
        let own = *f as usize;
        *f >= binary.imported && !binary.rooted[own] && !profile.is_core(*f)
    });
    let free: Vec<u32> = free.filter(|f| owners[*f as usize].is_none()).collect();
    let references = References::read(binary, layout)?;
    let callers = Callers::new(binary, layout);
    for (f, from) in free
        .iter()
        .zip(reached(&free, &callers, &references, layout, owners))
    {
        if let (Some(Some(part)), 1) = (from.first(), from.len()) {
            owners[*f as usize] = Some(*part);
        }
    }
    Ok(moved(&references, layout, owners))
}

/// The parts from which each of the functions of `free` may be reached, through others of them and data alone, and none where the core may.
fn reached(
    free: &[u32],
    callers: &Callers,
    references: &References,
    layout: &Layout,
    owners: &[Option<usize>],
) -> Vec<BTreeSet<Option<usize>>> {
    // What stands for nodes: the pieces of data, then the functions of `free`.
    let data = layout.pieces.len();
    let places: HashMap<u32, usize> = free.iter().copied().zip(data..).collect();
    let mut to: Vec<Vec<usize>> = layout.pieces.iter().map(|of| of.refers.clone()).collect();
    to.resize(data + free.len(), Vec::new());
    let kept = references.kept.iter().map(|piece| (*piece, None));
    let mut open: Vec<(usize, Option<usize>)> = kept.collect();
    for (f, pieces) in (0..).zip(&references.functions) {
        match places.get(&f) {
            Some(own) => to[*own].extend(pieces),
            None => open.extend(pieces.iter().map(|piece| (*piece, owners[f as usize]))),
        }
    }
    for (f, own) in free.iter().zip(data..) {
        for caller in callers.named(*f) {
            match places.get(&caller) {
                Some(caller) => to[*caller].push(own),
                None => open.push((own, owners[caller as usize])),
            }
        }
        for piece in callers.knowing(*f) {
            match piece {
                Some(piece) => to[piece].push(own),
                None => open.push((own, None)),
            }
        }
    }
    let mut from = vec![BTreeSet::new(); to.len()];
    while let Some((place, part)) = open.pop() {
        if from[place].insert(part) {
            open.extend(to[place].iter().map(|to| (*to, part)));
        }
    }
    from.split_off(data)
}

/// The functions of the table that nobody but their own part may call: nothing need stand there before the part is there. `moved` is the data
/// that parts bring, in the order of its addresses.
///
/// Threads that share memory have none: one reads data there that another's part has brought, while its own table has not that part yet.
pub fn hidden(
    binary: &Binary,
    layout: &Layout,
    owners: &[Option<usize>],
    moved: &[Moved],
) -> HashSet<u32> {
    if binary.shared {
        return HashSet::new();
    }
    let callers = Callers::new(binary, layout);
    let own_alone = |f: &u32| {
        let owner = owners[*f as usize];
        owner.is_some() && callers.of(*f, owners, moved).iter().eq([&owner])
    };
    binary.slots.keys().copied().filter(own_alone).collect()
}

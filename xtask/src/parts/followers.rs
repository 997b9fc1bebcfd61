//! Small functions that no run of the core entered stay there, as a stand-in would cost as much. Where one part alone can call such a
//! function, nothing need stand for it, and it follows that part.

use super::binary::Binary;
use super::cold::LENGTHS;
use super::data::{Moved, moved};
use super::layout::Layout;
use super::owners::Profile;
use anyhow::Result;
use std::collections::{BTreeSet, HashMap};

/// Has functions of the core follow the part that alone calls them, by name or by a place in the table that its data alone holds. Gives
/// the data that leaves the core then.
///
/// # Errors
/// Where the binary holds what is not known here.
pub fn follow(
    binary: &Binary,
    layout: &Layout,
    profile: &Profile,
    owners: &mut [Option<usize>],
) -> Result<Vec<Moved>> {
    let core = profile.get("core");
    let free: Vec<u32> = binary
        .functions()
        .filter(|f| {
            let own = *f as usize;
            let lengths = || LENGTHS.iter().any(|of| binary.names[own].contains(of));
            let entered = core.is_some_and(|core| core.contains(f));
            *f >= binary.imported && !binary.rooted[own] && !entered && !lengths()
        })
        .collect();
    let mut callers: Vec<Vec<u32>> = vec![Vec::new(); owners.len()];
    for caller in binary.functions() {
        for called in &binary.calls[caller as usize] {
            callers[*called as usize].push(caller);
        }
    }
    loop {
        let moved = moved(binary, layout, owners)?;
        let brought: HashMap<u32, &BTreeSet<usize>> = moved
            .iter()
            .map(|moved| (moved.place.start, &moved.parts))
            .collect();
        let mut followed = false;
        for &f in &free {
            if owners[f as usize].is_some() {
                continue;
            }
            let mut by: BTreeSet<Option<usize>> = callers[f as usize]
                .iter()
                .filter(|caller| **caller != f)
                .map(|caller| owners[*caller as usize])
                .collect();
            for slot in binary.slots.get(&f).into_iter().flatten() {
                let Some(pieces) = layout.naming(*slot) else {
                    by.insert(None);
                    continue;
                };
                for piece in pieces {
                    match brought.get(&layout.pieces[*piece].place.start) {
                        Some(parts) => by.extend(parts.iter().copied().map(Some)),
                        None => {
                            by.insert(None);
                        }
                    }
                }
            }
            if let [Some(part)] = by.into_iter().collect::<Vec<_>>()[..] {
                owners[f as usize] = Some(part);
                followed = true;
            }
        }
        if !followed {
            return Ok(moved);
        }
    }
}
